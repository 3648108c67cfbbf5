#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/histogram.h"
#include "core/time.h"

namespace delayq {

/// What a topic counts since the server started.
enum class Tally : uint8_t {
  kPushed,     ///< jobs created or replaced
  kPopped,     ///< handed over
  kAcked,      ///< done, by their consumer
  kNacked,     ///< failed, by their consumer
  kExpired,    ///< failed, because their lease ran out
  kDied,       ///< of the failed: gone to the dead letters
  kCancelled,  ///< taken back by their producer
};
inline constexpr size_t kTallyCount = 7;
inline constexpr std::array<std::string_view, kTallyCount> kTallyNames{
    "pushed", "popped", "acked", "nacked", "expired", "died", "cancelled"};

class Tallies {
 public:
  uint64_t of(Tally what) const { return counts_[static_cast<size_t>(what)]; }
  void add(Tally what, uint64_t count) { counts_[static_cast<size_t>(what)] += count; }

 private:
  std::array<uint64_t, kTallyCount> counts_{};
};

/// How late jobs were handed over, in buckets that double: up to 0, 1, 3, 7, 15 ... ms; the last takes all
/// the rest.
class Lateness {
 public:
  static constexpr size_t kBuckets = 28;  // the last but one ends above 18 hours

  void record(Millis late) {
    counts_.record(late < Millis::zero() ? 0 : static_cast<uint64_t>(late.count()));
  }

  /// The greatest lateness that `bucket` counts, itself included. REQUIRES: not the last bucket, which has no
  /// end.
  static constexpr Millis upper_bound(size_t bucket) {
    return Millis{static_cast<int64_t>(Histogram<kBuckets>::upper_bound(bucket))};
  }

  const std::array<uint64_t, kBuckets>& buckets() const { return counts_.buckets(); }
  uint64_t count() const { return counts_.count(); }
  Millis sum() const { return Millis{static_cast<int64_t>(counts_.sum())}; }

  /// The upper bound of the bucket in which the `part` (0 to 1) of all hand-overs lies: 0.99 for the 99th
  /// percentile. Zero when there were none; kNever's worth of milliseconds when it lies in the last bucket.
  Millis quantile(double part) const {
    const uint64_t bound = counts_.quantile(part);
    return bound == UINT64_MAX ? Millis::max() : Millis{static_cast<int64_t>(bound)};
  }

 private:
  Histogram<kBuckets> counts_;
};

}  // namespace delayq
