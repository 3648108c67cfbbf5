#include "bench/load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace delayq::bench {

size_t Histogram::class_of(uint64_t nanos) {
  const int shift = std::max(0, static_cast<int>(std::bit_width(nanos)) - kFineBits - 1);
  // Below 2^(kFineBits + 1) every value has its own class; above, the top kFineBits + 1 bits decide.
  return (static_cast<size_t>(shift) << kFineBits) + static_cast<size_t>(nanos >> shift);
}

uint64_t Histogram::end_of(size_t place) {
  const size_t shift = place < (size_t{2} << kFineBits) ? 0 : (place >> kFineBits) - 1;
  const uint64_t top = place - (shift << kFineBits);
  return ((top + 1) << shift) - 1;
}

void Histogram::record(Nanos duration, uint64_t times) {
  const auto nanos = static_cast<uint64_t>(std::max<int64_t>(duration.count(), 0));
  counts_[class_of(nanos)] += times;
  count_ += times;
  max_ = std::max(max_, Nanos{static_cast<int64_t>(nanos)});
}

void Histogram::merge(const Histogram& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

Nanos Histogram::percentile(double share) const {
  const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t i = 0; i < counts_.size() && count_ > 0; ++i) {
    seen += counts_[i];
    if (seen >= std::max<uint64_t>(wanted, 1)) return std::min(max_, Nanos{static_cast<int64_t>(end_of(i))});
  }
  return max_;
}

}  // namespace delayq::bench
