#pragma once

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

struct Header {
  std::string_view name;
  std::optional<std::string_view> value;  ///< nullopt: no value, which is not an empty value
};

/// A record to be written. Nothing of it is used after send() has returned.
struct Record {
  std::string_view topic;
  std::optional<int32_t> partition{};  ///< without one: by the key, or spread evenly
  std::optional<std::string_view> key{};
  std::optional<std::string_view> value{};  ///< nullopt: a tombstone
  std::span<const Header> headers{};
  std::optional<Moment> timestamp{};  ///< without one: when it is sent
};

/// What became of a record.
struct Confirmation {
  uint64_t token = 0;
  int32_t partition = -1;
  int64_t offset = -1;
  /// Null: the broker has the record, and so have all its in-sync replicas. Otherwise
  ///   kNotFound     there is no such topic, or no such partition
  ///   kForbidden    the user may not write to the topic
  ///   kTooLarge     the broker or the topic does not accept records of this size
  ///   kInvalid      the broker refuses this record for another reason
  ///   kUnavailable  it was not confirmed in time: brokers are away. The record may be in the topic.
  /// The first four concern the record or its topic, and others may succeed. The detail says what to do.
  std::shared_ptr<const Error> error{};
};

struct ProducerOptions {
  ClientOptions client;
  uint32_t max_records = 100'000;               ///< unconfirmed at the same time
  uint64_t max_bytes = uint64_t{64} << 20;      ///< the same, of keys, values and headers
  Millis timeout = std::chrono::seconds{30};    ///< after it a record is kUnavailable
  Millis topic_wait = std::chrono::seconds{3};  ///< how long to wait for a topic that does not exist (yet)
  /// Called from other threads when poll() has something to report. It must not call the producer.
  std::function<void()> wakeup{};
};

/// Writes records to Kafka. Each is written once (idempotence) and confirmed when all in-sync replicas have
/// it (acks=all). Records of one partition are in the order of send(), also when some were sent again.
///
/// For one thread. No call blocks, except the destructor, which waits for librdkafka's threads: some
/// milliseconds, or as long as a name is being resolved. Records without a confirmation when the producer is
/// destroyed are dropped: they may or may not be in their topics.
class Producer {
 public:
  virtual ~Producer() = default;

  /// Queues a record; poll() reports `token` exactly once. On an error it never does: kOverloaded when
  /// the buffer is full, otherwise an error as in Confirmation.
  virtual Status send(const Record& record, uint64_t token) = 0;
  /// Adds what has been confirmed since the last call. Returns whether anything has happened; there may be
  /// more then.
  virtual bool poll(std::vector<Confirmation>& confirmed) = 0;

  /// Gives up all records that are not confirmed: poll() reports them as kUnavailable, soon. Some may be in
  /// their topics.
  virtual void drop() = 0;

  /// Records that poll() has not reported yet.
  virtual size_t outstanding() const = 0;
  /// False when it is known that no broker can be reached. Known by what poll() has seen.
  virtual bool is_connected() const = 0;
  /// Why brokers could not be reached; empty while nothing ever went wrong. Without secrets.
  virtual std::string_view last_error() const = 0;
  /// The producer can write nothing any more (the broker has lost its place, or forbids idempotence): all
  /// records fail with kUnavailable. Open another one.
  virtual bool is_broken() const = 0;
};

/// A producer over librdkafka. Fails only for options that check_options() refuses; brokers that cannot be
/// reached are tried again and again.
Result<std::unique_ptr<Producer>> open_producer(ProducerOptions options);

}  // namespace delayq::kafka
