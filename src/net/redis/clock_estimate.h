#pragma once

#include <chrono>
#include <optional>

#include "core/time.h"

namespace delayq::net::redis {

/// What time it is on another machine, from questions "what time is it?" and their answers. The answer was
/// made somewhere between sending and receiving: half of the round trip is the best guess, and the shorter
/// the trip the better it is.
///
/// From then on the steady clock tells the time: when our own clock is set, what was estimated stays. On one
/// machine that is a clock which is not seen to be set until it is asked for again.
class ClockEstimate {
 public:
  using Micros = std::chrono::microseconds;
  using Steady = std::chrono::steady_clock::time_point;

  /// Our two clocks at the same moment.
  struct Reading {
    Micros wall;
    Steady steady;
  };

  /// The question was sent at `asked`, and the answer came `round_trip` later.
  void add(const Reading& asked, Micros round_trip, Micros answer);
  /// The next answer is another machine's. Until it comes, the last one's clock is a better guess than ours:
  /// they were set alike, and a clock that jumps there and back would hand jobs over early.
  void expect_another() { is_another_ = true; }
  /// The other machine's clock. It is our own while nothing is known, and goes on from what ours was when it
  /// was asked where the difference is not more than the trip and a clock's milliseconds explain: on one
  /// machine no job is early by an error of measurement.
  Micros time(const Reading& now) const;
  /// What to add to our clock to have the other one's, rounded to milliseconds.
  Millis offset(const Reading& now) const { return std::chrono::round<Millis>(time(now) - now.wall); }
  /// Our clock was set since the last answer, or the machine slept: ask again, the other one may have been
  /// set with it.
  bool wants_answer(const Reading& now) const;

  /// Clocks drift apart (100 us a second is much): a good sample is not kept for longer than this; nor when
  /// drift and trips do not explain how far another is from it, since then the other clock was set.
  static constexpr std::chrono::minutes kKept{5};
  /// Our two clocks part by more than this only when one of them is set.
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
