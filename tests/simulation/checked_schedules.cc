// Schedules.
#include <utility>

#include "tests/simulation/checked_engine_run.h"

namespace delayq::simulation {

void CheckedEngine::turn(Moment now, std::span<const TurnRequest> requests,
                         Reply<std::vector<TurnAnswer>> reply) {
  using Answers = std::vector<TurnAnswer>;
  auto judge = [](const Answers& real, const Answers& expected) { return difference(real, expected); };
  run<Answers>(
      {"turn", now, Promise::kChanges, judge}, std::move(reply),
      [&](Reply<Answers> done) { world_.real.turn(now, requests, std::move(done)); },
      [&](Operation operation) {
        // One by one, so that the history has every step: a crash may fall between any two.
        Answers expected;
        for (const TurnRequest& request : requests) {
          std::string wrong;
          expected.push_back(world_.model.turn(operation, now, request, wrong));
          if (!wrong.empty()) fail("turn", wrong);
          if (world_.witness.tracing()) {
            world_.witness.say(fmt::format("  engine: operation {} turns {} from {:x} to {:x}{}{}: {}",
                                           operation, request.name, request.expected, request.revision,
                                           request.job ? " with " : "", request.job ? request.job->id : "",
                                           static_cast<int>(expected.back().outcome)));
          }
        }
        return expected;
      });
}

void CheckedEngine::get_schedule(Moment now, std::string_view name,
                                 Reply<std::optional<StoredSchedule>> reply) {
  run_same<std::optional<StoredSchedule>>("get_schedule", now, Promise::kNothing, std::move(reply),
                                          [&](Engine& engine, Reply<std::optional<StoredSchedule>> done) {
                                            engine.get_schedule(now, name, std::move(done));
                                          });
}

void CheckedEngine::list_schedules(Moment now, const ScheduleListRequest& request,
                                   Reply<SchedulePage> reply) {
  run_same<SchedulePage>("list_schedules", now, Promise::kNothing, std::move(reply),
                         [&](Engine& engine, Reply<SchedulePage> done) {
                           engine.list_schedules(now, request, std::move(done));
                         });
}

void CheckedEngine::keep_due(const std::vector<StoredSchedule>& due) {
  for (const StoredSchedule& schedule : due) {
    if (world_.witness.tracing())
      world_.witness.say(fmt::format("  engine: schedule {} {:x} is due", schedule.name, schedule.revision));
    // It may have changed since the engine looked, but it was like that.
    const StoredSchedule* known = world_.model.schedule_history().find_revision(schedule.revision);
    if (known == nullptr || *known != schedule)
      fail("on_schedules_due", "never was like that: " + to_string(schedule));
    if (schedule.next > latest_) fail("on_schedules_due", "told before its time: " + to_string(schedule));
    due_.push_back(schedule);
  }
}

void CheckedEngine::on_schedules_due(std::vector<StoredSchedule> due) {
  keep_due(due);
  if (listener_ != nullptr) listener_->on_schedules_due(std::exchange(due_, {}));
}

}  // namespace delayq::simulation
