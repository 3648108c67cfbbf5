#include "engine/journal/forecast_bins.h"

#include <algorithm>

namespace delayq::journal {

namespace {

/// Bits of a millisecond that a bin of the level does not tell apart. Levels 0 and 1 share theirs.
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
    // Nothing is before the hand, and nothing further away than the ring is long.
    const uint64_t first = to_stored_ms(hand) >> kShift[level];
    for (uint64_t index = first; index < first + kReach; ++index) {
      const uint32_t jobs = (*rings[level])[index % kReach];
      if (jobs != 0) found.push_back({index << kShift[level], (index + 1) << kShift[level], jobs});
    }
  }
  return found;
}

}  // namespace delayq::journal
