#include "engine/journal/cleaner.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "engine/journal/canary.h"

namespace delayq::journal {

namespace {

constexpr uint64_t kSmallestPortion = 256u << 10;
constexpr uint64_t kLargestPortion = 4u << 20;
/// Copied records are written in the background in pieces of about this size.
constexpr uint64_t kSurvivorCommit = 1u << 20;
/// Reading four bytes for each appended byte is always fast enough: unless disk space is low, at least a
/// third of what is read is unneeded, otherwise compaction would not have begun.
constexpr uint64_t kReadPerAppended = 4;

}  // namespace

void Cleaner::step(Moment now) {
  now_ = now;
  if (!status_.ok()) return;
  if (phase_ == Phase::kIdle) choose();
  const bool enough = log_.survivor_bytes() >= kSurvivorCommit;
  if (phase_ == Phase::kReady && !enough) read_portion();
  if (phase_ == Phase::kSettling) settle();
  if (log_.has_survivors() && (phase_ == Phase::kIdle || enough)) commit_survivors();
}

void Cleaner::commit_survivors() {
  if (log_.durable_lsn() < survivors_after_) return;
  log_.commit_survivors([this](const Status& status) {
    if (status_.ok()) status_ = status;
  });
}

bool Cleaner::is_worth_it() const {
  const uint64_t live = store_.segments.live_bytes();
  const uint64_t occupied = store_.segments.occupied_bytes();
  if (log_.disk_free() < options_.low_disk) return occupied > live + options_.low_slack_bytes;
  return occupied > live + live / 2 + options_.slack_bytes;
}

void Cleaner::choose() {
  Segment* victim = store_.segments.half_cleaned();
  // until it is repaired, no other segment may be removed
  if (victim != nullptr && victim->is_damaged) return;
  if (victim == nullptr) {
    if (!is_worth_it()) return;
    victim = store_.segments.emptiest(options_.slack_bytes / 16);
    if (victim == nullptr || victim->needed_bytes() > victim->size - victim->size / 16) return;
  }
  if (victim->is_open) {  // a survivor segment whose jobs ended early: it can be chosen after it is closed
    log_.retire(*victim);
    return;
  }
  victim_ = victim->header.number;
  offset_ = kSegmentHeaderSize;
  portion_size_ = kSmallestPortion;
  appended_before_ = log_.appended_bytes();
  phase_ = Phase::kReady;
}

void Cleaner::read_portion() {
  const Segment& victim = *store_.segments.find(victim_);
  if (victim.needed_bytes() == 0 && !victim.unsets) offset_ = victim.size;  // nothing in it to copy
  if (offset_ >= victim.size) {
    end_lsn_ = log_.head_end_lsn();
    phase_ = Phase::kSettling;
    return;
  }
  const uint64_t appended = log_.appended_bytes() - appended_before_;
  appended_before_ = log_.appended_bytes();
  const uint64_t wanted =
      std::clamp(appended * kReadPerAppended, portion_size_, std::max(portion_size_, kLargestPortion));
  portion_ = std::make_shared<Portion>();
  portion_->bytes.resize(std::min(wanted, victim.size - offset_));
  phase_ = Phase::kReading;
  io_.run(
      Lane::kRead,
      [portion = portion_, file = victim.file, offset = offset_] {
        const Result<size_t> got = file->read(offset, portion->bytes);
        portion->is_read = got.ok() && *got == portion->bytes.size();
      },
      [this] { take_portion(); });
}

void Cleaner::take_portion() {
  phase_ = Phase::kReady;
  const Segment& victim = *store_.segments.find(victim_);
  if (!portion_->is_read) return give_up();
  std::span<const std::byte> bytes = portion_->bytes;
  const uint64_t start = offset_;
  const uint64_t appended_before = log_.appended_bytes();
  while (!bytes.empty()) {
    const auto record = read_record(bytes, victim.header.nonce);
    if (!record) break;
    carry_over(*record, {victim_, static_cast<uint32_t>(offset_), static_cast<uint32_t>(record->size())});
    bytes = bytes.subspan(record->size());
    offset_ += record->size();
  }
  copied_ += log_.appended_bytes() - appended_before;
  survivors_after_ = log_.head_end_lsn();
  if (offset_ != start) {
    portion_size_ = kSmallestPortion;
    return;
  }
  // The portion holds no complete record: read a larger one, unless the record is damaged.
  if (portion_->bytes.size() == victim.size - offset_) return give_up();
  portion_size_ = portion_->bytes.size() * 4;
}

/// A record that cannot be read must not be dropped, so the segment is kept. If records were already copied
/// from it, no other segment may be removed before it.
void Cleaner::give_up() {
  store_.segments.find(victim_)->is_damaged = true;
  if (offset_ > kSegmentHeaderSize) store_.segments.set_half_cleaned(victim_);
  phase_ = Phase::kIdle;
}

void Cleaner::settle() {
  const bool removes_early = is_planted(Canary::kEarlyRemoval);
  if (!removes_early) {
    if (log_.survivors_are_committing()) return;
    if (log_.has_survivors() || log_.prove_survivors()) return commit_survivors();
    if (log_.durable_lsn() < end_lsn_) return;
  }
  remove();
}

void Cleaner::remove() {
  phase_ = Phase::kRemoving;
  auto status = std::make_shared<Status>();
  io_.run(
      Lane::kWrite,
      [this, status, number = victim_] {
        *status = manifest_.take_off(disk_, number);
        if (status->ok()) *status = disk_.remove(segment_name(number));
        if (status->ok()) *status = disk_.sync_directory();
      },
      [this, status] {
        phase_ = Phase::kIdle;
        status_ = *status;
        if (!status_.ok()) return;
        store_.segments.remove(victim_);
        ++cleaned_;
      });
}

void Cleaner::carry_over(const RecordView& record, const Location& location) {
  switch (record.type) {
    case RecordType::kJob:
      return carry_job(record, location);
    case RecordType::kState:
      return carry_state(record, location);
    case RecordType::kOutcome:
      return carry_outcome(record, location);
    case RecordType::kGone:
      return carry_gone(record);
    case RecordType::kSettings:
      return carry_settings(record, location);
    case RecordType::kGroup:
      return carry_group(record, location);
    case RecordType::kSchedule:
      return carry_schedule(record, location);
    case RecordType::kTurned:
      return carry_turned(record, location);
    case RecordType::kMark:
    case RecordType::kHole:
      return;
  }
}

void Cleaner::carry_job(const RecordView& record, const Location& location) {
  const auto job = parse_job(record.payload);
  if (!job) return;
  const Slot slot = store_.find(job->topic, job->id);
  if (slot == kNoSlot || store_.jobs[slot].location != location) return;
  const StatePayload state = store_.state_of(slot);
  const Location copied = log_.append(stream_for(store_.jobs[slot]), RecordType::kJob, record.payload.size(),
                                      [&](std::span<std::byte> payload, Lsn) {
                                        std::memcpy(payload.data(), record.payload.data(), payload.size());
                                        std::memcpy(payload.data(), &state, sizeof state);
                                      });
  store_.set_job_record(slot, copied);
}

void Cleaner::carry_state(const RecordView& record, const Location& location) {
  const auto old = parse_plain<StatePayload>(record.payload);
  const Slot slot = old ? store_.find_number(old->seq) : kNoSlot;
  if (slot == kNoSlot || store_.jobs.find_extra(slot)->state != location) return;
  store_.set_state_record(slot, copy(stream_for(store_.jobs[slot]), record));
}

/// The record's state may be outdated by now. The copy is the later record, so it gets the current state.
void Cleaner::carry_outcome(const RecordView& record, const Location& location) {
  const auto outcome = parse_outcome(record.payload);
  const Slot slot = outcome ? store_.find_number(outcome->state.seq) : kNoSlot;
  if (slot == kNoSlot) return;
  if (store_.jobs.find_extra(slot)->outcome != location) {
    // Only the state of this record may still be in use: its text belongs to an earlier outcome.
    if (store_.jobs.find_extra(slot)->state == location) {
      store_.set_state_record(slot, copy_with_state(RecordType::kState, slot, {}));
    }
    return;
  }
  store_.set_outcome_record(slot, copy_with_state(RecordType::kOutcome, slot, outcome->text), true);
}

Location Cleaner::copy_with_state(RecordType type, Slot slot, std::string_view text) {
  const StatePayload state = store_.state_of(slot);
  return log_.append(stream_for(store_.jobs[slot]), type, sizeof state + text.size(),
                     [&](std::span<std::byte> payload, Lsn) {
                       std::memcpy(payload.data(), &state, sizeof state);
                       if (!text.empty())
                         std::memcpy(payload.data() + sizeof state, text.data(), text.size());
                     });
}

/// A kGone record is needed as long as the segment with the job's own record exists; otherwise
/// the job would reappear.
void Cleaner::carry_gone(const RecordView& record) {
  const auto gone = parse_plain<GonePayload>(record.payload);
  if (!gone || gone->segment == victim_ || store_.segments.find(gone->segment) == nullptr) return;
  store_.segments.keep_gone(copy(kHeadStream + 1, record), gone->segment);
}

/// Settings stay in the head stream, where a later record is always in a later segment. So a removal (empty
/// settings) is no longer needed once its segment is the oldest.
void Cleaner::carry_settings(const RecordView& record, const Location& location) {
  const auto view = parse_settings(record.payload);
  if (!view) return;
  const TopicNumber number = store_.topics.find(view->topic);
  if (number != kNoTopic && store_.topics[number].settings_record == location) {
    Topic& topic = store_.topics[number];
    store_.segments.release(topic.settings_record);
    topic.settings_record = copy(kHeadStream, record);
    store_.segments.keep(topic.settings_record);
    return;
  }
  const bool is_unset = number == kNoTopic || store_.topics[number].settings_record.segment == 0;
  if (view->settings.empty() && is_unset && store_.segments.oldest_head()->header.number != victim_) {
    store_.segments.find(copy(kHeadStream, record).segment)->unsets = true;
  }
}

/// The group has done its duty: its records are durable, so they need not stay together.
void Cleaner::carry_group(const RecordView& record, const Location& location) {
  std::array<GroupedRecord, kMostInGroup> room;
  const uint32_t nonce = store_.segments.find(victim_)->header.nonce;
  for (const auto& [grouped, offset] : read_group(record, nonce, room)) {
    carry_over(grouped, {location.segment, location.offset + offset, static_cast<uint32_t>(grouped.size())});
  }
}

/// The copy has the present state, like that of a job: the latest kTurned record is not needed any more.
void Cleaner::carry_schedule(const RecordView& record, const Location& location) {
  const auto old = parse_schedule(record.payload);
  ScheduleBook::Entry* entry = old ? store_.schedules.find_number(old->fixed.number) : nullptr;
  if (entry == nullptr || entry->mark().definition != location) return;
  ScheduleView view{old->fixed, entry->name(), entry->progress(), entry->definition()};
  view.fixed.revision = entry->revision();
  view.fixed.next_ms = to_unix_ms(entry->next());
  const Location copied =
      log_.append(kStreamCount - 1, RecordType::kSchedule, payload_size(view),
                  [&](std::span<std::byte> payload, Lsn) { write_payload(payload, view); });
  store_.schedules.set_definition_record(*entry, copied);
}

void Cleaner::carry_turned(const RecordView& record, const Location& location) {
  const auto turned = parse_turned(record.payload);
  ScheduleBook::Entry* entry = turned ? store_.schedules.find_number(turned->fixed.number) : nullptr;
  if (entry == nullptr || entry->mark().turned != location) return;
  store_.schedules.set_turned_record(*entry, copy(stream_until(entry->next()), record));
}

Location Cleaner::copy(uint16_t stream, const RecordView& record) {
  return log_.append(stream, record.type, record.payload.size(), [&](std::span<std::byte> payload, Lsn) {
    std::memcpy(payload.data(), record.payload.data(), payload.size());
  });
}

uint16_t Cleaner::stream_for(const Entry& entry) const {
  return stream_until(entry.state() == JobState::kDelayed ? entry.due() : entry.until());
}

/// Today, tomorrow, then 2-3, 4-7, 8-15, 16-31 days away, and later.
uint16_t Cleaner::stream_until(Moment end) const {
  using std::chrono::days;
  const days away = std::chrono::floor<days>(end) - std::chrono::floor<days>(now_);
  const auto group = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(0, away.count())));
  return static_cast<uint16_t>(
      std::min<uint64_t>(kHeadStream + 1 + static_cast<uint64_t>(group), kStreamCount - 1));
}

}  // namespace delayq::journal
