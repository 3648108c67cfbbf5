#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "api/kafka/partition.h"
#include "kafka/producer.h"
#include "queue/delivery.h"

namespace delayq::intake {

/// Writes records that can never be jobs to a dead-letter topic: the record as it was, with the reason and
/// its origin in further headers. A record is done when the brokers have confirmed it. One that cannot be
/// written is tried again and again: nothing is skipped.
///
/// A topic may refuse a record as it is: it is larger with the further headers, or the topic accepts less
/// than the one it came from. Then a shortened one is written, without value and headers of its own. So no
/// record, whatever its size, holds up the others of its partition for ever. The value is where it came from.
class DeadLetters {
 public:
  using OpenProducer = std::function<Result<std::unique_ptr<kafka::Producer>>()>;

  /// `topic` empty: the name of the record's topic and kDeadLetterSuffix. The producer is opened when the
  /// first record needs it.
  DeadLetters(std::string intake, std::string topic, OpenProducer open)
      : intake_(std::move(intake)), topic_(std::move(topic)), open_(std::move(open)) {}

  std::string topic_of(std::string_view kafka_topic) const;

  /// Writes the record, at the latest with the next tick().
  void write(TakenRecord record, const Error& why);
  /// Adds the records that were confirmed. Returns whether anything has happened.
  bool poll(Moment now, std::vector<TakenRecord>& written);
  /// Tries again what could not be written. Returns when to call it next.
  Moment tick(Moment now);
  /// Forgets the records that wait to be tried again and whose partition is gone.
  void forget_gone();

  /// Why records cannot be written now; empty: they can.
  std::string_view trouble() const { return trouble_; }
  /// Records that are not confirmed yet, and their bytes.
  size_t size() const { return in_flight_.size() + waiting_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Letter {
    TakenRecord record;
    std::string code;
    std::string reason;
    std::string shortened{};  ///< why the whole record was refused; empty: it was not
    bool is_stuck = false;    ///< counted in Partition::stuck
  };

  Status send(const Letter& letter, uint64_t token);
  void fail(Letter letter, const Error& why, Moment now);

  std::string intake_;
  std::string topic_;
  OpenProducer open_;
  std::unique_ptr<kafka::Producer> producer_;
  absl::flat_hash_map<uint64_t, Letter> in_flight_;
  std::deque<Letter> waiting_;  ///< to be sent
  std::vector<kafka::Confirmation> confirmed_;
  uint64_t last_token_ = 0;
  uint64_t bytes_ = 0;
  Moment next_try_{};
  Millis rest_{};  ///< the last pause after a failure
  std::string trouble_;
};

}  // namespace delayq::intake
