#pragma once

#include <chrono>
#include <optional>

#include "core/time.h"

namespace delayq::net::redis {

/// Estimates the clock of another machine from requests for its time and the answers. An answer was made at
/// some moment between sending and receiving: the middle of the round trip is the best guess, and the shorter
/// the trip, the better.
///
/// From then on the steady clock measures the time: when our own clock is set, the estimate does not change.
/// If both are the same machine, the estimate follows such a change only with the next answer.
class ClockEstimate {
 public:
  using Micros = std::chrono::microseconds;
  using Steady = std::chrono::steady_clock::time_point;

  /// Our two clocks at the same moment.
  struct Reading {
    Micros wall;
    Steady steady;
  };

  /// The request was sent at `asked`, and the answer arrived `round_trip` later.
  void add(const Reading& asked, Micros round_trip, Micros answer);
  /// The next answer is from another machine. Until it arrives, the clock of the last machine is a better
  /// guess than ours: their clocks probably agree, and a clock that jumps forth and back would hand jobs over
  /// early.
  void expect_another() { is_another_ = true; }
  /// The other machine's clock; our own before the first answer. If the measured difference can be explained
  /// by the round trip and the resolution of a millisecond, it is taken as zero, so that on one machine no
  /// job is early because of an error of measurement.
  Micros time(const Reading& now) const;
  /// The other machine's clock minus ours, rounded to milliseconds.
  Millis offset(const Reading& now) const { return std::chrono::round<Millis>(time(now) - now.wall); }
  /// Whether our clock was set since the last answer, or the machine slept. Then ask again: the other clock
  /// may have been set too.
  bool wants_answer(const Reading& now) const;

  /// Clocks drift apart (100 us a second is much), so a good sample is not kept longer than this. It is also
  /// dropped when drift and round trips do not explain its distance to a new one: then the other clock was
  /// set.
  static constexpr std::chrono::minutes kKept{5};
  /// Our wall clock and steady clock differ by more than this only when the wall clock was set.
  static constexpr Millis kSet{100};

 private:
  struct Sample {
    Reading asked;
    Micros offset;  ///< of the other clock to ours, then
    Micros round_trip;

    /// The other clock, by this sample.
    Micros time(Steady now) const;
  };
  bool is_contradicted(const Sample& sample) const;

  std::optional<Sample> best_;
  std::optional<Reading> answered_;  ///< when the latest question was asked that got an answer
  bool is_another_ = false;
};

}  // namespace delayq::net::redis
