#include <algorithm>
#include <tuple>

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include "engine/journal/job_table.h"
#include "engine/journal/journal_engine.h"

namespace delayq::journal {

// restore: stores jobs in the state that they had.

void JournalEngine::restore(Moment now, std::span<const RestoreRequest> jobs,
                            Reply<std::vector<PushAnswer>> reply) {
  if (!begin(now, reply)) return;
  if (auto error = refuse_push()) return answer(std::move(reply), Result<std::vector<PushAnswer>>(*error));
  std::vector<PushAnswer> answers;
  answers.reserve(jobs.size());
  for (const RestoreRequest& request : jobs) answers.push_back(restore_one(request, now));
  answer_when_durable(std::move(reply), std::move(answers));
}

/// A restore is atomic on disk, too: the outcome is written before the job's record. If a crash separates
/// them, the outcome belongs to no job and is ignored.
PushAnswer JournalEngine::restore_one(const RestoreRequest& request, Moment now) {
  const Job& job = request.job;
  const TopicNumber topic = store_.topics.find_or_add(job.topic);
  const SlotKey key = store_.ids.key_of(job.id);
  PushAnswer answer;
  uint64_t old_seq = 0;
  uint32_t old_segment = 0;
  if (const Slot old = store_.ids.find(key, topic); old != kNoSlot) {
    const Entry& entry = store_.jobs[old];
    if (request.on_conflict != OnConflict::kReplace) {
      const bool keeps = request.on_conflict == OnConflict::kKeep;
      return {keeps ? PushOutcome::kKept : PushOutcome::kConflict, entry.state(), entry.due()};
    }
    answer.outcome = PushOutcome::kReplaced;
    std::tie(old_seq, old_segment) = make_way(old);
  }
  const JobState waiting = job.due <= now ? JobState::kReady : JobState::kDelayed;
  answer.state = is_live(job.state) ? waiting : job.state;
  answer.due = job.due;
  StatePayload state{};
  state.due_ms = static_cast<int64_t>(to_stored_ms(job.due));
  state.until_ms = is_live(job.state) ? 0 : static_cast<int64_t>(to_stored_ms(job.until));
  state.attempts = job.attempts;
  state.state = answer.state;
  state.flags = job.outlet == Outlet::kCallback ? kHasCallback : 0;
  const Location outcome = job.outcome.empty() ? Location{} : write_first_outcome(state, job.outcome);
  NewJob record;
  record.topic = job.topic;
  record.id = job.id;
  record.group = job.group;
  record.body = job.body;
  record.options = job.options;
  record.priority = job.priority;
  record.lease = request.lease;
  const Location location = write_job(record, state, job.pushed);
  const Slot slot = store_.insert({key, topic, state, job.priority, !job.options.empty(), job.group, location,
                                   to_lease_ms(request.lease)});
  if (outcome.segment != 0) store_.set_outcome_record(slot, outcome, false);
  if (old_seq != 0) write_gone(old_seq, old_segment);
  if (answer.state == JobState::kReady) announce(slot);
  if (is_live(answer.state)) return answer;
  const Topic::Chain& kept = store_.topics[topic].chain(answer.state);
  while (kept.count > request.keep_count) forget(kept.first);
  return answer;
}

Location JournalEngine::write_first_outcome(StatePayload& state, std::string_view outcome) {
  return log_.append(kHeadStream, RecordType::kOutcome, sizeof state + outcome.size(),
                     [&](std::span<std::byte> payload, Lsn lsn) {
                       state.seq = lsn;
                       std::memcpy(payload.data(), &state, sizeof state);
                       std::memcpy(payload.data() + sizeof state, outcome.data(), outcome.size());
                     });
}

// push, take, ack, nack, extend: the transitions of a job's life.

namespace {

constexpr std::string_view kUnreadReason = "it could not be read from disk when it was handed over";
constexpr std::string_view kDamagedReason = "its record on disk is damaged";

/// The size of a job's record without its strings.
constexpr uint64_t kJobOverhead = kRecordHeaderSize + sizeof(JobPayload);

/// How many items ahead memory is prefetched.
constexpr size_t kAhead = 8;

}  // namespace

// ---- push

std::optional<Error> JournalEngine::refuse_push() const {
  const uint64_t unwritten = log_.unsynced_bytes();
  if (log_.disk_free() >= options_.disk_reserve && log_.disk_free() - options_.disk_reserve >= unwritten)
    return {};
  return Error{ErrorCode::kDiskFull, "push",
               fmt::format("{} has {} MiB left, and {} MiB are kept free; make room, or cancel jobs",
                           disk_.name(), log_.disk_free() >> 20, options_.disk_reserve >> 20)};
}

void JournalEngine::push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) {
  if (!begin(now, reply)) return;
  if (auto error = refuse_push()) return answer(std::move(reply), Result<std::vector<PushAnswer>>(*error));
  std::vector<SlotKey> keys(jobs.size());
  std::vector<PushAnswer> answers(jobs.size());
  for (size_t i = 0; i < std::min(kAhead, jobs.size()); ++i) {
    keys[i] = store_.ids.key_of(jobs[i].id);
    store_.ids.prefetch(keys[i]);
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (const size_t ahead = i + kAhead; ahead < jobs.size()) {
      keys[ahead] = store_.ids.key_of(jobs[ahead].id);
      store_.ids.prefetch(keys[ahead]);
    }
    answers[i] = push_one(jobs[i], keys[i], now);
  }
  answer_when_durable(std::move(reply), std::move(answers));
}

