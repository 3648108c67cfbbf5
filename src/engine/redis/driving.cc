#include "engine/redis/driving.h"

#include <algorithm>

namespace delayq::redis {

Moment Driving::due(const Shard& shard) const {
  return shard.is_mine ? std::min(shard.look, shard.next) : shard.look;
}

bool Driving::wants_round(uint32_t shard, Moment now) const {
  const Shard& it = shards_[shard];
  // A clock that was set back would otherwise keep the key from being renewed.
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
