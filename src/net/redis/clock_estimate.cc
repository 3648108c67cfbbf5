#include "net/redis/clock_estimate.h"

namespace delayq::net::redis {

namespace {

using Micros = ClockEstimate::Micros;

Micros between(ClockEstimate::Steady from, ClockEstimate::Steady to) {
  return std::chrono::duration_cast<Micros>(to - from);
}

/// By how much clocks may drift apart in some time.
Micros drift_in(Micros time) {
  constexpr int kParts = 10'000;
  return time / kParts;
}

}  // namespace

Micros ClockEstimate::Sample::time(Steady now) const {
  const Micros doubt = round_trip / 2 + Millis{1};
  const bool is_same = std::chrono::abs(offset) <= doubt;
  return asked.wall + (is_same ? Micros::zero() : offset) + between(asked.steady, now);
}

bool ClockEstimate::is_contradicted(const Sample& sample) const {
  const Micros apart =
      sample.asked.wall + sample.offset -
      (best_->asked.wall + best_->offset + between(best_->asked.steady, sample.asked.steady));
  const Micros explained = (sample.round_trip + best_->round_trip) / 2 +
                           drift_in(between(best_->asked.steady, sample.asked.steady)) + Millis{1};
  return std::chrono::abs(apart) > explained;
}

void ClockEstimate::add(const Reading& asked, Micros round_trip, Micros answer) {
  const Sample sample{asked, answer - (asked.wall + round_trip / 2), round_trip};
  const bool is_better = !best_ || is_another_ || round_trip <= best_->round_trip ||
                         asked.steady - best_->asked.steady >= kKept || is_contradicted(sample);
  is_another_ = false;
  answered_ = asked;
  if (is_better) best_ = sample;
}

Micros ClockEstimate::time(const Reading& now) const { return best_ ? best_->time(now.steady) : now.wall; }

bool ClockEstimate::wants_answer(const Reading& now) const {
  if (!answered_) return false;
  return std::chrono::abs(now.wall - answered_->wall - between(answered_->steady, now.steady)) > kSet;
}

}  // namespace delayq::net::redis
