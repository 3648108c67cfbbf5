#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "kafka/client_options.h"

namespace delayq::kafka {

/// A header of a record that was read.
struct InputHeader {
  std::string_view name;
  std::optional<std::string_view> value;  ///< nullopt: it has no value, which is not an empty value
};

/// A record that was read. The views are valid until the record is destroyed, which frees its memory.
struct InputRecord {
  /// Owns the memory of the views.
  using Storage = std::unique_ptr<void, void (*)(void*)>;

  std::string_view topic;
  int32_t partition = 0;
  int64_t offset = 0;
  std::optional<std::string_view> key;
  std::optional<std::string_view> value;  ///< nullopt: a tombstone
  std::optional<Moment> timestamp;        ///< of the producer or the broker, as the topic is configured
  std::vector<InputHeader> headers;       ///< in their order; a name may be there several times
  Storage storage{nullptr, [](void*) {}};

  /// About how much memory it needs.
  size_t bytes() const;
};

struct PartitionId {
  std::string topic;
  int32_t partition = 0;

  auto operator<=>(const PartitionId&) const = default;
};

/// Where to read on in a partition.
struct Position {
  PartitionId partition;
  int64_t offset = 0;  ///< of the first record that is not done
};

/// A change of the partitions that this member of the group reads.
struct Rebalance {
  enum class Kind : uint8_t {
    kAssigned,  ///< from now on they are read, from the committed offset on
    kRevoked,   ///< another member gets them when let_go() was called; nothing is read of them meanwhile
    kLost,      ///< another member may have them already: their offsets can no longer be committed
  };
  Kind kind = Kind::kAssigned;
  std::vector<PartitionId> partitions;
};

/// What one poll() has brought.
struct Polled {
  std::vector<InputRecord> records;
  std::optional<Rebalance> rebalance{};  ///< it came after the records
  std::optional<Status> committed{};     ///< the result of an earlier commit()
};

struct ConsumerOptions {
  ClientOptions client;
  std::string group;
  std::vector<std::string> topics;
  bool starts_at_end = false;  ///< where to begin without a committed offset: at the end, or at the beginning
  Millis session_timeout = std::chrono::seconds{10};  ///< without a heartbeat for so long, it is expelled
  /// Of records that poll() has not returned yet, about. When so much is there, the library looks only once a
  /// second whether there is room again; so it should be what the user of the consumer needs in a second.
  uint64_t buffer_bytes = uint64_t{64} << 20;
  /// Called from other threads when poll() has something to return. It must not call the consumer.
  std::function<void()> wakeup{};
};

/// A member of a consumer group. Partitions move between members one by one (cooperative-sticky), so those
/// that stay are read without a break.
///
/// Records of a partition come in the order of their offsets; offsets that go back belong to a new topic with
/// the name of one that was deleted. Only what commit() names is committed: so a
/// record is read again, perhaps by another member, until its user has said that it is done.
///
/// For one thread. No call waits for the network. The destructor waits for librdkafka's threads. Without a
/// close() before, the others wait for the session's timeout until they get its partitions.
class Consumer {
 public:
  virtual ~Consumer() = default;

  /// Returns what has arrived: at most so many records, and no further record once they have that many bytes.
  /// It also answers the group: call it every second at least, when there is no room for records with 0. Then
  /// pause() all partitions, or an answer to the group may be stuck behind a record.
  virtual Polled poll(size_t max_records, size_t max_bytes) = 0;
  /// Whether the next poll() may return something, although there is no wakeup.
  virtual bool may_have_more() const = 0;

  /// Reads no records of these partitions until resume(). Those that poll() has not returned yet are read
  /// again then. Partitions that are not assigned are ignored.
  virtual void pause(std::span<const PartitionId> partitions) = 0;
  virtual void resume(std::span<const PartitionId> partitions) = 0;

  /// Begins to store the positions in the group. A later poll() has the result.
  virtual void commit(std::span<const Position> positions) = 0;
  /// Gives back the partitions of Rebalance::kRevoked. Commits that were begun before are stored first.
  virtual void let_go() = 0;
  /// Leaves the group. Call poll() until is_closed(). On the way all partitions are revoked, or lost.
  virtual void close() = 0;
  virtual bool is_closed() const = 0;

  /// The offset behind the last record of a partition, as last heard; nullopt: not known.
  virtual std::optional<int64_t> end_of(const PartitionId& partition) const = 0;
  /// Why nothing can be read now; empty when no such reason is known. Without secrets.
  virtual std::string_view trouble() const = 0;
};

/// A consumer that is no member of its group: its user says which partitions it reads, and the group only
/// keeps the offsets. poll() reports the changes as it reports those of a group. close() revokes nothing.
class AssignedConsumer : public Consumer {
 public:
  /// Reads these partitions besides the others, from the committed offsets on: kAssigned. REQUIRES: it does
  /// not read them.
  virtual void assign(std::span<const PartitionId> partitions) = 0;
  /// Stops to read them: kRevoked, with let_go() to follow; with `is_lost` kLost.
  virtual void unassign(std::span<const PartitionId> partitions, bool is_lost) = 0;
};

/// A consumer over librdkafka. Fails only for options that check_options() refuses; brokers that cannot be
/// reached and topics that do not exist yet are tried again and again.
Result<std::unique_ptr<Consumer>> open_consumer(ConsumerOptions options);
/// The same without a membership in the group. `topics` and `session_timeout` are not used.
Result<std::unique_ptr<AssignedConsumer>> open_assigned_consumer(ConsumerOptions options);

}  // namespace delayq::kafka
