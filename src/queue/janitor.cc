#include "queue/janitor.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "core/text.h"

namespace delayq {

namespace {

constexpr Millis kPause = std::chrono::seconds{5};
// 1/64 of the topics every 5 s: each topic is checked about every 5 minutes.
constexpr size_t kPart = 64;

uint64_t jobs_in(const TopicCounts& counts) {
  return std::accumulate(counts.by_state.begin(), counts.by_state.end(), uint64_t{0});
}

}  // namespace

Moment Janitor::tick() {
  if (context_.topics.size() == 0) return kNever;
  next_round_ = std::min(next_round_, context_.now + kPause);  // The clock may have gone back.
  if (next_round_ > context_.now) return next_round_;
  next_round_ = context_.now + kPause;
  const size_t looks = std::min(context_.topics.size(), kPart + context_.topics.size() / kPart);
  for (size_t i = 0; i < looks; ++i, ++hand_) {
    if (hand_ >= context_.topics.size()) hand_ = 0;
    if (const TopicPtr& topic = context_.topics.at(hand_); may_forget(topic)) ask_and_forget(topic);
  }
  return next_round_;
}

bool Janitor::may_forget(const TopicPtr& topic) const {
  // Only KnownTopics has a reference: no settings, no consumer, no pending call.
  if (topic.use_count() > 1) return false;
  topic->last_used = std::min(topic->last_used, context_.now);
  if (context_.now - topic->last_used < context_.config.forget_topics_after) return false;
  const Rate& rate = topic->settings->rate;
  return rate.count == 0 || topic->tokens.is_full(rate, context_.now);
}

void Janitor::ask_and_forget(const TopicPtr& topic) {
  context_.engine.counts(context_.now, topic->name,
                         [this, name = topic->name](const Result<TopicCounts>& counts) {
                           if (!counts.ok() || jobs_in(*counts) > 0) return;
                           if (const auto place = context_.topics.place_of(name);
                               place && may_forget(context_.topics.at(*place))) {
                             context_.topics.forget(name);
                           }
                         });
}

void Janitor::forget(std::string_view topic, Reply<bool> reply) {
  if (const Status status = check_topic(topic); !status)
    return context_.refuse(reply, in_verb("forget", status.error()));
  context_.engine.counts(
      context_.now, topic,
      [this, name = std::string{topic}, reply = std::move(reply),
       steps = context_.begin_steps()](const Result<TopicCounts>& counts) mutable {
        if (!counts.ok()) return context_.refuse(reply, counts.error());
        if (const uint64_t jobs = jobs_in(*counts); jobs > 0) {
          return context_.refuse(
              reply,
              about_field(
                  "topic",
                  Error{ErrorCode::kConflict, "forget",
                        fmt::format("topic {} has {} job{}: only an empty topic can be forgotten; purge "
                                    "removes its jobs",
                                    quote(name), jobs, jobs == 1 ? "" : "s")}));
        }
        forget_settings(name, std::move(reply));
      });
}

void Janitor::forget_settings(const std::string& topic, Reply<bool> reply) {
  // A topic with settings is known.
  const bool is_known = context_.topics.find(topic) != nullptr;
  settings_.set(context_, topic, {},
                [this, topic, is_known, reply = std::move(reply)](const Status& stored) mutable {
                  if (!stored.ok()) return context_.refuse(reply, stored.error());
                  // If pending calls or waiting consumers have references to the topic, tick() forgets it
                  // later.
                  const auto place = context_.topics.place_of(topic);
                  if (place && context_.topics.at(*place).use_count() == 1) context_.topics.forget(topic);
                  context_.answer(reply, Result<bool>(is_known));
                });
}

namespace {

constexpr uint32_t kTrimStep = 1'000;

}  // namespace

void RetentionSweep::look_at(std::string_view topic) {
  // The first topic is skipped: its sweep may have finished a state that keeps less now, so it is swept
  // again.
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
  if (topic == nullptr) return next();  // forgotten in the meantime: it has no jobs
  const Retention& keep = state == JobState::kDone ? topic->settings->keep_done : topic->settings->keep_dead;
  TrimRequest request;
  request.topic = topic->name;
  request.state = state;
  request.count = keep.most();
  request.time = keep.time;
  request.max = kTrimStep;
  request.cursor = cursor;
  context_.engine.trim(context_.now, request, [this, state](const Result<TrimAnswer>& trimmed) {
    // After an error the next start sweeps again. Until then each job is kept as long as before.
    if (trimmed.ok() && !trimmed->cursor.empty()) return trim(state, trimmed->cursor);
    if (state == JobState::kDone) return trim(JobState::kDead, {});
    topics_.pop_front();
    next();
  });
}

}  // namespace delayq
