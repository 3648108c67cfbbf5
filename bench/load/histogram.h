#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

namespace delayq::bench {

using Nanos = std::chrono::nanoseconds;

/// Counts durations in classes of less than one percent of their size, so that millions of them take no
/// memory. A percentile is the upper end of its class: never better than what was measured.
class Histogram {
 public:
  void record(Nanos duration, uint64_t times = 1);
  void merge(const Histogram& other);

  uint64_t count() const { return count_; }
  Nanos max() const { return max_; }
  /// The duration that `share` (0 to 1) of all do not exceed; zero when nothing was recorded. Negative
  /// durations count as zero.
  Nanos percentile(double share) const;

 private:
  static constexpr int kFineBits = 7;  // classes of 1/128 of their size
  static constexpr size_t kClasses = (64 - kFineBits + 1) << kFineBits;

  static size_t class_of(uint64_t nanos);
  static uint64_t end_of(size_t place);

  std::vector<uint64_t> counts_ = std::vector<uint64_t>(kClasses);
  uint64_t count_ = 0;
  Nanos max_{0};
};

constexpr double to_ms(Nanos duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

}  // namespace delayq::bench
