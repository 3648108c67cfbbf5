#include "queue/known_topics.h"

#include <algorithm>
#include <utility>

namespace delayq {

void TokenBucket::fill(const Rate& rate, Moment now) {
  if (rate_ != rate) {
    const bool was_unlimited = rate_.count == 0;
    const int64_t tokens = was_unlimited ? 0 : level_ / rate_.per.count();
    rate_ = rate;
    level_ = was_unlimited ? capacity() : std::min(tokens * rate_.per.count(), capacity());
    filled_at_ = now;
    return;
  }
  // One period fills the bucket, so a longer time counts as one period. This also prevents an overflow when
  // the clock jumps.
  const Millis passed = std::clamp(now - filled_at_, Millis::zero(), rate_.per);
  level_ = std::min(level_ + passed.count() * rate_.count, capacity());
  filled_at_ = now;
}

uint32_t TokenBucket::take(const Rate& rate, Moment now, uint32_t wanted) {
  fill(rate, now);
  const auto taken = static_cast<uint32_t>(std::min<int64_t>(level_ / rate_.per.count(), wanted));
  level_ -= taken * rate_.per.count();
  return taken;
}

void TokenBucket::give_back(uint32_t tokens) {
  level_ = std::min(level_ + tokens * rate_.per.count(), capacity());
}

Moment TokenBucket::next_token(const Rate& rate, Moment now) {
  fill(rate, now);
  const int64_t missing = rate_.per.count() - level_;
  if (missing <= 0) return now;
  return now + Millis{(missing + rate_.count - 1) / rate_.count};
}

bool TokenBucket::is_full(const Rate& rate, Moment now) {
  fill(rate, now);
  return level_ == capacity();
}

std::optional<size_t> KnownTopics::place_of(std::string_view topic) const {
  const auto found = by_name_.find(topic);
  if (found == by_name_.end()) return std::nullopt;
  return found->second->place;
}

TopicPtr KnownTopics::find(std::string_view topic) const {
  const std::optional<size_t> place = place_of(topic);
  return place ? ring_[*place] : nullptr;
}

TopicPtr KnownTopics::open(std::string_view topic, Moment now) {
  if (TopicPtr found = find(topic)) {
    found->last_used = now;
    return found;
  }
  auto made = std::make_shared<TopicState>(topic, ++last_serial_);
  made->settings = &defaults_;
  made->last_used = now;
  made->place = ring_.size();
  by_name_.emplace(made->name, made.get());
  ring_.push_back(made);
  return made;
}

void KnownTopics::forget(std::string_view topic) {
  const auto found = by_name_.find(topic);
  if (found == by_name_.end()) return;
  const size_t place = found->second->place;
  by_name_.erase(found);
  std::swap(ring_[place], ring_.back());
  ring_[place]->place = place;
  ring_.pop_back();
}

}  // namespace delayq
