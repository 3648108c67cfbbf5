#pragma once

#include "core/random.h"
#include "tests/simulation/scene.h"

namespace delayq::simulation {

/// Those who set schedules, and meet the jobs that these make.
///
/// All that they do is drawn from a stream of random numbers of their own.
class Planner {
 public:
  Planner(Scene& scene, uint64_t seed) : scene_(scene), random_(seed) {}

  /// One of them does one thing, or nothing.
  void act();

 private:
  struct Draft;
  Draft draft();
  void set();
  void set_nonsense();
  void pause_or_resume();
  void run();
  void remove();
  void look();
  /// Cancels a job that a schedule has made.
  void cancel();

  std::string name();
  bool chance(uint32_t of_100) { return random_.below(100) < of_100; }
  Millis millis(uint64_t bound) { return Millis{static_cast<int64_t>(random_.below(bound))}; }
  template <class T>
  Reply<T> note(std::string verb, std::optional<ErrorCode> expected = {});

  Scene& scene_;
  Random random_;
};

}  // namespace delayq::simulation
