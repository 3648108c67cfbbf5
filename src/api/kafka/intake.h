#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/kafka/dead_letters.h"
#include "api/kafka/intake_figures.h"
#include "api/kafka/partition.h"
#include "api/kafka/record_job.h"
#include "kafka/consumer.h"
#include "queue/queue.h"

namespace delayq::intake {

struct IntakeOptions {
  std::string name;
  Rules rules{};
  std::string dead_letter_topic{};  ///< empty: the record's topic and kDeadLetterSuffix
  /// In memory, from their reading until they are done. At most one read more than this.
  uint32_t most_records = 20'000;
  uint64_t most_bytes = uint64_t{32} << 20;
  Millis commit_interval{200};
};

/// Reads the records of a consumer group and pushes them as jobs. An API whose client is Kafka.
///
/// Nothing is lost: a position is committed only when all records before it are done. A record is done when
/// its push was answered, so its job is as durable as the engine promises, or when it was confirmed in the
/// dead-letter topic. What the queue refuses for want of room, or because its engine is away, is pushed again
/// after a rest; meanwhile no further records are read.
///
/// Nothing is skipped: a record that can never be a job (a bad header, a body that is too large, an id that
/// is in use) goes to the dead-letter topic. While it cannot be written there, its partition waits.
///
/// Order. Jobs of one partition are pushed in the order of their offsets. Several pushes are under way at a
/// time, except with OnConflict::kReplace: what is refused and pushed again would replace a later one.
///
/// A crash between push and commit lets records be read again: those without an id of their own are the same
/// jobs again (see job_of()).
///
/// Threads: all methods are called on the queue's thread.
class Intake {
 public:
  /// Gets what an operator should know.
  using Tell = std::function<void(bool is_bad, const std::string& what)>;

  /// `queue` must outlive it.
  Intake(Queue& queue, std::unique_ptr<kafka::Consumer> consumer, DeadLetters::OpenProducer open_producer,
         IntakeOptions options, Tell tell);

  /// Reads, pushes and collects answers. Returns whether anything has happened: there may be more to do then.
  bool poll(Moment now);
  /// Does timed work. Returns when to call it next.
  Moment tick(Moment now);

  /// Replaces the rules, for records that are pushed from now on.
  void set_rules(Rules rules) { options_.rules = std::move(rules); }

  /// Reads no more, waits for pushes under way, commits, and leaves the group. What was read and not pushed
  /// will be read again.
  void stop(Moment now, Millis grace);
  /// Whether the stop is complete, or its grace period is over.
  bool is_stopped() const { return consumer_->is_closed() || is_given_up_; }

  IntakeFigures figures() const;

 private:
  bool read(Moment now);
  bool has_room() const;
  void take(kafka::InputRecord record);
  PartitionPtr begin_anew(const Partition& old, int64_t offset);
  void rebalance(const kafka::Rebalance& change, Moment now);
  void assign(const kafka::Rebalance& change);
  void revoke(const kafka::Rebalance& change, Moment now);
  /// Gives back revoked partitions when nothing of them is under way any more.
  void let_go_if_done(Moment now);
  void close_if_done(Moment now);
  void forget(const kafka::PartitionId& id);
  void drop_held_of_gone();

  bool push(Moment now);
  std::vector<TakenRecord> next_batch();
  void pushed(uint64_t number, const Result<PushReport>& report);
  void settle(TakenRecord record);
  void bury(TakenRecord record, const Error& why);
  void put_back(std::vector<TakenRecord> records, const Error& why);
  void accepted();

  /// Stops or continues reading of all partitions, while the records in memory cannot be stored.
  void hold(bool is_held);
  /// Pauses partitions with records that cannot be written to the dead-letter topic, and resumes the others.
  void pause_stuck();
  void commit(Moment now);
  void tell_troubles(Moment now);
  void tell(bool is_bad, const std::string& what) const;
  PartitionPtr partition_of(const kafka::InputRecord& record);

  Queue& queue_;
  std::unique_ptr<kafka::Consumer> consumer_;
  IntakeOptions options_;
  DeadLetters dead_letters_;
  Tell tell_;
  Moment now_{};

  std::map<kafka::PartitionId, PartitionPtr> partitions_;
  PartitionPtr last_partition_;                           ///< of the record that was read last
  std::deque<TakenRecord> held_;                          ///< read and not pushed
  std::map<uint64_t, std::vector<TakenRecord>> pushing_;  ///< the pushes that are under way
  uint64_t last_push_ = 0;
  size_t pushing_records_ = 0;  ///< in all of them
  std::vector<PushRequest> requests_;
  std::vector<TakenRecord> written_;
  uint64_t bytes_ = 0;  ///< of held_ and pushing_
  std::shared_ptr<const char> alive_ = std::make_shared<const char>();

  // ---- the queue refuses
  Moment next_try_{};
  Millis rest_{};
  std::optional<Moment> refused_since_;
  std::string refusal_;
  bool is_refusal_told_ = false;
  std::optional<Moment> full_since_;
  bool is_held_ = false;

  // ---- commits and rebalances
  Moment next_commit_{};
  bool is_commit_told_ = false;
  std::vector<PartitionPtr> going_;  ///< revoked, and not yet given back
  bool is_letting_go_ = false;
  Moment let_go_by_ = kNever;

  // ---- stopping
  bool is_stopping_ = false;
  bool is_closing_ = false;
  bool is_given_up_ = false;
  Moment stop_by_ = kNever;

  // ---- what was told
  std::string told_trouble_;
  std::optional<Moment> trouble_since_;
  bool is_stuck_told_ = false;
  Moment next_letter_told_{};
  uint64_t letters_untold_ = 0;

  IntakeFigures counts_;
};

}  // namespace delayq::intake
