#pragma once

#include "tests/simulation/scene.h"

namespace delayq::simulation {

/// Those who push jobs and change their minds.
class Producer {
 public:
  explicit Producer(Scene& scene) : scene_(scene) {}

  void push();
  /// What they have from elsewhere, in any state.
  void restore();
  void cancel();
  void cancel_by_id();
  void cancel_group();
  void reschedule();

 private:
  struct Draft;
  Draft draft();
  void check_receipts(const std::vector<Draft>& drafts, const PushReport& report);

  Scene& scene_;
};

}  // namespace delayq::simulation
