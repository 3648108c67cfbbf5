#include "engine/journal/replay.h"

#include <algorithm>

namespace delayq::journal {

bool Replay::add(const RecordView& record, const Location& location) {
  ++records_;
  highest_lsn_ = std::max(highest_lsn_, record.lsn);
  if (record.type == RecordType::kMark || record.type == RecordType::kHole) return true;
  Waiting& waiting = window_[waiting_];
  waiting = Waiting{record, location, {}, {}, 0};
  if (!parse(waiting)) return false;
  if (++waiting_ == kWindow) flush();
  return true;
}

bool Replay::parse(Waiting& waiting) {
  switch (waiting.record.type) {
    case RecordType::kJob: {
      const auto job = parse_job(waiting.record.payload);
      if (!job) return false;
      waiting.job = *job;
      waiting.id_key = store_.ids.key_of(job->id);
      waiting.seq = job->fixed.state.seq;
      store_.ids.prefetch(waiting.id_key);
      break;
    }
    case RecordType::kState: {
      const auto state = parse_plain<StatePayload>(waiting.record.payload);
      if (!state || static_cast<size_t>(state->state) >= kJobStateCount) return false;
      waiting.seq = state->seq;
      break;
    }
    case RecordType::kOutcome: {
      const auto outcome = parse_outcome(waiting.record.payload);
      if (!outcome) return false;
      waiting.seq = outcome->state.seq;
      break;
    }
    case RecordType::kGone: {
      const auto gone = parse_plain<GonePayload>(waiting.record.payload);
      if (!gone) return false;
      waiting.seq = gone->seq;
      break;
    }
    case RecordType::kSettings:
      return parse_settings(waiting.record.payload).has_value();
    default:
      return false;
  }
  if (waiting.seq == 0 || waiting.seq > kMaxLsn) return false;
  store_.prefetch_number(waiting.seq);
  return true;
}

void Replay::flush() {
  for (size_t i = 0; i < waiting_; ++i) {
    if (window_[i].seq != 0) store_.prefetch_numbered_entry(window_[i].seq);
  }
  for (size_t i = 0; i < waiting_; ++i) apply(window_[i]);
  waiting_ = 0;
}

void Replay::finish() {
  for (const auto& [seq, segment] : replaced_) clean_first(segment);
  replaced_.clear();
}

void Replay::apply(const Waiting& waiting) {
  if (waiting.record.type == RecordType::kJob) return apply_job(waiting);
  if (waiting.record.type == RecordType::kSettings) return apply_settings(waiting);
  if (waiting.record.type == RecordType::kGone) return apply_gone(waiting);
  // A state of a job that is not there is that of one that is gone, or older than the copy of its record to
  // come.
  const Slot slot = store_.find_number(waiting.seq);
  if (waiting.record.type == RecordType::kOutcome) {
    if (slot == kNoSlot) {  // gone, or its job record was copied behind this one
      early_outcomes_[waiting.seq] = waiting.location;
      return;
    }
    store_.change(slot, parse_outcome(waiting.record.payload)->state);
    store_.set_outcome_record(slot, waiting.location, true);
  } else if (slot != kNoSlot) {
    store_.change(slot, *parse_plain<StatePayload>(waiting.record.payload));
    store_.set_state_record(slot, waiting.location);
  }
}

void Replay::apply_job(const Waiting& waiting) {
  const JobView& job = waiting.job;
  if (const Slot known = store_.find_number(waiting.seq); known != kNoSlot) {  // cleaning wrote it again
    const Entry& entry = store_.jobs[known];
    // A copy has the id of what it is a copy of; we have written no other.
    if (entry.key_low != waiting.id_key.low || entry.key_high != waiting.id_key.high) return;
    if (const uint32_t before = store_.jobs[known].location.segment; before != waiting.location.segment) {
      clean_first(before);
    }
    store_.change(known, job.fixed.state);
    store_.set_job_record(known, waiting.location);
    return;
  }
  const TopicNumber topic = topic_of(job.topic);
  if (const Slot old = store_.ids.find(waiting.id_key, topic); old != kNoSlot) {
    replaced_[store_.jobs[old].seq] = store_.jobs[old].location.segment;
    store_.erase(old);
  }
  const Slot slot = store_.insert({waiting.id_key, topic, job.fixed.state, job.fixed.priority,
                                   !job.options.empty(), job.group, waiting.location});
  if (early_outcomes_.empty()) return;
  if (const auto outcome = early_outcomes_.find(waiting.seq); outcome != early_outcomes_.end()) {
    store_.set_outcome_record(slot, outcome->second, false);
    early_outcomes_.erase(outcome);
  }
}

void Replay::apply_gone(const Waiting& waiting) {
  const uint32_t named = parse_plain<GonePayload>(waiting.record.payload)->segment;
  store_.segments.keep_gone(waiting.location, named);
  if (const Slot slot = store_.find_number(waiting.seq); slot != kNoSlot) {
    // It names a copy that did not reach the disk.
    if (const uint32_t actual = store_.jobs[slot].location.segment; actual != named) clean_first(actual);
    store_.erase(slot);
  } else if (const auto replaced = replaced_.find(waiting.seq); replaced != replaced_.end()) {
    if (replaced->second != named) clean_first(replaced->second);
    replaced_.erase(replaced);
  }
}

void Replay::apply_settings(const Waiting& waiting) {
  const auto view = parse_settings(waiting.record.payload);
  Topic& topic = store_.topics[topic_of(view->topic)];
  store_.segments.release(topic.settings_record);
  topic.settings = view->settings;
  topic.settings_record = view->settings.empty() ? Location{} : waiting.location;
  store_.segments.keep(topic.settings_record);
  if (view->settings.empty()) store_.segments.find(waiting.location.segment)->unsets = true;
}

/// Records of one topic come in runs.
TopicNumber Replay::topic_of(std::string_view name) {
  if (last_topic_ == kNoTopic || store_.topics[last_topic_].name != name) {
    last_topic_ = store_.topics.find_or_add(name);
  }
  return last_topic_;
}

}  // namespace delayq::journal
