#pragma once

#include <exception>
#include <functional>
#include <vector>

#include "engine/engine.h"
#include "tests/support/seen_job.h"

namespace delayq::simulation {

/// Everything an engine says it holds.
struct Survey {
  std::vector<support::SeenJob> jobs;  ///< by topic, then state, then the order of entering it
  std::vector<TopicSettings> settings;
  std::vector<StoredSchedule> schedules;  ///< by name
  // What was told while looking around; somebody has to hear it.
  std::vector<std::string> ready_news;
  std::vector<LeaseInfo> expired_news;
  std::vector<StoredSchedule> schedule_news;
};

/// Lists all of it, with bodies. `pump` lets the disk work go on, and answers false when the machine is off:
/// then the error is kUnavailable. Also checks what must be so in any engine: that the counts are those of
/// the lists. Any other error says what is wrong with the answers.
Result<Survey> take_survey(Engine& engine, Moment now, const std::function<bool()>& pump);

/// Thrown through a driver that would wait for an answer for ever.
class MachineIsOff : public std::exception {};

}  // namespace delayq::simulation
