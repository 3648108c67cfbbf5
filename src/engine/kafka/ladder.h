#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "engine/kafka/partition_claims.h"
#include "engine/redis/cold_store.h"
#include "kafka/admin.h"
#include "kafka/consumer.h"
#include "kafka/producer.h"
#include "kafka/reader.h"

namespace delayq::kafka {

struct LadderOptions {
  std::string prefix = "delayq";  ///< of its topics: PREFIX.delay.5m
  /// A body is back in Redis so long before its job is due.
  Millis horizon = std::chrono::minutes{5};
  /// In ascending order, each at least a millisecond.
  std::vector<Millis> steps{std::chrono::minutes{5}, std::chrono::minutes{30}, std::chrono::hours{1},
                            std::chrono::hours{6}, std::chrono::days{1}};
  int32_t partitions = 6;    ///< of topics that are made
  int32_t replication = -1;  ///< the same; -1: as the brokers' default says
  /// For so long all servers may be down without losing a body: records are kept for the time of their step
  /// and this.
  Millis outage = std::chrono::days{3};
  /// Servers claim these groups of partitions, of all topics; empty: the consumer group shares the
  /// partitions.
  std::vector<std::vector<int32_t>> partition_groups{};
  uint64_t record_bytes = uint64_t{1} << 20;  ///< records may have about so many bytes
};

/// The topics of a ladder, by step: "delayq.delay.5m", "delayq.delay.30m", ...
std::vector<std::string> ladder_topics(const LadderOptions& options);
/// Creates the topics that are missing and checks all of them. Blocks. kInvalid: a topic keeps its records
/// for too short a time, is compacted, or has partitions that no group names; the detail says what to set.
Status prepare_topics(Admin& admin, const LadderOptions& options, Millis timeout);

/// The cold store in Kafka: a topic for each step. All records of a topic wait for the same time, so the
/// order of arrival is the order in which they are due, and one that waits at the head of its partition holds
/// up no earlier one. Such a partition is paused until the time of its head has come.
///
/// Records have the id of the job as key and a header `delayq-release`: when they come back, in ms since
/// 1970. Servers share the partitions by a consumer group, or by claims. An offset is committed when the
/// record and all before it are finished.
class Ladder final : public redis::ColdStore {
 public:
  /// How Kafka is reached. All must have been opened with the wakeup of the loop.
  struct Clients {
    std::unique_ptr<Producer> producer;
    std::unique_ptr<Consumer> consumer;  ///< of ladder_topics()
    std::unique_ptr<Reader> reader;
    std::unique_ptr<PartitionClaims> claims{};  ///< of the consumer's partitions; null: the group shares them
  };

  Ladder(LadderOptions options, Clients clients);

  std::optional<uint32_t> step_for(Millis left) const override;
  Millis least() const override { return options_.steps.front() + options_.horizon; }
  void put(Moment now, uint32_t step, std::string_view key, std::string_view value,
           Reply<redis::ColdPlace> reply) override;
  void fetch(const redis::ColdPlace& place, Reply<std::optional<std::string>> reply) override;
  std::vector<Record> arrivals(Moment now) override;
  void finish(const redis::ColdPlace& place) override;
  Moment tick(Moment now) override;
  bool poll() override;
  size_t outstanding() const override { return puts_.size() + clients_.reader->outstanding(); }
  /// The clients have theirs already.
  void set_wakeup(std::function<void()> wakeup) override { (void)wakeup; }

  /// Commits what is finished, and leaves the group or gives up the claims, so that others get the partitions
  /// at once. Call poll() until is_closed().
  void close();
  bool is_closed() const {
    return clients_.consumer->is_closed() && (clients_.claims == nullptr || clients_.claims->is_closed());
  }
  /// Why Kafka cannot be used now; empty: it can, as far as is known.
  std::string_view trouble() const;
  /// Whether a broker can be reached, as far as is known.
  bool is_connected() const { return clients_.producer->is_connected(); }
  /// How many partitions this server reads.
  size_t partitions() const { return partitions_.size(); }
  /// How long ago the first record that is not done should have come back; zero: none is late.
  Millis lag() const;

 private:
  struct Waiting {
    int64_t offset = 0;
    Moment release{};
    std::string value;
  };
  struct Partition {
    PartitionId id;
    bool is_paused = false;
    std::deque<Waiting> waiting;  ///< read, and not given out
    size_t waiting_bytes = 0;
    std::map<int64_t, Moment> open;  ///< given out, and not finished: their releases
    int64_t next = -1;               ///< behind the last one that was read; -1: none was
    int64_t committed = -1;
    /// The first record that is not done.
    int64_t position() const {
      if (!open.empty()) return open.begin()->first;
      return waiting.empty() ? next : waiting.front().offset;
    }
  };
  /// Length of the step in milliseconds, and partition. Places have the length, too: they are in Redis, and
  /// must stay right when the ladder is changed.
  using Name = std::pair<uint32_t, int32_t>;

  bool read();
  void take(const InputRecord& record);
  void rebalance(const Rebalance& change);
  std::optional<Name> name_of(const PartitionId& id) const;
  void pause_and_resume();
  void commit();

  LadderOptions options_;
  std::vector<std::string> topics_;
  Clients clients_;
  Moment now_ = Moment::min();
  Moment commit_at_ = Moment::min();
  uint64_t tokens_ = 0;
  struct Put {
    uint32_t step = 0;
    Reply<redis::ColdPlace> reply;
  };
  std::map<uint64_t, Put> puts_;
  std::vector<absl::AnyInvocable<void()>> answers_;
  std::map<Name, Partition> partitions_;
};

}  // namespace delayq::kafka