Slot JournalEngine::find_elsewhere(SlotKey key, TopicNumber topic) const {
  for (const Slot slot : store_.ids.find_all(key)) {
    if (store_.jobs[slot].topic != topic && is_live(store_.jobs[slot].state())) return slot;
  }
  return kNoSlot;
}

PushAnswer JournalEngine::push_one(const NewJob& job, SlotKey key, Moment now) {
  const TopicNumber topic = store_.topics.find_or_add(job.topic);
  PushAnswer answer;
  if (job.unique_across_topics) {
    if (const Slot other = find_elsewhere(key, topic); other != kNoSlot) {
      store_.topics.note_idle(topic, now);
      return {PushOutcome::kConflict, store_.jobs[other].state(), store_.jobs[other].due()};
    }
  }
  uint64_t old_seq = 0;
  uint32_t old_segment = 0;
  if (const Slot old = store_.ids.find(key, topic); old != kNoSlot) {
    const Entry& entry = store_.jobs[old];
    if (is_live(entry.state()) && job.on_conflict != OnConflict::kReplace) {
      answer.outcome = job.on_conflict == OnConflict::kKeep ? PushOutcome::kKept : PushOutcome::kConflict;
      answer.state = entry.state();
      answer.due = entry.due();
      return answer;
    }
    if (is_live(entry.state())) answer.outcome = PushOutcome::kReplaced;
    std::tie(old_seq, old_segment) = make_way(old);
  } else if (job.adds_none) {
    store_.topics.note_idle(topic, now);
    return {PushOutcome::kAbsent, {}, {}};
  }
  answer.state = job.due <= now ? JobState::kReady : JobState::kDelayed;
  answer.due = job.due;
  StatePayload state{};
  state.due_ms = static_cast<int64_t>(to_stored_ms(job.due));
  state.state = answer.state;
  state.flags = job.outlet == Outlet::kCallback ? kHasCallback : 0;
  const Location location = write_job(job, state, now);
  const Slot slot = store_.insert(
      {key, topic, state, job.priority, !job.options.empty(), job.group, location, to_lease_ms(job.lease)});
  // The kGone record comes after the new job's record: if a crash tears it off, the new job still
  // replaces the old one.
  if (old_seq != 0) write_gone(old_seq, old_segment);
  if (answer.state == JobState::kReady) announce(slot);
  return answer;
}

std::pair<uint64_t, uint32_t> JournalEngine::make_way(Slot slot) {
  const Entry& entry = store_.jobs[slot];
  const std::pair<uint64_t, uint32_t> old{uint64_t{entry.seq}, entry.location.segment};
  store_.erase(slot);
  return old;
}

