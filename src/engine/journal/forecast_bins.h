#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/journal/timing_wheel.h"

namespace delayq::journal {

/// Counts of delayed jobs by when they fall due, so that a forecast reads counters, not jobs: for all topics
/// together, and for each topic that has many.
///
/// The bins are as fine as the wheel's level allows: 256 ms for the next two minutes, 1 s for nine hours, 4.4
/// minutes for 99 days, 19 hours for 70 years. A job moves to a finer bin when the wheel hands it down.
class ForecastBins final : public WheelObserver {
 public:
  static constexpr uint32_t kAllTopics = UINT32_MAX;
  /// Below this a topic's jobs are looked at one by one, which is exact and costs no memory.
  static constexpr uint64_t kManyJobs = 16'384;

  void on_wheel(const Entry& entry, uint64_t wake_ms, int change) override;

  bool has(uint32_t topic) const { return topic < topics_.size() && topics_[topic] != nullptr; }
  /// From now on the topic has bins of its own. Those of its jobs that are in the wheel already must be
  /// added.
  void start(uint32_t topic);
  void add(uint32_t topic, const Entry& entry, uint64_t wake_ms);
  void stop(uint32_t topic);

  /// A number of jobs that fall due in [start_ms, end_ms).
  struct Bin {
    uint64_t start_ms;
    uint64_t end_ms;
    uint32_t jobs;
  };
  /// Those of the topic, or of all. REQUIRES: has(topic), or kAllTopics. `hand` is the wheel's.
  std::vector<Bin> bins(uint32_t topic, Moment hand) const;

  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  static constexpr uint32_t kLevels = 6;
  /// As many as a level of the wheel can reach: 512 slots of 64 bins each.
  static constexpr uint32_t kReach = 512 * 64;
  using Ring = std::array<uint32_t, kReach>;
  using Rings = std::array<std::unique_ptr<Ring>, kLevels>;

  void count(Rings& rings, uint32_t level, uint64_t index, int change);

  Rings all_;
  std::vector<std::unique_ptr<Rings>> topics_;
  uint64_t memory_bytes_ = 0;
};

}  // namespace delayq::journal
