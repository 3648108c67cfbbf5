#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "delivery/sink.h"
#include "kafka/producer.h"

namespace delayq::delivery {

struct KafkaSinkOptions {
  uint32_t in_flight = 50'000;              ///< jobs that are being written at the same time
  Millis lease = std::chrono::seconds{15};  ///< renewed while the broker has not confirmed
};

/// Writes jobs to topics in Kafka. Once the broker has confirmed a job it is done here.
///
/// A record has the key and the value that the topic's settings say, and these headers, unless kafka_headers
/// leaves them out:
///   delayq-job-id       the job's id
///   delayq-job-topic    its topic in delayq
///   delayq-job-due      when this attempt was due: 2030-01-31T08:00:00.000Z
///   delayq-job-attempt  1 for the first
/// Their names differ from those that an intake reads: who sends a record back with all its headers says
/// nothing about its next job.
///
/// A job that was a Kafka record (JobOptions::carried) leaves as it came: with the record's key and headers,
/// and without a value if it had none. JobOptions::kafka_topic overrides the topic.
///
/// At least once: a job is done only when all in-sync replicas have it. When brokers are away for longer than
/// the producer's timeout, jobs are given back to their places in line and written again later, though the
/// first time may have been carried out. What concerns the topic or the record (a missing topic, a missing
/// permission, a record that is too large) counts as a failure of the job, and follows the topic's retry
/// policy.
///
/// While no broker can be reached nothing is taken. When others can be reached and only the leaders of one
/// topic are away, only that topic rests; it never has more than half of the jobs that are being written, so
/// the others go on.
///
/// A broker accepts or refuses whole batches: one record that is too large takes its neighbours with it. So
/// records that were refused in a batch are written again one by one, and only what is refused alone fails.
///
/// Jobs of a topic are written in the order in which they are handed out; jobs that are tried again come
/// after the others. In Kafka, order holds within a partition.
class KafkaSink final : public Sink {
 public:
  explicit KafkaSink(KafkaSinkOptions options) : options_(options) {}

  /// Where jobs are written to from now on; null: nowhere, and none are taken. REQUIRES: the previous
  /// producer has no records outstanding. The producer must outlive its use.
  void set_producer(kafka::Producer* producer) { producer_ = producer; }

  bool takes(Outlet outlet, const EffectiveSettings& topic) const override;
  Room room(Moment now) override;
  Claim claim(const Origin& origin, uint32_t most, Moment now) override;
  LeaseTerms lease_terms(const EffectiveSettings& topic) const override;
  uint32_t first_batch() const override { return 64; }
  size_t send(const Origin& origin, const Claim& claim, std::span<const SinkJob> jobs, Moment now) override;
  void hear() override;
  bool poll(Moment now) override;
  void stop(Moment now) override;
  void clock_set_back(Millis by) override;

  /// Called once when a topic in Kafka cannot be written to although brokers can be reached, with the reason,
  /// and once when it can again, with an empty reason.
  void set_log(std::function<void(std::string_view kafka_topic, std::string_view why)> log) {
    log_ = std::move(log);
  }
  SinkFigures figures() const;

 private:
  /// A topic in Kafka.
  struct Lane {
    std::string topic;
    uint32_t claimed = 0;  ///< jobs that are being taken
    uint32_t in_flight = 0;
    bool is_waited_for = false;  ///< a claim found no room
    bool is_freed = false;       ///< a job ended, in this poll()
    Millis rest{};               ///< how long the last rest was; zero: it can be written to
    Moment rests_until{};
    /// Jobs that were refused in a batch with others, and have not been written alone since.
    uint32_t suspects = 0;
    bool is_idle() const { return claimed == 0 && in_flight == 0 && rest == Millis::zero() && suspects == 0; }
  };
  /// A record that is not confirmed.
  struct Flight {
    Ticket ticket = 0;
    Lane* lane = nullptr;
    size_t bytes = 0;
    bool is_alone = false;  ///< no other record of its topic was under way: it has a batch of its own
    std::string target{};   ///< the topic in Kafka, if it is not that of the lane
  };

  uint32_t most_of(const Lane& lane) const {
    return lane.suspects > 0 ? 1 : std::max(1U, options_.in_flight / 2);
  }
  Lane& lane_of(std::string_view topic);
  /// Returns what became of it at once.
  Status write(const Origin& origin, Lane& lane, const SinkJob& each);
  /// Lets the record leave as the Kafka record came that the job was made of.
  void carry(std::string_view bytes, KafkaContent content, kafka::Record& record);
  std::string_view due_text(Moment due);
  /// Where the record is: "orders[3]@1207".
  std::string_view place_text(std::string_view topic, const kafka::Confirmation& confirmation);
  void confirmed(const kafka::Confirmation& confirmation, Moment now);
  /// Whether the record is to be written again alone.
  static bool is_suspect(const Flight& flight, const kafka::Confirmation& confirmation);
  void failed(Lane& lane, Ticket ticket, const Error& error, Moment now);
  void release_lanes();
  void forget_rests(Moment now);

  KafkaSinkOptions options_;
  kafka::Producer* producer_ = nullptr;
  std::vector<Flight> flights_;  ///< by token
  std::vector<uint32_t> free_;   ///< tokens that no record has
  size_t bytes_ = 0;             ///< of all flights
  Moment full_until_{};          ///< the producer's buffer is full, at most until then
  absl::flat_hash_map<std::string, std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> freed_;
  std::vector<kafka::Header> headers_;  ///< of the record that is being written
  std::vector<kafka::Confirmation> heard_;
  bool has_heard_ = false;
  Moment formatted_due_ = kNever;  ///< jobs that fall due together have the same text
  std::string formatted_due_text_;
  std::string place_;  ///< see place_text()
  std::function<void(std::string_view kafka_topic, std::string_view why)> log_;
};

}  // namespace delayq::delivery
