#include "engine/journal/store.h"

#include <algorithm>
#include <vector>

namespace delayq::journal {

Slot Store::insert(const NewEntry& fresh) {
  const Slot slot = jobs.add();
  Entry& entry = jobs[slot];
  entry.topic = fresh.topic;
  entry.due_ms = static_cast<uint64_t>(fresh.state.due_ms) & kLatestMs;
  entry.until_ms = static_cast<uint64_t>(fresh.state.until_ms) & kLatestMs;
  entry.set_state(fresh.state.state);
  entry.seq = fresh.state.seq & kMaxLsn;
  entry.attempts = fresh.state.attempts;
  entry.cancel_requested = fresh.state.flags & kCancelRequested;
  entry.has_callback = (fresh.state.flags & kHasCallback) != 0;
  entry.has_options = fresh.has_options;
  entry.priority = fresh.priority;
  entry.set_own_lease(fresh.lease_ms);
  entry.location = fresh.location;
  segments.keep(fresh.location);
  ids.insert(fresh.key, slot);
  if (!fresh.group.empty() && fresh.state.state != JobState::kDone) groups.add(fresh.group, slot);
  enter(slot, fresh.state.lease);
  return slot;
}

void Store::erase(Slot slot) {
  leave(slot);
  groups.remove(slot);
  ids.erase(slot);
  segments.release(jobs[slot].location);
  if (const Extra* extra = jobs.find_extra(slot)) release_records(*extra);
  if (jobs[slot].is_tracked) numbers_.erase(number_key(jobs[slot].seq), slot);
  jobs.remove(slot);
}

void Store::change(Slot slot, const StatePayload& next) {
  Entry& entry = jobs[slot];
  if (entry.state() == next.state) {  // the job keeps its place in its topic's list
    if (wheel.contains(slot)) wheel.remove(slot);
    topics.change_due(slot, static_cast<uint64_t>(next.due_ms));
    entry.until_ms = static_cast<uint64_t>(next.until_ms) & kLatestMs;
    entry.attempts = next.attempts;
    entry.cancel_requested = next.flags & kCancelRequested;
    if (next.lease != 0) jobs.extra(slot).lease = next.lease;
    wait(slot);
    return;
  }
  leave(slot);
  entry.due_ms = static_cast<uint64_t>(next.due_ms) & kLatestMs;
  entry.until_ms = static_cast<uint64_t>(next.until_ms) & kLatestMs;
  entry.set_state(next.state);
  entry.attempts = next.attempts;
  entry.cancel_requested = next.flags & kCancelRequested;
  if (next.state == JobState::kDone) groups.remove(slot);
  enter(slot, next.lease);
}

StatePayload Store::state_of(Slot slot) const {
  const Entry& entry = jobs[slot];
  const Extra* extra = jobs.find_extra(slot);
  StatePayload state{};
  state.seq = entry.seq;
  state.due_ms = static_cast<int64_t>(entry.due_ms);
  state.until_ms = static_cast<int64_t>(entry.until_ms);
  state.lease = extra == nullptr ? 0 : extra->lease;
  state.attempts = entry.attempts;
  state.state = entry.state();
  state.flags = static_cast<uint8_t>((entry.cancel_requested ? kCancelRequested : 0) |
                                     (entry.has_callback ? kHasCallback : 0));
  return state;
}

void Store::set_job_record(Slot slot, const Location& location) {
  segments.release(jobs[slot].location);
  jobs[slot].location = location;
  segments.keep(location);
  if (jobs.find_extra(slot) != nullptr) set_records(slot, {}, jobs.extra(slot).outcome);
}

void Store::set_state_record(Slot slot, const Location& location) {
  set_records(slot, location, jobs.extra(slot).outcome);
}

void Store::set_outcome_record(Slot slot, const Location& location, bool is_state) {
  set_records(slot, is_state ? location : jobs.extra(slot).state, location);
}

/// Both may be the same record, which then counts once.
void Store::set_records(Slot slot, const Location& state, const Location& outcome) {
  Extra& extra = jobs.extra(slot);
  release_records(extra);
  extra.state = state;
  extra.outcome = outcome;
  segments.keep(state);
  if (outcome != state) segments.keep(outcome);
  track(slot);
}

void Store::release_records(const Extra& extra) {
  segments.release(extra.state);
  if (extra.outcome != extra.state) segments.release(extra.outcome);
}

void Store::enter(Slot slot, uint64_t lease) {
  Entry& entry = jobs[slot];
  if (!is_live_ && entry.state() == JobState::kReady) entry.set_state(JobState::kDelayed);
  topics.enter(slot);
  const bool is_reserved = entry.state() == JobState::kReserved;
  if (is_reserved || (!is_live(entry.state()) && lease != 0)) jobs.extra(slot).lease = lease;
  track(slot);
  wait(slot);
}

void Store::wait(Slot slot) {
  const Entry& entry = jobs[slot];
  if (!is_live_ || entry.state() == JobState::kReady) return;
  wheel.add(slot, entry.state() == JobState::kDelayed ? entry.due_ms : entry.until_ms);
  if (entry.state() == JobState::kDelayed) keep_bins(entry.topic);
}

void Store::keep_bins(TopicNumber topic) {
  const Topic::Chain& delayed = topics[topic].chain(JobState::kDelayed);
  const bool has_bins = bins.has(topic);
  if (delayed.count >= ForecastBins::kManyJobs && !has_bins) {
    bins.start(topic);
    for (Slot slot = delayed.first; slot != kNoSlot; slot = jobs[slot].chain_next) {
      if (jobs[slot].in_wheel) bins.add(topic, jobs[slot], jobs[slot].due_ms);
    }
  } else if (delayed.count < ForecastBins::kManyJobs / 4 && has_bins) {
    bins.stop(topic);
  }
}

void Store::leave(Slot slot) {
  const Entry& entry = jobs[slot];
  if (wheel.contains(slot)) wheel.remove(slot);
  topics.leave(slot);
  if (Extra* extra = jobs.find_extra(slot)) extra->lease = extra->handed_over_s = 0;
  if (is_live_ && entry.state() == JobState::kDelayed) keep_bins(entry.topic);
}

void Store::track(Slot slot) {
  Entry& entry = jobs[slot];
  const Extra* extra = jobs.find_extra(slot);
  const bool is_leased = entry.state() == JobState::kReserved && extra != nullptr && extra->lease != 0;
  const bool has_records = extra != nullptr && (extra->state.segment != 0 || extra->outcome.segment != 0);
  const bool wanted = !is_live_ || is_leased || has_records;
  if (wanted != static_cast<bool>(entry.is_tracked)) {
    if (wanted) {
      numbers_.insert(number_key(entry.seq), slot);
    } else {
      numbers_.erase(number_key(entry.seq), slot);
    }
    entry.is_tracked = wanted;
  }
  jobs.trim_extra(slot);
}

void Store::go_live(Moment now) {
  is_live_ = true;
  numbers_ = SlotMap{};
  schedules.go_live();
  wheel.observe(now);
  const uint64_t now_ms = to_stored_ms(now);
  for (const TopicNumber number : topics.page({}, UINT32_MAX)) {
    Topic& topic = topics[number];
    topics.sort_by_end(number, JobState::kDone);
    topics.sort_by_end(number, JobState::kDead);
    for (const JobState state : {JobState::kReserved, JobState::kDone, JobState::kDead}) {
      for (Slot slot = topic.chain(state).first; slot != kNoSlot; slot = jobs[slot].chain_next) {
        wheel.add(slot, jobs[slot].until_ms);
        jobs[slot].is_tracked = 0;
        track(slot);
      }
    }
    if (topic.chain(JobState::kDelayed).count >= ForecastBins::kManyJobs) bins.start(number);
    for (Slot slot = topic.chain(JobState::kDelayed).first; slot != kNoSlot;) {
      const Slot next = jobs[slot].chain_next;
      if (next != kNoSlot) jobs.prefetch(next);
      jobs[slot].is_tracked = 0;
      track(slot);
      if (jobs[slot].due_ms > now_ms) {
        wheel.add(slot, jobs[slot].due_ms);
      } else {
        topics.leave(slot);
        jobs[slot].set_state(JobState::kReady);
        topics.enter(slot);
      }
      slot = next;
    }
    topics.note_idle(number, now);
  }
}

Slot Store::find(std::string_view topic_name, std::string_view id) const {
  const TopicNumber topic = topics.find(topic_name);
  return topic == kNoTopic ? kNoSlot : ids.find(ids.key_of(id), topic);
}

Forecast Store::forecast(TopicNumber topic, const ForecastRequest& request) const {
  Forecast forecast;
  forecast.bins.resize(request.bins);
  const uint64_t from = to_stored_ms(request.from);
  const uint64_t to = to_stored_ms(request.to);
  if (from >= to) return forecast;
  const double bin_ms = static_cast<double>(to - from) / request.bins;
  const auto add = [&](const ForecastBins::Bin& bin) {
    if (bin.start_ms >= to || bin.end_ms <= from) return;
    const uint64_t middle = std::clamp((bin.start_ms + bin.end_ms) / 2, std::max(from, bin.start_ms),
                                       std::min(to, bin.end_ms) - 1);
    const auto place = static_cast<size_t>(static_cast<double>(middle - from) / bin_ms);
    forecast.bins[std::min<size_t>(place, request.bins - 1)] += bin.jobs;
    forecast.resolution =
        std::max(forecast.resolution, Millis{static_cast<int64_t>(bin.end_ms - bin.start_ms)});
  };
  const auto add_job = [&](Slot slot) { add({jobs[slot].due_ms, jobs[slot].due_ms + uint64_t{1}, 1}); };

  if (topic != kNoTopic && !bins.has(topic)) {
    const Topic::Chain& delayed = topics[topic].chain(JobState::kDelayed);
    for (Slot slot = delayed.first; slot != kNoSlot; slot = jobs[slot].chain_next) add_job(slot);
    return forecast;
  }
  for (const ForecastBins::Bin& bin : bins.bins(topic, wheel.hand())) add(bin);
  for (const auto& [wake_ms, slot] : wheel.past()) {
    const bool counts =
        jobs[slot].state() == JobState::kDelayed && (topic == kNoTopic || jobs[slot].topic == topic);
    if (counts) add_job(slot);
  }
  return forecast;
}

uint64_t Store::memory_bytes() const {
  return jobs.memory_bytes() + ids.memory_bytes() + topics.memory_bytes() + groups.memory_bytes() +
         bins.memory_bytes() + numbers_.memory_bytes() + schedules.memory_bytes();
}

}  // namespace delayq::journal
