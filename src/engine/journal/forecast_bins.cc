#include "engine/journal/forecast_bins.h"

#include <algorithm>

namespace delayq::journal {

namespace {

/// Bits of a millisecond that a bin of the level does not tell apart. Levels 0 and 1 share theirs.
constexpr std::array<uint32_t, 6> kShift{8, 8, 10, 18, 26, 34};
constexpr uint32_t kAllTopics = UINT32_MAX;

}  // namespace

void ForecastBins::on_wheel(const Entry& entry, uint64_t wake_ms, int change) {
  if (entry.state() != JobState::kDelayed) return;
  const auto level = static_cast<uint32_t>(std::max<uint64_t>(entry.wheel_level, 1));
  const uint64_t index = wake_ms >> kShift[level];
  count({entry.topic, level, index}, change);
  count({kAllTopics, level, index}, change);
}

void ForecastBins::count(const Key& key, int change) {
  const auto [bin, is_new] = bins_.try_emplace(key, 0);
  bin->second += static_cast<uint32_t>(change);
  if (bin->second == 0) bins_.erase(bin);
}

Forecast ForecastBins::forecast(uint32_t topic, const ForecastRequest& request) const {
  Forecast forecast;
  forecast.bins.resize(request.bins);
  const auto from = static_cast<int64_t>(to_stored_ms(request.from));
  const auto to = static_cast<int64_t>(to_stored_ms(request.to));
  if (from >= to) return forecast;
  const double bin_ms = static_cast<double>(to - from) / request.bins;
  const auto add = [&](const Key& key, uint32_t jobs) {
    const int64_t start = static_cast<int64_t>(key.index << kShift[key.level]);
    const int64_t end = start + (int64_t{1} << kShift[key.level]);
    if (start >= to || end <= from) return;
    const int64_t middle = std::clamp(start + (end - start) / 2, std::max(from, start), std::min(to, end) - 1);
    const auto bin = static_cast<size_t>(static_cast<double>(middle - from) / bin_ms);
    forecast.bins[std::min<size_t>(bin, request.bins - 1)] += jobs;
    forecast.resolution = std::max(forecast.resolution, Millis{end - start});
  };
  for (const auto& [key, jobs] : bins_) {
    if (key.topic == topic) add(key, jobs);
  }
  return forecast;
}

}  // namespace delayq::journal
