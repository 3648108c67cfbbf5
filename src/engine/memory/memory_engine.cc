#include "engine/memory/memory_engine.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/memory/job_table.h"

namespace delayq {

namespace {

constexpr uint32_t kTransitionsPerTick = 10'000;
constexpr uint32_t kMostOfGroup = 4'096;  ///< jobs of a group that one call looks at

LeaseInfo lease_info(const memory::StoredJob& job) {
  return {job.topic, memory::lease_text(job.lease), job.options, job.attempts};
}

/// How many more jobs the topic's limit allows to take. An auto-acked job counts only during this one call.
uint64_t room_for(const TakeRequest& request, const memory::JobTable::Topic* topic) {
  if (request.max_reserved == 0 || topic == nullptr) return request.count;
  const uint64_t reserved = topic->in(JobState::kReserved).size();
  return std::min<uint64_t>(request.count,
                            request.max_reserved - std::min<uint64_t>(reserved, request.max_reserved));
}

/// The bytes that count towards TakeRequest::max_bytes. All jobs have the same topic, so its
/// name does not count.
uint64_t bytes_of(const memory::StoredJob& job) {
  return job.id.size() + job.group.size() + job.options.size() + job.body.size();
}

}  // namespace

// ---- a job's life

void MemoryEngine::catch_up(Moment now) {
  while (wake_next(now)) {
  }
  note_expired(now, false);
}

bool MemoryEngine::wake_next(Moment now) {
  if (jobs_.alarms().empty() || jobs_.alarms().begin()->first.first > now) return false;
  StoredJob& job = *jobs_.alarms().begin()->second;
  if (job.state == JobState::kDelayed) {
    wait_until(job, now, job.due);
    if (watches_due_) due_jobs_.push_back({job.topic, job.id, job.group});
  } else {
    jobs_.erase(job);
  }
  return true;
}

void MemoryEngine::note_expired(Moment now, bool again) {
  for (const auto& [deadline, job] : jobs_.deadlines()) {
    if (deadline.first > now) break;
    if (job->expiry_told && !again) continue;
    job->expiry_told = true;
    expired_[job->lease] = now;
  }
}

void MemoryEngine::wait_until(StoredJob& job, Moment now, Moment due) {
  jobs_.update(job, [&](StoredJob& changed) {
    changed.state = due <= now ? JobState::kReady : JobState::kDelayed;
    changed.due = due;
    changed.until = Moment{};
    changed.lease = 0;
  });
  if (job.state == JobState::kReady) ready_topics_.emplace(job.topic, job.outlet);
}

void MemoryEngine::push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) {
  catch_up(now);
  std::vector<PushAnswer> answers;
  for (const NewJob& job : jobs) answers.push_back(push_one(now, job));
  answer<std::vector<PushAnswer>>(reply, std::move(answers));
}

PushAnswer MemoryEngine::push_one(Moment now, const NewJob& job) {
  if (job.unique_across_topics) {
    for (const std::string& topic : jobs_.topics_of(job.id)) {
      if (topic == job.topic) continue;
      const StoredJob& elsewhere = *jobs_.find(topic, job.id);
      return {PushOutcome::kConflict, elsewhere.state, elsewhere.due};
    }
  }
  PushOutcome outcome = PushOutcome::kCreated;
  if (const StoredJob* existing = jobs_.find(job.topic, job.id)) {
    if (is_live(existing->state)) {
      if (job.on_conflict == OnConflict::kReject)
        return {PushOutcome::kConflict, existing->state, existing->due};
      if (job.on_conflict == OnConflict::kKeep) return {PushOutcome::kKept, existing->state, existing->due};
      outcome = PushOutcome::kReplaced;
    }
    jobs_.erase(*existing);
  } else if (job.adds_none) {
    return {PushOutcome::kAbsent, {}, {}};
  }
  StoredJob fresh;
  fresh.topic = job.topic;
  fresh.id = job.id;
  fresh.group = job.group;
  fresh.body = job.body;
  fresh.options = job.options;
  fresh.priority = job.priority;
  fresh.outlet = job.outlet;
  fresh.own_lease = job.lease;
  fresh.due = job.due;
  fresh.pushed = now;
  fresh.state = job.due <= now ? JobState::kReady : JobState::kDelayed;
  if (fresh.state == JobState::kReady) ready_topics_.emplace(fresh.topic, fresh.outlet);
  const StoredJob& stored = jobs_.insert(std::move(fresh));
  return {outcome, stored.state, stored.due};
}

