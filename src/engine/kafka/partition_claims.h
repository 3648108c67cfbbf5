#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "kafka/consumer.h"
#include "net/redis/client.h"

namespace delayq::kafka {

struct ClaimOptions {
  std::string prefix = "delayq";             ///< of the keys in Redis
  std::string server;                        ///< tells this server from all others
  std::vector<std::string> topics;           ///< a group has partitions of the same numbers in each of them
  std::vector<std::vector<int32_t>> groups;  ///< the same on all servers
  /// A server that did not renew its claims for so long has lost them.
  Millis hold = std::chrono::seconds{10};
};

/// Shares configured groups of partitions between servers, without a consumer group that would move them.
///
/// A claim is a key in Redis with the server as its value. It expires, and only its owner renews or deletes
/// it. Each server claims at most its share; when a server dies, its claims expire and the others take them.
/// A server that cannot reach Redis stops to read before its claims have expired. (Should two servers read a
/// partition at the same time, then a record is handled twice, which changes nothing.)
///
/// A group is given back in two rounds: first the partitions are no longer read, and their offsets are
/// committed; then the key is deleted, and another server begins where this one ended.
///
/// For one thread. Client and consumer must outlive it.
class PartitionClaims {
 public:
  PartitionClaims(net::redis::Client& client, AssignedConsumer& consumer, ClaimOptions options);

  /// Renews the claims when it is time. Returns when to be called next.
  Moment tick(Moment now);
  /// Gives everything back; the consumer must not read any more. poll() the client until is_closed().
  void close(Moment now);
  bool is_closed() const { return is_closed_; }

  /// How many groups this server reads.
  size_t held() const;
  /// Why claims cannot be renewed; empty: they can.
  const std::string& trouble() const { return trouble_; }

 private:
  enum class State : uint8_t {
    kNone,
    kReading,
    kStopping,  ///< not read any more; the key is deleted in the next round
  };
  struct Group {
    std::vector<PartitionId> partitions;
    std::string key;
    State state = State::kNone;
  };

  void send_round(Moment now, bool goes);
  void round_came(const Result<resp::Value>& answer, Moment sent, const std::vector<size_t>& deleted);
  /// `said` as readers.lua returns it.
  void apply(Group& group, int64_t said);
  void lose_all();

  net::redis::Client& client_;
  AssignedConsumer& consumer_;
  ClaimOptions options_;
  std::string readers_;
  std::vector<Group> groups_;
  Moment next_round_ = Moment::min();
  Moment held_until_ = Moment::min();
  bool is_asking_ = false;
  bool is_closing_ = false;
  bool is_closed_ = false;
  std::string trouble_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace delayq::kafka
