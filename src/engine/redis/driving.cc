#include "engine/redis/driving.h"

#include <algorithm>

namespace delayq::redis {

bool Doubt::wants_look(Moment now, bool is_connected) {
  // A clock that was set back must not make a period longer.
  const auto has_passed = [&](Millis period) { return now < looked_ || now - period >= looked_; };
  if (is_lost_) {
    if (!is_connected || !has_passed(kLookPeriod)) return false;
    is_lost_ = false;
    looked_ = now;
    return true;
  }
  if (is_listening_ && has_passed(kListen)) is_listening_ = false;
  return false;
}

bool Hints::may_have(uint32_t shard, std::string_view topic, Outlet outlet) const {
  const auto found = topics_.find(topic);
  return found == topics_.end() || !found->second[place(shard, outlet)].is_empty;
}

void Hints::note_ready(uint32_t shard, std::string_view topic, Outlet outlet) {
  if (shards_ == 1) return;  // a single shard is always asked
  // All shards of an unknown topic are asked anyway. But a take may be in progress, so its
  // heard() must change.
  const auto found = topics_.find(topic);
  if (found == topics_.end()) {
    forgotten_ = ++noted_;
    return;
  }
  Line& line = found->second[place(shard, outlet)];
  line.heard = ++noted_;
  line.is_empty = false;
}

uint64_t Hints::heard(uint32_t shard, std::string_view topic, Outlet outlet) const {
  const auto found = topics_.find(topic);
  return found == topics_.end() ? forgotten_
                                : std::max(forgotten_, found->second[place(shard, outlet)].heard);
}

void Hints::note_empty(uint32_t shard, std::string_view topic, Outlet outlet, uint64_t heard) {
  if (shards_ == 1 || heard != this->heard(shard, topic, outlet)) return;
  if (topics_.size() >= kMostTopics && !topics_.contains(topic)) forget();
  Lines& lines = topics_[std::string(topic)];
  lines.resize(size_t{shards_} * kOutletCount);
  lines[place(shard, outlet)].is_empty = true;
}

Moment Driving::due(const Shard& shard) const {
  return shard.is_mine ? std::min({shard.look, shard.next, shard.alarm}) : shard.look;
}

bool Driving::wants_round(uint32_t shard, Moment now) const {
  const Shard& it = shards_[shard];
  // The second condition: a clock that was set back must not keep the key from being renewed.
  return it.calls == 0 && (due(it) <= now || now < it.round);
}

Moment Driving::next_round() const {
  Moment next = kNever;
  for (const Shard& shard : shards_) {
    if (shard.calls == 0) next = std::min(next, due(shard));
  }
  return next;
}

void Driving::begin_round(uint32_t shard, Moment now) {
  shards_[shard].round = now;
  shards_[shard].calls = 1;
  shards_[shard].heard = kNever;
}

void Driving::set_next(uint32_t shard, Moment next) {
  shards_[shard].next = std::min(next, shards_[shard].heard);
}

void Driving::note_mine(uint32_t shard) {
  shards_[shard].is_mine = true;
  shards_[shard].look = shards_[shard].round + hold_ / 2;
}

void Driving::note_theirs(uint32_t shard, Millis left) {
  shards_[shard].is_mine = false;
  shards_[shard].look = shards_[shard].round + std::clamp(left, Millis{1}, hold_);
}

void Driving::note_failed(uint32_t shard) {
  shards_[shard].is_mine = false;
  shards_[shard].look = shards_[shard].round + kRetry;
}

void Driving::note_earlier(uint32_t shard, Moment next) {
  if (shard >= shards_.size()) return;
  shards_[shard].heard = std::min(shards_[shard].heard, next);
  shards_[shard].next = std::min(shards_[shard].next, next);
}

void Driving::forget() {
  for (Shard& shard : shards_) shard.look = shard.next = Moment::min();
}

}  // namespace delayq::redis