void MemoryEngine::restore(Moment now, std::span<const RestoreRequest> jobs,
                           Reply<std::vector<PushAnswer>> reply) {
  catch_up(now);
  std::vector<PushAnswer> answers;
  for (const RestoreRequest& request : jobs) answers.push_back(restore_one(now, request));
  answer<std::vector<PushAnswer>>(reply, std::move(answers));
}

PushAnswer MemoryEngine::restore_one(Moment now, const RestoreRequest& request) {
  const Job& job = request.job;
  PushOutcome outcome = PushOutcome::kCreated;
  if (const StoredJob* existing = jobs_.find(job.topic, job.id)) {
    outcome = request.on_conflict == OnConflict::kKeep ? PushOutcome::kKept : PushOutcome::kConflict;
    if (request.on_conflict != OnConflict::kReplace) return {outcome, existing->state, existing->due};
    outcome = PushOutcome::kReplaced;
    jobs_.erase(*existing);
  }
  StoredJob fresh = memory::stored(job);
  fresh.own_lease = request.lease;
  if (is_live(job.state)) {
    fresh.state = job.due <= now ? JobState::kReady : JobState::kDelayed;
    fresh.until = Moment{};
  }
  if (fresh.state == JobState::kReady) ready_topics_.emplace(fresh.topic, fresh.outlet);
  const StoredJob& stored = jobs_.insert(std::move(fresh));
  const PushAnswer answer{outcome, stored.state, stored.due};
  if (is_live(answer.state)) return answer;
  const memory::JobTable::InOrder& kept = jobs_.find_topic(job.topic)->in(answer.state);
  while (kept.size() > request.keep_count) jobs_.erase(*kept.begin()->second);
  return answer;
}

void MemoryEngine::take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) {
  catch_up(now);
  TakeAnswer taken;
  const uint64_t room = room_for(request, jobs_.find_topic(request.topic));
  uint64_t bytes = 0;
  while (taken.jobs.size() < room) {
    const memory::JobTable::Topic* topic = jobs_.find_topic(request.topic);
    if (topic == nullptr || topic->ready_for(request.outlet).empty()) break;
    taken.is_cut = !taken.jobs.empty() && bytes >= request.max_bytes;
    if (taken.is_cut) break;
    StoredJob& job = *topic->ready_for(request.outlet).begin()->second;
    bytes += bytes_of(job);
    jobs_.update(job, [&](StoredJob& changed) {
      changed.state = JobState::kReserved;
      if (changed.attempts != UINT32_MAX) changed.attempts += 1;
      const bool has_own = request.own_leases && changed.own_lease > Millis::zero();
      changed.until = has_own ? saturating_add(now, changed.own_lease) : request.lease_until;
      changed.handed_over = now;
      changed.lease = ++last_lease_;
      changed.expiry_told = false;
    });
    taken.jobs.push_back(
        {taken.storage.copy(memory::lease_text(job.lease)), memory::copy_job(job, true, taken.storage)});
    if (!request.auto_ack) continue;
    finish(job, JobState::kDone, request.keep_done, now, {});
    taken.jobs.back().lease = {};
    taken.jobs.back().job.state = JobState::kDone;
    taken.jobs.back().job.until = request.keep_done.until;
  }
  answer<TakeAnswer>(reply, std::move(taken));
}

// ---- with a lease

