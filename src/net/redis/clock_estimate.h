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
  /// The other machine is another one now.
  void forget() { best_.reset(); }
  /// What to add to our clock to have the other one's, rounded to milliseconds. Zero while nothing is known,
  /// and where the difference is not more than the trip and the clocks' milliseconds explain: on one machine
  /// nobody is early by an error of measurement.
  Millis offset() const;

  /// Clocks drift apart (100 us a second is much): a good sample is not kept for longer than this.
  static constexpr std::chrono::minutes kKept{5};

 private:
  struct Sample {
    Micros offset;
    Micros round_trip;
    Steady taken;
  };
  std::optional<Sample> best_;
};

}  // namespace delayq::net::redis
