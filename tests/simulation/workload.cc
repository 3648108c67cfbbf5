#include "tests/simulation/workload.h"

#include <fmt/format.h>

namespace delayq::simulation {

void Workload::act() {
  if (planner_) planner_->act();
  const uint64_t dice = scene_.random().below(100);
  if (dice < 27) return producer_.push();
  if (dice < 30) return producer_.restore();
  if (dice < 52) return consumer_.pop();
  if (dice < 62) return consumer_.ack();
  if (dice < 70) return consumer_.nack();
  if (dice < 72) return consumer_.extend();
  if (dice < 74) return consumer_.drop();
  if (dice < 79) return producer_.cancel();
  if (dice < 80) return producer_.cancel_by_id();
  if (dice < 82) return producer_.cancel_group();
  if (dice < 87) return producer_.reschedule();
  if (dice < 89) return caretaker_.redrive();
  if (dice < 90) return caretaker_.purge();
  if (dice < 93) return caretaker_.look_up();
  if (dice < 95) return caretaker_.list();
  if (dice < 96) return caretaker_.watch();
  if (dice < 97) return scene_.chance(50) ? caretaker_.take_along() : caretaker_.back_up();
  if (dice < 99) return caretaker_.change_settings();
  caretaker_.pause_or_resume();
}

void Workload::disconnect() {
  scene_.forget_open();
  consumer_.forget_waiters();
}

void Workload::check_at_rest() {
  World& world = scene_.world();
  if (world.checked().has_failed() || world.is_careful()) return;
  for (const auto& [ticket, verb] : scene_.open()) {
    if (verb != "pop") return scene_.fail(verb, "was never answered");
  }
  consumer_.check_at_rest();
  if (!world.is_sound()) return;  // a failed journal notices nothing, and may not have had to say so yet
  // Every lease that has run out is somebody's failure by now.
  for (const auto& [deadline, job] : world.model().jobs().deadlines()) {
    if (deadline.first > world.now()) break;
    scene_.fail("tick", fmt::format("a lease ran out and nobody noticed: {}", to_string(seen(*job))));
  }
}

}  // namespace delayq::simulation