MemoryEngine::StoredJob* MemoryEngine::current(Moment now, const LeaseRef& lease) {
  if (lease.lease.empty() || lease.lease.front() != memory::kLeasePrefix) return nullptr;
  const std::optional<uint64_t> number = memory::parse_number(lease.lease.substr(1));
  StoredJob* job = number ? jobs_.find_lease(*number) : nullptr;
  return job != nullptr && job->topic == lease.topic && now < job->until ? job : nullptr;
}

void MemoryEngine::finish(StoredJob& job, JobState state, const Keep& keep, Moment now,
                          std::string_view outcome) {
  if (keep.count == 0 || keep.until == Moment{}) {
    jobs_.erase(job);
    return;
  }
  jobs_.update(job, [&](StoredJob& changed) {
    changed.state = state;
    changed.until = keep.until;
    changed.ended = now;
    changed.lease = 0;
    changed.cancel_requested = false;
    if (!outcome.empty()) changed.outcome = outcome;
  });
  const memory::JobTable::InOrder& kept = jobs_.find_topic(job.topic)->in(state);
  while (kept.size() > keep.count) jobs_.erase(*kept.begin()->second);
}

void MemoryEngine::ack(Moment now, std::span<const AckRequest> leases, Reply<std::vector<AckOutcome>> reply) {
  catch_up(now);
  std::vector<AckOutcome> outcomes;
  for (const AckRequest& request : leases) {
    StoredJob* job = current(now, request.lease);
    if (job != nullptr) finish(*job, JobState::kDone, request.keep, now, request.outcome);
    outcomes.push_back(job != nullptr ? AckOutcome::kAcked : AckOutcome::kStale);
  }
  answer<std::vector<AckOutcome>>(reply, std::move(outcomes));
}

void MemoryEngine::nack(Moment now, std::span<const NackRequest> leases,
                        Reply<std::vector<NackOutcome>> reply) {
  catch_up(now);
  std::vector<NackOutcome> outcomes;
  for (const NackRequest& request : leases) {
    // An expired lease stays the latest one until it is resolved.
    StoredJob* job = current(request.expired ? Moment::min() : now, request.lease);
    if (job == nullptr) {
      outcomes.push_back(NackOutcome::kStale);
    } else if (job->cancel_requested) {
      jobs_.erase(*job);
      outcomes.push_back(NackOutcome::kCancelled);
    } else if (!request.retry_at) {
      finish(*job, JobState::kDead, request.keep, now, request.reason);
      outcomes.push_back(NackOutcome::kDead);
    } else {
      if (request.uncounted) {
        job->attempts -= 1;
      } else if (!request.reason.empty()) {
        job->outcome = request.reason;
      }
      wait_until(*job, now, *request.retry_at);
      outcomes.push_back(NackOutcome::kRetried);
    }
  }
  answer<std::vector<NackOutcome>>(reply, std::move(outcomes));
}

void MemoryEngine::extend(Moment now, std::span<const ExtendRequest> leases,
                          Reply<std::vector<ExtendAnswer>> reply) {
  catch_up(now);
  std::vector<ExtendAnswer> extended(leases.size());
  for (size_t i = 0; i < leases.size(); ++i) {
    StoredJob* job = current(now, leases[i].lease);
    if (job == nullptr) continue;
    const Moment until = leases[i].never_sooner ? std::max(leases[i].until, job->until) : leases[i].until;
    job->expiry_told = false;
    jobs_.update(*job, [&](StoredJob& changed) { changed.until = until; });
    extended[i] = until;
  }
  answer<std::vector<ExtendAnswer>>(reply, std::move(extended));
}

void MemoryEngine::held(Moment now, std::span<const LeaseRef> leases, bool with_bodies,
                        Reply<HeldJobs> reply) {
  catch_up(now);
  HeldJobs held;
  for (const LeaseRef& lease : leases) {
    const StoredJob* const job = current(Moment::min(), lease);
    if (job == nullptr) {
      held.jobs.emplace_back();
    } else {
      held.jobs.emplace_back(memory::copy_job(*job, with_bodies, held.storage));
    }
  }
  answer<HeldJobs>(reply, std::move(held));
}

