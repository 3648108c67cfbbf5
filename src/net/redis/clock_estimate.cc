#include "net/redis/clock_estimate.h"

namespace delayq::net::redis {

namespace {

/// By how much clocks may drift apart in some time.
ClockEstimate::Micros drift_in(std::chrono::steady_clock::duration time) {
  constexpr int kParts = 10'000;
  return std::chrono::duration_cast<ClockEstimate::Micros>(time) / kParts;
}

}  // namespace

bool ClockEstimate::is_contradicted(const Sample& sample) const {
  const Micros explained =
      (sample.round_trip + best_->round_trip) / 2 + drift_in(sample.taken - best_->taken) + Millis{1};
  return std::chrono::abs(sample.offset - best_->offset) > explained;
}

void ClockEstimate::add(Micros asked, Micros round_trip, Micros answer, Steady now) {
  const Sample sample{answer - (asked + round_trip / 2), round_trip, now};
  const bool is_better = !best_ || is_another_ || round_trip <= best_->round_trip ||
                         now - best_->taken >= kKept || is_contradicted(sample);
  is_another_ = false;
  if (is_better) best_ = sample;
}

Millis ClockEstimate::offset() const {
  if (!best_) return Millis{0};
  const Micros doubt = best_->round_trip / 2 + Millis{1};
  return std::chrono::abs(best_->offset) <= doubt ? Millis{0} : std::chrono::round<Millis>(best_->offset);
}

}  // namespace delayq::net::redis
