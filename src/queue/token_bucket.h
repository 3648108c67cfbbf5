#pragma once

#include <cstdint>

#include "queue/settings.h"

namespace delayq {

/// Bounds hand-overs to a rate: it holds up to `rate.count` tokens, fills evenly in `rate.per`, and each
/// hand-over takes one. So after a rest a burst of `rate.count` may leave at once, and over any longer time
/// no more than the rate. The rate is an argument and may change between calls; what is in the bucket is
/// carried over. Whole numbers only: nothing is lost to rounding. A clock that jumps back pauses the filling,
/// one that jumps ahead fills it once.
class TokenBucket {
 public:
  /// Takes up to `wanted` tokens and answers how many there were. REQUIRES (here and below): rate.count > 0.
  uint32_t take(const Rate& rate, Moment now, uint32_t wanted);
  /// Puts back what was taken and not used.
  void give_back(uint32_t tokens);
  /// When there will be a token; `now` when there is one.
  Moment next_token(const Rate& rate, Moment now);
  /// Nothing is lost when this bucket is thrown away.
  bool is_full(const Rate& rate, Moment now);

 private:
  void fill(const Rate& rate, Moment now);
  int64_t capacity() const { return rate_.count * rate_.per.count(); }

  Rate rate_;
  int64_t level_ = 0;  ///< in tokens times rate_.per: grows by rate_.count every millisecond
  Moment filled_at_{};
};

}  // namespace delayq