// ---- by id, by group, by topic

void MemoryEngine::cancel(Moment now, std::span<const JobRef> jobs, Reply<std::vector<CancelOutcome>> reply) {
  catch_up(now);
  std::vector<CancelOutcome> outcomes;
  for (const JobRef& ref : jobs) {
    StoredJob* job = jobs_.find(ref.topic, ref.id);
    if (job == nullptr) {
      outcomes.push_back(CancelOutcome::kUnknown);
    } else if (job->state == JobState::kDone) {
      outcomes.push_back(CancelOutcome::kDone);
    } else if (job->state == JobState::kDead) {
      outcomes.push_back(CancelOutcome::kDead);
    } else if (job->state == JobState::kReserved) {
      job->cancel_requested = true;
      outcomes.push_back(CancelOutcome::kReserved);
    } else {
      jobs_.erase(*job);
      outcomes.push_back(CancelOutcome::kCancelled);
    }
  }
  answer<std::vector<CancelOutcome>>(reply, std::move(outcomes));
}

void MemoryEngine::cancel_group(Moment now, const GroupCancelRequest& request,
                                Reply<GroupCancelAnswer> reply) {
  catch_up(now);
  GroupCancelAnswer cancelled;
  std::vector<StoredJob*> members;  // cancelling removes them from the group
  const memory::JobTable::InOrder& group = jobs_.group(request.group);
  auto next = group.upper_bound(memory::parse_number(request.cursor).value_or(0));
  uint64_t last = 0;
  for (uint32_t looked = 0; next != group.end() && looked < kMostOfGroup; ++next, ++looked) {
    if (members.size() == request.max) break;
    const auto& [sequence, job] = *next;
    if (!job->cancel_requested && covers(request.topics, job->topic)) members.push_back(job);
    last = sequence;
  }
  if (next != group.end()) cancelled.cursor = std::to_string(last);
  for (StoredJob* job : members) {
    if (job->state == JobState::kReserved) {
      job->cancel_requested = true;
      ++cancelled.reserved;
    } else {
      ++cancelled.cancelled;
      ++cancelled.cancelled_by_topic[std::string(job->topic)];
      jobs_.erase(*job);
    }
  }
  answer<GroupCancelAnswer>(reply, cancelled);
}

void MemoryEngine::reschedule(Moment now, std::span<const RescheduleRequest> jobs,
                              Reply<std::vector<RescheduleOutcome>> reply) {
  catch_up(now);
  std::vector<RescheduleOutcome> outcomes;
  for (const RescheduleRequest& request : jobs) {
    StoredJob* job = jobs_.find(request.job.topic, request.job.id);
    if (job == nullptr) {
      outcomes.push_back(RescheduleOutcome::kUnknown);
    } else if (job->state == JobState::kReserved) {
      outcomes.push_back(RescheduleOutcome::kReserved);
    } else if (job->state == JobState::kDone) {
      outcomes.push_back(RescheduleOutcome::kDone);
    } else {
      if (job->state == JobState::kDead) job->attempts = 0;
      wait_until(*job, now, request.due);
      outcomes.push_back(RescheduleOutcome::kMoved);
    }
  }
  answer<std::vector<RescheduleOutcome>>(reply, std::move(outcomes));
}

void MemoryEngine::revive(StoredJob& job, Moment now) {
  job.attempts = 0;
  wait_until(job, now, now);
}

void MemoryEngine::redrive(Moment now, std::string_view topic, std::span<const std::string_view> ids,
                           Reply<uint64_t> reply) {
  catch_up(now);
  uint64_t redriven = 0;
  for (const std::string_view id : ids) {
    StoredJob* job = jobs_.find(topic, id);
    if (job == nullptr || job->state != JobState::kDead) continue;
    revive(*job, now);
    ++redriven;
  }
  answer<uint64_t>(reply, redriven);
}

