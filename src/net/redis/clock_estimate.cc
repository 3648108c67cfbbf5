#include "net/redis/clock_estimate.h"

namespace delayq::net::redis {

void ClockEstimate::add(Micros asked, Micros round_trip, Micros answer, Steady now) {
  const bool is_better = !best_ || round_trip <= best_->round_trip || now - best_->taken >= kKept;
  if (is_better) best_ = Sample{answer - (asked + round_trip / 2), round_trip, now};
}

Millis ClockEstimate::offset() const {
  if (!best_) return Millis{0};
  const Micros doubt = best_->round_trip / 2 + Millis{1};
  return std::chrono::abs(best_->offset) <= doubt ? Millis{0} : std::chrono::round<Millis>(best_->offset);
}

}  // namespace delayq::net::redis
