#include "engine/journal/timing_wheel.h"

#include <algorithm>
#include <bit>

namespace delayq::journal {

/// A delayed job wakes at its due time, any other job when its lease or retention ends.
uint64_t TimingWheel::wake_of(Slot slot) const {
  const Entry& entry = jobs_[slot];
  return entry.state() == JobState::kDelayed ? entry.due_ms : entry.until_ms;
}

void TimingWheel::add(Slot slot, uint64_t wake_ms) {
  ++size_;
  if (wake_ms < hand_) {
    jobs_[slot].in_past = 1;
    past_.emplace(wake_ms, slot);
    return;
  }
  insert(slot, wake_ms);
}

void TimingWheel::insert(Slot slot, uint64_t wake_ms) {
  uint32_t level = 0;
  while ((wake_ms >> (kBits * level)) - (hand_ >> (kBits * level)) >= kSlots) ++level;
  Ring& ring = rings_[level];
  const uint64_t index = (wake_ms >> (kBits * level));
  const uint32_t place = index % kSlots;
  Entry& entry = jobs_[slot];
  const Slot next = ring.first[place];
  entry.wheel_previous = kNoSlot;
  entry.wheel_next = next;
  if (next != kNoSlot) jobs_[next].wheel_previous = slot;
  entry.wheel_level = level & 7;
  entry.in_wheel = 1;
  ring.first[place] = slot;
  ++ring.count[place];
  ring.occupied[place / 64] |= uint64_t{1} << (place % 64);
  next_event_ = std::min(next_event_, slot_start(index, level));
  observer_.on_wheel(entry, wake_ms, +1);
}

void TimingWheel::remove(Slot slot) {
  --size_;
  const uint64_t wake_ms = wake_of(slot);
  if (jobs_[slot].in_past) {
    past_.erase({wake_ms, slot});
    jobs_[slot].in_past = 0;
    return;
  }
  unlink(slot, wake_ms);
}

void TimingWheel::unlink(Slot slot, uint64_t wake_ms) {
  Entry& entry = jobs_[slot];
  Ring& ring = rings_[entry.wheel_level];
  const uint32_t place = (wake_ms >> (kBits * entry.wheel_level)) % kSlots;
  if (entry.wheel_previous != kNoSlot) {
    jobs_[entry.wheel_previous].wheel_next = entry.wheel_next;
  } else {
    ring.first[place] = entry.wheel_next;
  }
  if (entry.wheel_next != kNoSlot) jobs_[entry.wheel_next].wheel_previous = entry.wheel_previous;
  if (--ring.count[place] == 0) ring.occupied[place / 64] &= ~(uint64_t{1} << (place % 64));
  observer_.on_wheel(entry, wake_ms, -1);
  entry.in_wheel = 0;
}

uint64_t TimingWheel::first_occupied(uint32_t level) const {
  const uint64_t base = hand_ >> (kBits * level);
  const Ring& ring = rings_[level];
  // Checks eight words, and the first one again, because its low bits are the far end of the ring.
  for (uint32_t i = 0; i <= kSlots / 64; ++i) {
    const uint32_t word_number = (base / 64 + i) % (kSlots / 64);
    uint64_t word = ring.occupied[word_number];
    if (i == 0) word &= ~uint64_t{0} << (base % 64);
    if (i == kSlots / 64) word &= ~(~uint64_t{0} << (base % 64));
    if (word == 0) continue;
    const uint32_t place = word_number * 64 + static_cast<uint32_t>(std::countr_zero(word));
    return base + ((place - base) % kSlots);
  }
  return UINT64_MAX;
}

void TimingWheel::find_next_event() {
  next_event_ = UINT64_MAX;
  for (uint32_t level = 0; level < kLevels; ++level) {
    const uint64_t index = first_occupied(level);
    if (index != UINT64_MAX) next_event_ = std::min(next_event_, slot_start(index, level));
  }
}

bool TimingWheel::hand_down(uint32_t level, uint64_t index, uint32_t& budget) {
  Ring& ring = rings_[level];
  const uint32_t place = index % kSlots;
  for (Slot slot = ring.first[place]; slot != kNoSlot && budget > 0; slot = ring.first[place], --budget) {
    const Slot next = jobs_[slot].wheel_next;
    if (next != kNoSlot) jobs_.prefetch(next);
    const uint64_t wake_ms = wake_of(slot);
    unlink(slot, wake_ms);
    insert(slot, wake_ms);
  }
  return ring.first[place] == kNoSlot;
}

Slot TimingWheel::next_due(uint64_t now_ms, uint32_t& budget) {
  if (!past_.empty() && past_.begin()->first <= now_ms) {
    const Slot slot = past_.begin()->second;
    remove(slot);
    return slot;
  }
  while (next_event_ <= now_ms) {
    hand_ = std::max(hand_, next_event_);
    // The hand is at the start of a slot: first move down the jobs that higher levels have for it.
    for (uint32_t level = kLevels - 1; level > 0; --level) {
      if (!hand_down(level, hand_ >> (kBits * level), budget)) return kNoSlot;
    }
    const Slot slot = rings_[0].first[hand_ % kSlots];
    if (slot != kNoSlot) {
      --size_;
      unlink(slot, hand_);
      return slot;
    }
    find_next_event();
  }
  hand_ = std::max(hand_, now_ms);
  return kNoSlot;
}

void TimingWheel::prepare(Moment now, uint32_t budget) {
  // With nothing to do before `now`, the hand may be behind; the next slot is then the one after `now`.
  if (const uint64_t now_ms = to_stored_ms(now); now_ms < next_event_) hand_ = std::max(hand_, now_ms);
  for (uint32_t level = 1; level < kLevels && budget > 0; ++level) {
    if (hand_down(level, (hand_ >> (kBits * level)) + 1, budget)) continue;
    return;
  }
}

Moment TimingWheel::wakeup() const {
  uint64_t next = past_.empty() ? UINT64_MAX : past_.begin()->first;
  for (uint32_t level = 0; level < kLevels; ++level) {
    const uint64_t index = first_occupied(level);
    if (index == UINT64_MAX) continue;
    const uint64_t start = slot_start(index, level);
    const uint64_t portions = level == 0 ? 0 : rings_[level].count[index % kSlots] / kPortion;
    const uint64_t lead = std::min(portions * 1000, slot_start(1, level));
    next = std::min(next, start - std::min(start, lead));
  }
  return next == UINT64_MAX ? kNever : from_unix_ms(static_cast<int64_t>(next));
}

namespace {

/// How many low bits of a time in milliseconds a bin of the level ignores. Levels 0 and 1 share their bins.
constexpr std::array<uint32_t, 6> kShift{8, 8, 10, 18, 26, 34};

uint32_t bin_level(const Entry& entry) { return std::max<uint32_t>(entry.wheel_level, 1); }

}  // namespace

void ForecastBins::on_wheel(const Entry& entry, uint64_t wake_ms, int change) {
  if (entry.state() != JobState::kDelayed) return;
  const uint32_t level = bin_level(entry);
  const uint64_t index = wake_ms >> kShift[level];
  count(all_, level, index, change);
  if (has(entry.topic)) count(*topics_[entry.topic], level, index, change);
}

void ForecastBins::start(uint32_t topic) {
  if (topic >= topics_.size()) topics_.resize(topic + 1);
  topics_[topic] = std::make_unique<Rings>();
}

void ForecastBins::stop(uint32_t topic) {
  for (const auto& ring : *topics_[topic]) memory_bytes_ -= ring == nullptr ? 0 : sizeof(Ring);
  topics_[topic].reset();
}

void ForecastBins::add(uint32_t topic, const Entry& entry, uint64_t wake_ms) {
  count(*topics_[topic], bin_level(entry), wake_ms >> kShift[bin_level(entry)], +1);
}

void ForecastBins::count(Rings& rings, uint32_t level, uint64_t index, int change) {
  std::unique_ptr<Ring>& ring = rings[level];
  if (ring == nullptr) {
    ring = std::make_unique<Ring>();
    memory_bytes_ += sizeof(Ring);
  }
  (*ring)[index % kReach] += static_cast<uint32_t>(change);
}

std::vector<ForecastBins::Bin> ForecastBins::bins(uint32_t topic, Moment hand) const {
  const Rings& rings = topic == kAllTopics ? all_ : *topics_[topic];
  std::vector<Bin> found;
  for (uint32_t level = 0; level < kLevels; ++level) {
    if (rings[level] == nullptr) continue;
    // No job is before the hand, and none is further away than the length of the ring.
    const uint64_t first = to_stored_ms(hand) >> kShift[level];
    for (uint64_t index = first; index < first + kReach; ++index) {
      const uint32_t jobs = (*rings[level])[index % kReach];
      if (jobs != 0) found.push_back({index << kShift[level], (index + 1) << kShift[level], jobs});
    }
  }
  return found;
}

}  // namespace delayq::journal