// ---- take

void JournalEngine::take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) {
  if (!begin(now, reply)) return;
  const TopicNumber number = store_.topics.find(request.topic);
  if (number == kNoTopic) return answer(std::move(reply), Result<TakeAnswer>(TakeAnswer{}));
  Topic& topic = store_.topics[number];
  absl::btree_set<ReadyKey>& ready = topic.ready_for(request.outlet);
  uint64_t count = std::min<uint64_t>(request.count, ready.size());
  if (request.max_reserved != 0) {
    const uint64_t reserved = topic.chain(JobState::kReserved).count;
    count = std::min(count, request.max_reserved - std::min<uint64_t>(request.max_reserved, reserved));
  }
  auto taken = std::vector<Snapshot>();
  std::vector<Location> wanted;
  taken.reserve(count);
  wanted.reserve(2 * count);
  bool is_cut = false;
  uint64_t bytes = 0;
  while (taken.size() < count && !ready.empty()) {
    is_cut = !taken.empty() && bytes >= request.max_bytes;
    if (is_cut) break;
    const Slot slot = ready.begin()->slot;
    bytes += store_.jobs[slot].location.size - kJobOverhead - topic.name.size();
    if (const auto next = std::next(ready.begin()); next != ready.end()) store_.jobs.prefetch(next->slot);
    StatePayload state = store_.state_of(slot);
    if (state.attempts != UINT32_MAX) ++state.attempts;
    state.state = JobState::kReserved;
    const Millis own = store_.jobs[slot].own_lease();
    const bool has_own = request.own_leases && own > Millis::zero();
    state.until_ms =
        static_cast<int64_t>(to_stored_ms(has_own ? saturating_add(now, own) : request.lease_until));
    state.lease = ++next_lease_;
    add_locations(slot, wanted);
    const uint32_t priority = store_.jobs[slot].priority;
    if (request.auto_ack) {  // done before a consumer gets it: at most once
      store_.change(slot, state);
      state.state = JobState::kDone;
      state.lease = 0;
      state.until_ms = static_cast<int64_t>(to_stored_ms(request.keep_done.until));
      finish(slot, JobState::kDone, request.keep_done, now);
    } else {
      move(slot, state);
      store_.jobs.extra(slot).handed_over_s =
          static_cast<uint32_t>(std::clamp<int64_t>(to_unix_seconds(now), 0, UINT32_MAX));
    }
    taken.push_back({state, priority, number, wanted.back().segment != 0});
  }
  auto then = [this, now, is_cut, auto_ack = request.auto_ack, taken = std::move(taken),
               reply = std::move(reply)](RecordReader::Found found) mutable {
    if (!found.status.ok()) {
      for (const Snapshot& job : taken) give_back(job, now);
      return answer(std::move(reply), Result<TakeAnswer>(found.status.error()));
    }
    TakeAnswer result = hand_out(taken, std::move(found), now);
    result.is_cut = is_cut;
    if (auto_ack) {
      answer_when_durable(std::move(reply), std::move(result));
    } else {
      answer(std::move(reply), Result<TakeAnswer>(std::move(result)));
    }
  };
  reader_.read(wanted, std::move(then));
}

/// Makes the reply of a take from the records that have been read.
TakeAnswer JournalEngine::hand_out(std::span<const Snapshot> taken, RecordReader::Found found, Moment now) {
  TakeAnswer result;
  result.storage = std::move(found.storage);
  result.jobs.reserve(taken.size());
  for (size_t i = 0; i < taken.size(); ++i) {
    TakenJob handed;
    const Snapshot& job = taken[i];
    if (!fill_job(handed.job, job, found.records[2 * i], found.records[2 * i + 1])) {
      bury(job, kDamagedReason, now);
      continue;
    }
    if (job.state.lease != 0) {
      const LeaseText text = format_lease({job.state.seq, job.state.lease});
      handed.lease = result.storage.copy({text.data(), text.size()});
    }
    result.jobs.push_back(handed);
  }
  return result;
}

