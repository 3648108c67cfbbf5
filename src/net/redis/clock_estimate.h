#pragma once

#include <chrono>
#include <optional>

#include "core/time.h"

namespace delayq::net::redis {

/// How far another machine's clock is ahead of ours, from questions "what time is it?" and their answers. The
/// answer was made somewhere between sending and receiving: half of the round trip is the best guess, and the
/// shorter the trip the better it is.
class ClockEstimate {
 public:
  using Micros = std::chrono::microseconds;
  using Steady = std::chrono::steady_clock::time_point;

  /// `asked` is our clock when the question was sent; the answer came `round_trip` later, at `now`.
  void add(Micros asked, Micros round_trip, Micros answer, Steady now);
  /// The next answer is another machine's. Until it comes, the last one's clock is a better guess than ours:
  /// they were set alike, and a clock that jumps there and back would hand jobs over early.
  void expect_another() { is_another_ = true; }
  /// What to add to our clock to have the other one's, rounded to milliseconds. Zero while nothing is known,
  /// and where the difference is not more than the trip and the clocks' milliseconds explain: on one machine
  /// nobody is early by an error of measurement.
  Millis offset() const;

  /// Clocks drift apart (100 us a second is much): a good sample is not kept for longer than this; nor when
  /// drift and trips do not explain how far another is from it, since then one of the clocks was set.
  static constexpr std::chrono::minutes kKept{5};

 private:
  struct Sample {
    Micros offset;
    Micros round_trip;
    Steady taken;
  };
  bool is_contradicted(const Sample& sample) const;

  std::optional<Sample> best_;
  bool is_another_ = false;
};

}  // namespace delayq::net::redis
