#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace delayq {

/// Counts values in buckets that double: up to 0, 1, 3, 7, 15 ...; the last bucket takes all the rest. A
/// value costs a few instructions, whatever was counted before.
template <size_t kSize>
class Histogram {
 public:
  static constexpr size_t kBuckets = kSize;
  static_assert(kSize >= 2 && kSize <= 64);

  void record(uint64_t value) {
    const auto bucket = static_cast<size_t>(std::bit_width(value));
    ++counts_[bucket < kBuckets ? bucket : kBuckets - 1];
    ++count_;
    sum_ += value;
  }

  /// The greatest value that `bucket` counts. REQUIRES: not the last bucket, which has no end.
  static constexpr uint64_t upper_bound(size_t bucket) { return (uint64_t{1} << bucket) - 1; }

  const std::array<uint64_t, kBuckets>& buckets() const { return counts_; }
  uint64_t count() const { return count_; }
  uint64_t sum() const { return sum_; }

  /// The upper bound of the bucket in which the `part` (0 to 1) of all values lies: 0.99 for the 99th
  /// percentile. Zero when there were none; UINT64_MAX when it lies in the last bucket.
  uint64_t quantile(double part) const {
    if (count_ == 0) return 0;
    const double wanted = part * static_cast<double>(count_);
    uint64_t seen = 0;
    for (size_t bucket = 0; bucket + 1 < kBuckets; ++bucket) {
      seen += counts_[bucket];
      if (static_cast<double>(seen) >= wanted) return upper_bound(bucket);
    }
    return UINT64_MAX;
  }

 private:
  std::array<uint64_t, kBuckets> counts_{};
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
};

}  // namespace delayq