Slot JournalEngine::find_taken(const Snapshot& job) const {
  const Slot slot = store_.find_number(job.state.seq);
  if (slot == kNoSlot || store_.jobs[slot].state() != job.state.state) return kNoSlot;
  if (job.state.lease == 0) return slot;  // done by the take itself; it cannot be taken again
  return store_.jobs.find_extra(slot)->lease == job.state.lease ? slot : kNoSlot;
}

void JournalEngine::give_back(const Snapshot& job, Moment now) {
  // At most once: a job that was acked must not become ready again by itself.
  if (job.state.lease == 0) return bury(job, kUnreadReason, now);
  const Slot slot = find_taken(job);
  if (slot == kNoSlot || failure_) return;
  StatePayload next = waiting_until(slot, store_.jobs[slot].due(), now);
  --next.attempts;
  move(slot, next);
}

/// Two locations for each job: its record, and that of its last outcome (which may be empty).
void JournalEngine::add_locations(Slot slot, std::vector<Location>& wanted) const {
  const Extra* extra = store_.jobs.find_extra(slot);
  wanted.push_back(store_.jobs[slot].location);
  wanted.push_back(extra == nullptr ? Location{} : extra->outcome);
}

JournalEngine::Snapshot JournalEngine::snapshot(Slot slot) const {
  const Extra* extra = store_.jobs.find_extra(slot);
  return {store_.state_of(slot), store_.jobs[slot].priority, store_.jobs[slot].topic,
          extra != nullptr && extra->outcome.segment != 0, extra == nullptr ? 0 : extra->handed_over_s};
}

bool JournalEngine::fill_job(Job& job, const Snapshot& snapshot, const std::optional<RecordView>& record,
                             const std::optional<RecordView>& outcome) {
  const auto view = record ? parse_job(record->payload) : std::nullopt;
  if (!view) return false;
  job.topic = view->topic;
  job.id = view->id;
  job.group = view->group;
  job.options = view->options;
  job.body = view->body;
  job.pushed = from_unix_ms(view->fixed.pushed_ms);
  job.state = snapshot.state.state;
  job.priority = snapshot.priority;
  job.attempts = snapshot.state.attempts;
  job.due = from_unix_ms(snapshot.state.due_ms);
  job.until = from_unix_ms(snapshot.state.until_ms);
  job.handed_over = Moment{std::chrono::seconds{snapshot.handed_over_s}};
  job.cancel_requested = (snapshot.state.flags & kCancelRequested) != 0;
  job.outlet = (snapshot.state.flags & kHasCallback) != 0 ? Outlet::kCallback : Outlet::kTopic;
  if (!snapshot.has_outcome) return true;
  const auto text = outcome ? parse_outcome(outcome->payload) : std::nullopt;
  job.outcome = text ? text->text : kDamagedOutcome;
  return true;
}

void JournalEngine::bury(const Snapshot& job, std::string_view reason, Moment now) {
  const Slot slot = find_taken(job);
  if (slot == kNoSlot || failure_) return;
  finish(slot, JobState::kDead, {now + std::chrono::years(1), UINT32_MAX}, now, reason);
}

// ---- with a lease

Slot JournalEngine::find_lease(const LeaseRef& ref, std::optional<Moment> at) const {
  return find_lease(parse_lease(ref.lease), ref.topic, at);
}

Slot JournalEngine::find_lease(const std::optional<LeaseNumber>& number, std::string_view topic,
                               std::optional<Moment> at) const {
  if (!number) return kNoSlot;
  const Slot slot = store_.find_number(number->seq);
  if (slot == kNoSlot) return kNoSlot;
  const Entry& entry = store_.jobs[slot];
  if (entry.state() != JobState::kReserved || store_.jobs.find_extra(slot)->lease != number->lease)
    return kNoSlot;
  if (at && to_stored_ms(*at) >= entry.until_ms) return kNoSlot;
  return store_.topics[entry.topic].name == topic ? slot : kNoSlot;
}

