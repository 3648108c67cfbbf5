#include "engine/memory/job_table.h"

#include <algorithm>
#include <cassert>

namespace delayq::memory {

namespace {

/// Returns the entry of `map` under `key`, or `absent`, so that callers need no branch for missing entries.
template <class Map, class Value>
const Value& find_or(const Map& map, std::string_view key, const Value& absent) {
  const auto found = map.find(key);
  return found == map.end() ? absent : found->second;
}

JobTable::Rank rank_of(const StoredJob& job) { return {job.priority, job.due, job.sequence}; }

}  // namespace

JobTable::When JobTable::alarm_of(const StoredJob& job) {
  return {job.state == JobState::kDelayed ? job.due : job.until, job.sequence};
}

StoredJob& JobTable::insert(StoredJob job) {
  job.sequence = last_sequence_ + 1;
  job.entered = last_entered_ + 1;
  return restore(std::move(job));
}

StoredJob& JobTable::restore(StoredJob job) {
  last_sequence_ = std::max(last_sequence_, job.sequence);
  last_entered_ = std::max(last_entered_, job.entered);
  auto [place, is_new] = topics_[job.topic].jobs.try_emplace(job.id);
  assert(is_new);
  (void)is_new;
  place->second = std::move(job);
  index(place->second);
  ++size_;
  return place->second;
}

void JobTable::erase(const StoredJob& job) {
  unindex(job);
  const auto topic = topics_.find(job.topic);
  topic->second.jobs.erase(topic->second.jobs.find(job.id));
  if (topic->second.jobs.empty()) topics_.erase(topic);
  --size_;
}

void JobTable::index(StoredJob& job) {
  Topic& topic = topics_.find(job.topic)->second;
  topic.states[static_cast<size_t>(job.state)][job.entered] = &job;
  switch (job.state) {
    case JobState::kReady:
      topic.ready[static_cast<size_t>(job.outlet)][rank_of(job)] = &job;
      break;
    case JobState::kReserved:
      deadlines_[{job.until, job.sequence}] = &job;
      leases_[job.lease] = &job;
      break;
    case JobState::kDelayed:
    case JobState::kDone:
    case JobState::kDead:
      alarms_[alarm_of(job)] = &job;
      break;
  }
  if (is_live(job.state)) {
    live_ids_[job.id].insert(job.topic);
    if (!job.group.empty()) groups_[job.group][job.sequence] = &job;
  }
}

void JobTable::unindex(const StoredJob& job) {
  Topic& topic = topics_.find(job.topic)->second;
  topic.states[static_cast<size_t>(job.state)].erase(job.entered);
  switch (job.state) {
    case JobState::kReady:
      topic.ready[static_cast<size_t>(job.outlet)].erase(rank_of(job));
      break;
    case JobState::kReserved:
      deadlines_.erase({job.until, job.sequence});
      leases_.erase(job.lease);
      break;
    case JobState::kDelayed:
    case JobState::kDone:
    case JobState::kDead:
      alarms_.erase(alarm_of(job));
      break;
  }
  if (!is_live(job.state)) return;
  const auto same_id = live_ids_.find(job.id);
  same_id->second.erase(job.topic);
  if (same_id->second.empty()) live_ids_.erase(same_id);
  if (job.group.empty()) return;
  const auto same_group = groups_.find(job.group);
  same_group->second.erase(job.sequence);
  if (same_group->second.empty()) groups_.erase(same_group);
}

StoredJob* JobTable::find(std::string_view topic, std::string_view id) {
  const auto in_topic = topics_.find(topic);
  if (in_topic == topics_.end()) return nullptr;
  const auto found = in_topic->second.jobs.find(id);
  return found == in_topic->second.jobs.end() ? nullptr : &found->second;
}

StoredJob* JobTable::find_lease(uint64_t lease) {
  const auto found = leases_.find(lease);
  return found == leases_.end() ? nullptr : found->second;
}

const JobTable::Topic* JobTable::find_topic(std::string_view topic) const {
  const auto found = topics_.find(topic);
  return found == topics_.end() ? nullptr : &found->second;
}

const JobTable::InOrder& JobTable::group(std::string_view name) const {
  static const InOrder kNone;
  return find_or(groups_, name, kNone);
}

const JobTable::Names& JobTable::topics_of(std::string_view id) const {
  static const Names kNone;
  return find_or(live_ids_, id, kNone);
}

}  // namespace delayq::memory
