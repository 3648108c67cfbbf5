#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <vector>

#include "engine/journal/timing_wheel.h"
#include "engine/requests.h"

namespace delayq::journal {

/// Counts of delayed jobs by when they fall due, per topic and in all, so that a forecast reads counters, not jobs.
///
/// The bins are as fine as the wheel's level allows: 256 ms for the next two minutes, 1 s for nine hours, 4.4 minutes
/// for 99 days, 19 hours for 70 years. A job moves to a finer bin when the wheel hands it down.
class ForecastBins final : public WheelObserver {
 public:
  void on_wheel(const Entry& entry, uint64_t wake_ms, int change) override;

  /// `topic` is UINT32_MAX for all.
  Forecast forecast(uint32_t topic, const ForecastRequest& request) const;

  uint64_t memory_bytes() const { return bins_.capacity() * (sizeof(std::pair<Key, uint32_t>) + 1); }

 private:
  /// A bin of one topic, or of all (topic UINT32_MAX).
  struct Key {
    uint32_t topic;
    uint32_t level;
    uint64_t index;

    bool operator==(const Key&) const = default;
    template <class H>
    friend H AbslHashValue(H state, const Key& key) {
      return H::combine(std::move(state), key.topic, key.level, key.index);
    }
  };

  void count(const Key& key, int change);

  absl::flat_hash_map<Key, uint32_t> bins_;
};

}  // namespace delayq::journal