void JournalEngine::ack(Moment now, std::span<const AckRequest> leases,
                        Reply<std::vector<AckOutcome>> reply) {
  if (!begin(now, reply)) return;
  std::vector<std::optional<LeaseNumber>> numbers;
  numbers.reserve(leases.size());
  bool is_more_than_kept = false;
  for (const AckRequest& request : leases) {
    numbers.push_back(parse_lease(request.lease.lease));
    if (numbers.back()) store_.prefetch_number(numbers.back()->seq);
    is_more_than_kept |= leases.size() > request.keep.count;
  }
  std::vector<AckOutcome> outcomes;
  outcomes.reserve(leases.size());
  std::vector<Slot> acked(leases.size());
  absl::flat_hash_map<TopicNumber, uint64_t> left;  // how many jobs of each topic are still to be ended
  for (size_t i = 0; i < leases.size(); ++i) {
    if (const size_t ahead = i + kAhead; ahead < leases.size() && numbers[ahead])
      store_.prefetch_numbered_entry(numbers[ahead]->seq);
    const Slot slot = acked[i] = find_lease(numbers[i], leases[i].lease.topic, now);
    outcomes.push_back(slot == kNoSlot ? AckOutcome::kStale : AckOutcome::kAcked);
    if (slot == kNoSlot) continue;
    store_.jobs.extra(slot).lease = 0;  // a lease that is named twice is stale the second time
    if (is_more_than_kept) ++left[store_.jobs[slot].topic];
  }
  for (size_t i = 0; i < leases.size(); ++i) {
    if (const size_t ahead = i + kAhead; ahead < leases.size() && acked[ahead] != kNoSlot)
      store_.ids.prefetch_erase(acked[ahead]);
    if (acked[i] == kNoSlot) continue;
    // Those that the later ones of this batch would push out are not even written as done.
    const bool is_kept = !is_more_than_kept || left[store_.jobs[acked[i]].topic]-- <= leases[i].keep.count;
    if (is_kept) {
      finish(acked[i], JobState::kDone, leases[i].keep, now, leases[i].outcome);
    } else {
      forget(acked[i]);
    }
  }
  answer_when_durable(std::move(reply), std::move(outcomes));
}

NackOutcome JournalEngine::nack_one(const NackRequest& request, Moment now) {
  const Slot slot = find_lease(request.lease, request.expired ? std::nullopt : std::optional(now));
  if (slot == kNoSlot) return NackOutcome::kStale;
  if (store_.jobs[slot].cancel_requested) {
    forget(slot);
    return NackOutcome::kCancelled;
  }
  const std::string_view reason = request.uncounted ? std::string_view{} : request.reason;
  if (request.retry_at) {
    StatePayload next = waiting_until(slot, *request.retry_at, now);
    if (request.uncounted) --next.attempts;
    move(slot, next, reason);
    return NackOutcome::kRetried;
  }
  finish(slot, JobState::kDead, request.keep, now, reason);
  return NackOutcome::kDead;
}

void JournalEngine::nack(Moment now, std::span<const NackRequest> leases,
                         Reply<std::vector<NackOutcome>> reply) {
  if (!begin(now, reply)) return;
  std::vector<NackOutcome> outcomes;
  outcomes.reserve(leases.size());
  for (const NackRequest& request : leases) outcomes.push_back(nack_one(request, now));
  answer_when_durable(std::move(reply), std::move(outcomes));
}

void JournalEngine::extend(Moment now, std::span<const ExtendRequest> leases,
                           Reply<std::vector<ExtendAnswer>> reply) {
  if (!begin(now, reply)) return;
  std::vector<ExtendAnswer> extended(leases.size());
  for (size_t i = 0; i < leases.size(); ++i) {
    const Slot slot = find_lease(leases[i].lease, now);
    if (slot == kNoSlot) continue;
    StatePayload next = store_.state_of(slot);
    extended[i] = leases[i].until;
    if (leases[i].never_sooner) extended[i] = std::max(leases[i].until, from_unix_ms(next.until_ms));
    next.until_ms = static_cast<int64_t>(to_stored_ms(*extended[i]));
    move(slot, next);
  }
  answer_when_durable(std::move(reply), std::move(extended));
}

}  // namespace delayq::journal