void MemoryEngine::redrive_oldest(Moment now, std::string_view topic, uint32_t max, Reply<uint64_t> reply) {
  catch_up(now);
  uint64_t redriven = 0;
  if (const memory::JobTable::Topic* found = jobs_.find_topic(topic)) {
    const memory::JobTable::InOrder& dead = found->in(JobState::kDead);
    for (; redriven < max && !dead.empty(); ++redriven) revive(*dead.begin()->second, now);
  }
  answer<uint64_t>(reply, redriven);
}

void MemoryEngine::purge(Moment now, std::string_view topic, JobState state, uint32_t max,
                         Reply<uint64_t> reply) {
  catch_up(now);
  uint64_t purged = 0;
  for (; purged < max; ++purged) {
    const memory::JobTable::Topic* found = jobs_.find_topic(topic);
    if (found == nullptr || found->in(state).empty()) break;
    jobs_.erase(*found->in(state).begin()->second);
  }
  answer<uint64_t>(reply, purged);
}

void MemoryEngine::trim(Moment now, const TrimRequest& request, Reply<TrimAnswer> reply) {
  catch_up(now);
  TrimAnswer trimmed;
  uint64_t last = memory::parse_number(request.cursor).value_or(0);
  for (uint32_t looked = 0; looked < request.max; ++looked) {
    const memory::JobTable::Topic* topic = jobs_.find_topic(request.topic);
    if (topic == nullptr) return answer<TrimAnswer>(reply, trimmed);
    const memory::JobTable::InOrder& kept = topic->in(request.state);
    const bool is_one_too_many = kept.size() > request.count;
    const auto found = is_one_too_many ? kept.begin() : kept.upper_bound(last);
    if (found == kept.end()) return answer<TrimAnswer>(reply, trimmed);
    if (!is_one_too_many) last = found->first;
    StoredJob& job = *found->second;
    const Moment end = saturating_add(job.ended == Moment{} ? now : job.ended, request.time);
    if (is_one_too_many || end <= now) {
      jobs_.erase(job);
      ++trimmed.forgotten;
    } else if (end < job.until) {
      jobs_.update(job, [&](StoredJob& changed) { changed.until = end; });
    }
  }
  trimmed.cursor = std::to_string(last);
  answer<TrimAnswer>(reply, std::move(trimmed));
}

// ---- settings of topics

void MemoryEngine::store_settings(std::string_view topic, std::string_view settings, Reply<bool> reply) {
  if (settings.empty()) {
    settings_.erase(std::string{topic});
  } else {
    settings_.insert_or_assign(std::string{topic}, std::string{settings});
  }
  answer<bool>(reply, true);
}

void MemoryEngine::load_settings(Reply<std::vector<TopicSettings>> reply) {
  std::vector<TopicSettings> all;
  for (const auto& [topic, settings] : settings_) all.push_back({topic, settings});
  answer<std::vector<TopicSettings>>(reply, std::move(all));
}

// ---- schedules

void MemoryEngine::turn(Moment now, std::span<const TurnRequest> requests,
                        Reply<std::vector<TurnAnswer>> reply) {
  catch_up(now);
  std::vector<TurnAnswer> answers;
  for (const TurnRequest& request : requests) answers.push_back(turn_one(now, request));
  answer<std::vector<TurnAnswer>>(reply, std::move(answers));
}

