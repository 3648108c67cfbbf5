#include "api/kafka/intake.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/arena.h"
#include "core/text.h"

namespace delayq::intake {

namespace {

/// In one push. The loop serves nobody else while it is made.
constexpr size_t kBatchRecords = 4'096;
constexpr uint64_t kBatchBytes = uint64_t{4} << 20;
/// In one read, for the same reason.
constexpr size_t kReadRecords = 256;
/// At the same time: so the disk of one is not waited for before the next.
constexpr size_t kMostPushes = 64;
constexpr Millis kFirstPushRest{20};
constexpr Millis kLongestPushRest = std::chrono::seconds{5};
/// A shorter trouble is not worth a log line, and not worth pausing what librdkafka has read in advance.
constexpr Millis kPatience = std::chrono::seconds{1};
/// How long another server that is to get partitions waits for what is under way here.
constexpr Millis kLetGoWithin = std::chrono::seconds{5};
/// How often to poll when nothing happens.
constexpr Millis kIdle = std::chrono::seconds{30};
/// While the consumer closes: its end is not announced.
constexpr Millis kClosingPoll{10};
/// How often a dead letter is logged.
constexpr Millis kTellLetters = std::chrono::seconds{10};

/// Whether the push of this record can never succeed. Whatever else a push is refused for may be over later.
bool is_final(const Error& error) {
  return error.code == ErrorCode::kInvalid || error.code == ErrorCode::kTooLarge ||
         error.code == ErrorCode::kConflict;
}

std::string names_of(const std::vector<kafka::PartitionId>& partitions) {
  std::vector<std::string> names;
  names.reserve(partitions.size());
  for (const kafka::PartitionId& each : partitions)
    names.push_back(fmt::format("{}-{}", each.topic, each.partition));
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace

Intake::Intake(Queue& queue, std::unique_ptr<kafka::Consumer> consumer,
               DeadLetters::OpenProducer open_producer, IntakeOptions options, Tell tell)
    : queue_(queue),
      consumer_(std::move(consumer)),
      options_(std::move(options)),
      dead_letters_(options_.name, options_.dead_letter_topic, std::move(open_producer)),
      tell_(std::move(tell)) {
  counts_.name = options_.name;
}

void Intake::tell(bool is_bad, const std::string& what) const {
  tell_(is_bad, fmt::format("kafka intake {}: {}", options_.name, what));
}

bool Intake::poll(Moment now) {
  now_ = now;
  written_.clear();
  bool is_busy = dead_letters_.poll(now, written_);
  for (TakenRecord& record : written_) {
    ++counts_.dead_lettered;
    settle(std::move(record));
  }
  is_busy |= read(now);
  is_busy |= push(now);
  pause_stuck();
  let_go_if_done(now);
  close_if_done(now);
  return is_busy;
}

Moment Intake::tick(Moment now) {
  now_ = now;
  // The clock may have been set back.
  next_try_ = std::min(next_try_, now + kLongestPushRest);
  next_commit_ = std::min(next_commit_, now + options_.commit_interval);
  Moment next = std::min(now + kIdle, dead_letters_.tick(now));
  commit(now);
  tell_troubles(now);
  // Before now: then they wait for something else than time.
  if (!held_.empty() && next_try_ > now) next = std::min(next, next_try_);
  const bool is_uncommitted = std::any_of(partitions_.begin(), partitions_.end(), [](const auto& each) {
    return each.second->progress.position() != each.second->committed;
  });
  if (is_uncommitted) next = std::min(next, next_commit_);
  if (full_since_ || refused_since_ || trouble_since_) next = std::min(next, now + kPatience);
  if (is_closing_) next = std::min(next, now + kClosingPoll);
  return std::min({next, let_go_by_, stop_by_});
}

// ---- reading

bool Intake::has_room() const {
  return held_.size() + pushing_records_ + dead_letters_.size() < options_.most_records &&
         bytes_ + dead_letters_.bytes() < options_.most_bytes;
}

bool Intake::read(Moment now) {
  if (consumer_->is_closed()) return false;
  const bool may_read = has_room() && !is_stopping_;
  if (may_read) {
    full_since_.reset();
    // Half of the records are done: what is read now does not fill the room at once.
    if (is_held_ && held_.size() + pushing_records_ < options_.most_records / 2) hold(false);
  } else if (!is_stopping_ && !is_held_) {
    // The consumer has a buffer of its own: soon there is room again, and reading goes on.
    if (!full_since_) full_since_ = now;
    if (now - *full_since_ < kPatience) return false;
    hold(true);
  }
  kafka::Polled polled = consumer_->poll(may_read ? kReadRecords : 0,
                                         options_.most_bytes - std::min(options_.most_bytes - 1, bytes_));
  for (kafka::InputRecord& record : polled.records) take(std::move(record));
  if (polled.committed && !polled.committed->ok()) {
    for (const auto& each : partitions_) each.second->committed.reset();  // once more
    if (!std::exchange(is_commit_told_, true))
      tell(true, fmt::format("offsets cannot be committed: {}", polled.committed->error().detail));
  } else if (polled.committed && std::exchange(is_commit_told_, false)) {
    tell(false, "offsets are committed again");
  }
  if (polled.rebalance) rebalance(*polled.rebalance, now);
  return !polled.records.empty() || polled.rebalance || polled.committed;
}

PartitionPtr Intake::partition_of(const kafka::InputRecord& record) {
  const auto is_it = [&record](const PartitionPtr& each) {
    return each != nullptr && each->id.partition == record.partition && each->id.topic == record.topic;
  };
  if (is_it(last_partition_)) return last_partition_;
  const auto found = partitions_.find({std::string(record.topic), record.partition});
  last_partition_ = found == partitions_.end() ? nullptr : found->second;
  return last_partition_;
}

void Intake::take(kafka::InputRecord record) {
  PartitionPtr partition = partition_of(record);
  if (partition == nullptr || partition->is_gone) return;  // another server reads it now
  if (partition->progress.has_begun(record.offset)) partition = begin_anew(*partition, record.offset);
  TakenRecord taken{std::move(record), std::move(partition), 0, ++counts_.read, 0};
  taken.place = taken.partition->progress.begin(taken.record.offset);
  taken.bytes = taken.record.bytes();
  bytes_ += taken.bytes;
  held_.push_back(std::move(taken));
}

/// Offsets go back only when the topic is another one with the same name. What was read of the old one is
/// still pushed, but its offsets say nothing any more.
PartitionPtr Intake::begin_anew(const Partition& old, int64_t offset) {
  tell(true, fmt::format("{}-{} is read from offset {} on: the topic was deleted and made anew, or lost "
                         "records",
                         old.id.topic, old.id.partition, offset));
  auto partition = std::make_shared<Partition>();
  partition->id = old.id;
  partition->is_paused = old.is_paused;
  partitions_[partition->id] = partition;
  last_partition_ = partition;
  return partition;
}

void Intake::hold(bool is_held) {
  is_held_ = is_held;
  std::vector<kafka::PartitionId> all;
  for (const auto& each : partitions_) {
    if (is_held || !each.second->is_paused) all.push_back(each.first);
  }
  if (is_held) {
    consumer_->pause(all);
  } else {
    consumer_->resume(all);
  }
}

void Intake::pause_stuck() {
  for (const auto& each : partitions_) {
    Partition& partition = *each.second;
    const bool is_stuck = partition.stuck > 0;
    if (is_stuck == partition.is_paused) continue;
    partition.is_paused = is_stuck;
    if (is_held_) continue;
    const std::span<const kafka::PartitionId> one(&partition.id, 1);
    if (is_stuck) {
      consumer_->pause(one);
    } else {
      consumer_->resume(one);
    }
  }
}

// ---- pushing

std::vector<TakenRecord> Intake::next_batch() {
  std::vector<TakenRecord> batch;
  std::deque<TakenRecord> left;
  uint64_t bytes = 0;
  while (!held_.empty() && batch.size() < kBatchRecords && (batch.empty() || bytes < kBatchBytes)) {
    TakenRecord record = std::move(held_.front());
    held_.pop_front();
    if (record.partition->is_gone) {
      bytes_ -= record.bytes;
    } else if (record.partition->stuck > 0) {
      left.push_back(std::move(record));
    } else {
      bytes += record.bytes;
      batch.push_back(std::move(record));
    }
  }
  held_.insert(held_.begin(), std::make_move_iterator(left.begin()), std::make_move_iterator(left.end()));
  return batch;
}

bool Intake::push(Moment now) {
  const size_t most = options_.rules.on_conflict == OnConflict::kReplace || refused_since_ ? 1 : kMostPushes;
  if (pushing_.size() >= most || held_.empty() || now < next_try_ || is_stopping_) return false;
  std::vector<TakenRecord> batch = next_batch();
  if (batch.empty()) return false;
  Arena texts;
  requests_.clear();
  std::vector<TakenRecord> sent;
  sent.reserve(batch.size());
  for (TakenRecord& taken : batch) {
    const Result<PushRequest> job = job_of(taken.record, options_.rules, texts);
    if (!job.ok()) {
      bytes_ -= taken.bytes;
      bury(std::move(taken), job.error());
      continue;
    }
    requests_.push_back(*job);
    ++taken.partition->under_way;
    sent.push_back(std::move(taken));
  }
  if (requests_.empty()) return true;
  const uint64_t number = ++last_push_;
  pushing_records_ += sent.size();
  pushing_.emplace(number, std::move(sent));
  queue_.push(now, requests_,
              [this, number, alive = std::weak_ptr(alive_)](const Result<PushReport>& report) {
                if (!alive.expired()) pushed(number, report);
              });
  return true;
}

void Intake::pushed(uint64_t number, const Result<PushReport>& report) {
  const auto found = pushing_.find(number);
  std::vector<TakenRecord> batch = std::move(found->second);
  pushing_.erase(found);
  pushing_records_ -= batch.size();
  std::vector<TakenRecord> refused;
  const Error* why = report.ok() ? nullptr : &report.error();
  for (size_t i = 0; i < batch.size(); ++i) {
    TakenRecord& taken = batch[i];
    --taken.partition->under_way;
    const Error* const error = !report.ok()           ? &report.error()
                               : report->jobs[i].ok() ? nullptr
                                                      : &report->jobs[i].error();
    if (error == nullptr) {
      ++(report->jobs[i]->outcome == PushOutcome::kKept ? counts_.kept : counts_.pushed);
      bytes_ -= taken.bytes;
      settle(std::move(taken));
    } else if (report.ok() && is_final(*error)) {
      bytes_ -= taken.bytes;
      bury(std::move(taken), *error);
    } else {
      why = error;
      refused.push_back(std::move(taken));
    }
  }
  if (why == nullptr) return accepted();
  put_back(std::move(refused), *why);
}

void Intake::settle(TakenRecord record) {
  if (!record.partition->is_gone) record.partition->progress.done(record.place);
}

void Intake::put_back(std::vector<TakenRecord> records, const Error& why) {
  held_.insert(held_.begin(), std::make_move_iterator(records.begin()),
               std::make_move_iterator(records.end()));
  // Another push may have been refused before.
  std::sort(held_.begin(), held_.end(),
            [](const TakenRecord& a, const TakenRecord& b) { return a.number < b.number; });
  ++counts_.refused;
  rest_ = std::clamp(2 * rest_, kFirstPushRest, kLongestPushRest);
  next_try_ = now_ + std::clamp(why.retry_after, rest_, kLongestPushRest);
  if (!refused_since_) refused_since_ = now_;
  refusal_ = fmt::format("{}: {}", traits_of(why.code).name, why.detail);
}

void Intake::accepted() {
  rest_ = Millis::zero();
  refused_since_.reset();
  if (std::exchange(is_refusal_told_, false)) tell(false, "records are stored again");
}

void Intake::bury(TakenRecord record, const Error& why) {
  if (record.partition->is_gone) return;
  ++letters_untold_;
  if (now_ >= next_letter_told_ || next_letter_told_ > now_ + kTellLetters) {
    const kafka::InputRecord& said = record.record;
    tell(true, fmt::format("{}-{}-{} cannot be a job and goes to {}: {}{}", said.topic, said.partition,
                           said.offset, dead_letters_.topic_of(said.topic), why.detail,
                           letters_untold_ > 1
                               ? fmt::format(" ({} such records since the last message)", letters_untold_)
                               : ""));
    next_letter_told_ = now_ + kTellLetters;
    letters_untold_ = 0;
  }
  dead_letters_.write(std::move(record), why);
}

// ---- commits

void Intake::commit(Moment now) {
  if (now < next_commit_) return;
  std::vector<kafka::Position> positions;
  for (const auto& each : partitions_) {
    Partition& partition = *each.second;
    const std::optional<int64_t> position = partition.progress.position();
    if (!position || position == partition.committed) continue;
    partition.committed = position;
    positions.push_back({partition.id, *position});
  }
  if (positions.empty()) return;
  next_commit_ = now + options_.commit_interval;
  consumer_->commit(positions);
}

// ---- rebalances

void Intake::rebalance(const kafka::Rebalance& change, Moment now) {
  last_partition_.reset();
  switch (change.kind) {
    case kafka::Rebalance::Kind::kAssigned:
      return assign(change);
    case kafka::Rebalance::Kind::kRevoked:
      return revoke(change, now);
    case kafka::Rebalance::Kind::kLost:
      break;
  }
  for (const kafka::PartitionId& id : change.partitions) forget(id);
  drop_held_of_gone();
  if (!change.partitions.empty())
    tell(true, fmt::format("lost {}: other servers read them from the last commit on",
                           names_of(change.partitions)));
}

void Intake::assign(const kafka::Rebalance& change) {
  for (const kafka::PartitionId& id : change.partitions) {
    auto partition = std::make_shared<Partition>();
    partition->id = id;
    partitions_[id] = std::move(partition);
  }
  if (is_held_) consumer_->pause(change.partitions);
  if (!change.partitions.empty()) tell(false, fmt::format("reads {}", names_of(change.partitions)));
}

void Intake::revoke(const kafka::Rebalance& change, Moment now) {
  for (const kafka::PartitionId& id : change.partitions) {
    const auto found = partitions_.find(id);
    if (found != partitions_.end()) going_.push_back(found->second);
  }
  // What is not being pushed yet is left to the next server.
  std::erase_if(held_, [this](const TakenRecord& taken) {
    if (std::find(going_.begin(), going_.end(), taken.partition) == going_.end()) return false;
    bytes_ -= taken.bytes;
    return true;
  });
  is_letting_go_ = true;
  let_go_by_ = now + kLetGoWithin;
  if (!change.partitions.empty() && !is_stopping_)
    tell(false, fmt::format("gives back {}", names_of(change.partitions)));
}

void Intake::let_go_if_done(Moment now) {
  if (!is_letting_go_) return;
  let_go_by_ = std::min(let_go_by_, now + kLetGoWithin);  // the clock may have been set back
  const bool is_under_way = std::any_of(
      going_.begin(), going_.end(), [](const PartitionPtr& each) { return each->under_way > each->stuck; });
  if (is_under_way && now < let_go_by_) return;
  std::vector<kafka::Position> positions;
  for (const PartitionPtr& each : going_) {
    const std::optional<int64_t> position = each->progress.position();
    if (position && position != each->committed) positions.push_back({each->id, *position});
    forget(each->id);
  }
  drop_held_of_gone();
  if (!positions.empty()) consumer_->commit(positions);
  consumer_->let_go();
  going_.clear();
  is_letting_go_ = false;
  let_go_by_ = kNever;
}

void Intake::forget(const kafka::PartitionId& id) {
  const auto found = partitions_.find(id);
  if (found == partitions_.end()) return;
  found->second->is_gone = true;
  partitions_.erase(found);
  last_partition_.reset();
}

void Intake::drop_held_of_gone() {
  std::erase_if(held_, [this](const TakenRecord& taken) {
    if (!taken.partition->is_gone) return false;
    bytes_ -= taken.bytes;
    return true;
  });
  dead_letters_.forget_gone();
}

// ---- stopping

void Intake::stop(Moment now, Millis grace) {
  if (std::exchange(is_stopping_, true)) return;
  stop_by_ = now + grace;
  for (const TakenRecord& taken : held_) bytes_ -= taken.bytes;
  held_.clear();
}

void Intake::close_if_done(Moment now) {
  if (!is_stopping_ || is_stopped()) return;
  if (now >= stop_by_) {
    is_given_up_ = true;
    return;
  }
  const bool is_under_way = std::any_of(partitions_.begin(), partitions_.end(), [](const auto& each) {
    return each.second->under_way > each.second->stuck;
  });
  if (is_closing_ || is_under_way) return;
  is_closing_ = true;
  next_commit_ = now;
  commit(now);
  consumer_->close();
}

// ---- what is told

void Intake::tell_troubles(Moment now) {
  if (refused_since_ && !is_refusal_told_ && now - *refused_since_ >= kPatience) {
    is_refusal_told_ = true;
    tell(true, fmt::format("records wait, because they cannot be stored: {}", refusal_));
  }
  const std::string_view unwritten = dead_letters_.trouble();
  if (!unwritten.empty() && !std::exchange(is_stuck_told_, true)) {
    tell(true, fmt::format("partitions with records that cannot be jobs wait until these can be written to "
                           "the dead-letter topic {}",
                           unwritten));
  } else if (unwritten.empty() && std::exchange(is_stuck_told_, false)) {
    tell(false, "the dead-letter topic is written again");
  }
  const std::string_view unread = consumer_->trouble();
  if (unread.empty()) {
    trouble_since_.reset();
    if (!std::exchange(told_trouble_, {}).empty()) tell(false, "reads again");
    return;
  }
  if (!trouble_since_) trouble_since_ = now;
  if (!told_trouble_.empty() || now - *trouble_since_ < kPatience) return;
  told_trouble_ = unread;
  tell(true, fmt::format("cannot read: {}", unread));
}

IntakeFigures Intake::figures() const {
  IntakeFigures figures = counts_;
  figures.partitions = partitions_.size();
  figures.held = held_.size() + pushing_records_ + dead_letters_.size();
  figures.is_connected = consumer_->trouble().empty();
  for (const auto& [id, partition] : partitions_) {
    if (is_held_ || partition->is_paused) ++figures.paused;
    const std::optional<int64_t> end = consumer_->end_of(id);
    const std::optional<int64_t> open = partition->progress.first_open();
    if (end && open && *end > *open) figures.lag += static_cast<uint64_t>(*end - *open);
  }
  return figures;
}

}  // namespace delayq::intake
