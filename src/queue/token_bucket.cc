#include "queue/token_bucket.h"

#include <algorithm>

namespace delayq {

void TokenBucket::fill(const Rate& rate, Moment now) {
  if (rate_ != rate) {
    const bool was_unlimited = rate_.count == 0;
    const int64_t tokens = was_unlimited ? 0 : level_ / rate_.per.count();
    rate_ = rate;
    level_ = was_unlimited ? capacity() : std::min(tokens * rate_.per.count(), capacity());
    filled_at_ = now;
    return;
  }
  // No more than one period counts, which fills it anyway; so a leap of the clock cannot overflow.
  const Millis passed = std::clamp(now - filled_at_, Millis::zero(), rate_.per);
  level_ = std::min(level_ + passed.count() * rate_.count, capacity());
  filled_at_ = now;
}

uint32_t TokenBucket::take(const Rate& rate, Moment now, uint32_t wanted) {
  fill(rate, now);
  const auto taken = static_cast<uint32_t>(std::min<int64_t>(level_ / rate_.per.count(), wanted));
  level_ -= taken * rate_.per.count();
  return taken;
}

void TokenBucket::give_back(uint32_t tokens) {
  level_ = std::min(level_ + tokens * rate_.per.count(), capacity());
}

Moment TokenBucket::next_token(const Rate& rate, Moment now) {
  fill(rate, now);
  const int64_t missing = rate_.per.count() - level_;
  if (missing <= 0) return now;
  return now + Millis{(missing + rate_.count - 1) / rate_.count};
}

bool TokenBucket::is_full(const Rate& rate, Moment now) {
  fill(rate, now);
  return level_ == capacity();
}

}  // namespace delayq