TurnAnswer MemoryEngine::turn_one(Moment now, const TurnRequest& request) {
  Schedules::Entry* entry = schedules_.find(request.name);
  if ((entry == nullptr ? 0 : entry->schedule.revision) != request.expected) return {TurnOutcome::kChanged};
  TurnAnswer turned;
  if (request.job) {
    StoredJob* previous =
        request.previous ? jobs_.find(request.previous->topic, request.previous->id) : nullptr;
    if (previous != nullptr && !is_live(previous->state)) previous = nullptr;
    if (previous != nullptr && request.overlap == Overlap::kSkip) {
      turned.outcome = TurnOutcome::kSkipped;
    } else {
      if (previous != nullptr && request.overlap == Overlap::kReplace &&
          previous->state != JobState::kReserved) {
        jobs_.erase(*previous);
        turned.has_replaced = true;
      }
      turned.pushed = push_one(now, *request.job).outcome;
    }
  }
  if (request.revision == 0) {
    schedules_.erase(request.name);
    return turned;
  }
  if (entry == nullptr) entry = &schedules_.find_or_insert(request.name);
  entry->schedule.revision = request.revision;
  if (request.definition) entry->schedule.definition = *request.definition;
  entry->schedule.progress =
      turned.outcome == TurnOutcome::kSkipped ? request.progress_if_skipped : request.progress;
  schedules_.set_next(*entry, request.next);
  return turned;
}

void MemoryEngine::get_schedule(Moment now, std::string_view name,
                                Reply<std::optional<StoredSchedule>> reply) {
  catch_up(now);
  const Schedules::Entry* entry = schedules_.find(name);
  answer<std::optional<StoredSchedule>>(
      reply, entry == nullptr ? std::nullopt : std::optional<StoredSchedule>{entry->schedule});
}

void MemoryEngine::list_schedules(Moment now, const ScheduleListRequest& request, Reply<SchedulePage> reply) {
  catch_up(now);
  answer<SchedulePage>(reply, schedules_.page(request));
}

// ---- running

Moment MemoryEngine::tick(Moment now) {
  for (uint32_t done = 0; done < kTransitionsPerTick; ++done) {
    if (!wake_next(now)) break;
  }
  note_expired(now, true);
  if (due_schedules_.empty()) due_schedules_ = schedules_.take_due(now);
  Moment next = jobs_.alarms().empty() ? kNever : std::max(now, jobs_.alarms().begin()->first.first);
  // An expired lease waits for its nack, not for a tick.
  const auto lease = jobs_.deadlines().upper_bound({now, std::numeric_limits<uint64_t>::max()});
  if (lease != jobs_.deadlines().end()) next = std::min(next, lease->first.first);
  return std::min(next, std::max(now, schedules_.next_report()));
}

bool MemoryEngine::poll(EngineListener& listener) {
  // Replies and listeners may call verbs; their replies and events are delivered by the next poll().
  auto answers = std::exchange(answers_, {});
  const auto ready_topics = std::exchange(ready_topics_, {});
  const bool any = !answers.empty() || !ready_topics.empty() || !expired_.empty() ||
                   !due_schedules_.empty() || !due_jobs_.empty();
  for (auto& give : answers) give();
  for (const auto& [topic, outlet] : ready_topics) listener.on_ready(topic, outlet);
  tell_expired(listener);
  if (!due_jobs_.empty()) listener.on_due(std::exchange(due_jobs_, {}), 0);
  if (!due_schedules_.empty()) listener.on_schedules_due(std::exchange(due_schedules_, {}));
  return any;
}

void MemoryEngine::tell_expired(EngineListener& listener) {
  std::vector<LeaseInfo> leases;
  for (const auto& [lease, found_at] : std::exchange(expired_, {})) {
    const StoredJob* job = jobs_.find_lease(lease);
    if (job != nullptr && job->until <= found_at) leases.push_back(lease_info(*job));
  }
  if (!leases.empty()) listener.on_expired(std::move(leases));
}

void MemoryEngine::set_wakeup(std::function<void()> wakeup) { (void)wakeup; }

void MemoryEngine::flush(Reply<bool> reply) { answer<bool>(reply, true); }

void MemoryEngine::backup(std::string_view name, Reply<BackupReport> reply) {
  (void)name;
  answer<BackupReport>(reply, Error{ErrorCode::kUnavailable, "backup",
                                    "the memory engine keeps no files to copy; use export instead"});
}

}  // namespace delayq
