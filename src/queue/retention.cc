#include "queue/retention.h"

#include <algorithm>

namespace delayq {

namespace {

constexpr uint32_t kTrimStep = 1'000;

}  // namespace

void RetentionSweep::look_at(std::string_view topic) {
  // The one that is being looked at may have passed a state that keeps less now, so it counts no more.
  const auto first = topics_.empty() ? topics_.end() : topics_.begin() + 1;
  if (std::find(first, topics_.end(), topic) != topics_.end()) return;
  topics_.emplace_back(topic);
  if (topics_.size() == 1) next();
}

void RetentionSweep::look_at_all() {
  const bool is_idle = topics_.empty();
  topics_.resize(is_idle ? 0 : 1);
  for (size_t place = 0; place < context_.topics.size(); ++place)
    topics_.push_back(context_.topics.at(place)->name);
  if (is_idle) next();
}

void RetentionSweep::next() {
  while (!topics_.empty() && context_.topics.find(topics_.front()) == nullptr) topics_.pop_front();
  if (!topics_.empty()) trim(JobState::kDone, {});
}

void RetentionSweep::trim(JobState state, std::string_view cursor) {
  const TopicPtr topic = context_.topics.find(topics_.front());
  if (topic == nullptr) return next();  // forgotten meanwhile: it has no jobs
  const Retention& keep = state == JobState::kDone ? topic->settings->keep_done : topic->settings->keep_dead;
  TrimRequest request;
  request.topic = topic->name;
  request.state = state;
  request.count = keep.most();
  request.time = keep.time;
  request.max = kTrimStep;
  request.cursor = cursor;
  context_.engine.trim(context_.now, request, [this, state](const Result<TrimAnswer>& trimmed) {
    // What could not be done is done by the next start; each job goes at the time that it was given.
    if (trimmed.ok() && !trimmed->cursor.empty()) return trim(state, trimmed->cursor);
    if (state == JobState::kDone) return trim(JobState::kDead, {});
    topics_.pop_front();
    next();
  });
}

}  // namespace delayq
