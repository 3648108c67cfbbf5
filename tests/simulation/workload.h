#pragma once

#include <optional>

#include "tests/simulation/caretaker.h"
#include "tests/simulation/consumer.h"
#include "tests/simulation/planner.h"
#include "tests/simulation/producer.h"
#include "tests/simulation/scene.h"

namespace delayq::simulation {

/// All clients of the server together, each verb in its share.
class Workload {
 public:
  /// `planner_seed` is for what is drawn apart: nullopt when nobody sets schedules.
  Workload(World& world, Random& random, Shape shape, std::optional<uint64_t> planner_seed)
      : scene_(world, random, shape), producer_(scene_), consumer_(scene_), caretaker_(scene_) {
    if (planner_seed) planner_.emplace(scene_, *planner_seed);
  }

  /// One client does one thing; one who sets schedules may do another before.
  void act();
  /// The server has died: nobody is connected any more.
  void disconnect();
  /// REQUIRES: the world has settled and the server has looked at its clock.
  void check_at_rest();
  void clock_went_back() { consumer_.clock_went_back(); }

  Scene& scene() { return scene_; }
  uint64_t operations() const { return scene_.asked(); }
  uint64_t handed_over() const { return consumer_.handed_over(); }

 private:
  Scene scene_;
  Producer producer_;
  Consumer consumer_;
  Caretaker caretaker_;
  std::optional<Planner> planner_;
};

}  // namespace delayq::simulation
