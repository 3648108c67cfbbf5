// The steps of a workload that are about schedules.
#include <fmt/format.h>

#include "core/moment.h"
#include "tests/support/answer_text.h"
#include "tests/support/workload.h"

namespace delayq::support {

/// One turn with its texts; which revision it expects shows only when it is run.
struct Workload::TurnPick {
  std::string name;
  std::optional<uint64_t> wrong_expectation;  ///< nullopt: the revision that there is
  uint64_t revision = 0;                      ///< 0: it is removed, if there is one
  uint64_t revision_if_new = 0;
  Moment next = kNever;
  std::string definition;
  bool redefines = false;
  std::string progress;
  std::string progress_if_skipped;
  std::optional<JobSpec> job;
  std::optional<std::pair<std::string, std::string>> previous;  ///< topic, id
  Overlap overlap = Overlap::kAllow;

  TurnRequest request(EngineDriver& driver) const {
    const std::optional<StoredSchedule> found = driver.get_schedule(name);
    TurnRequest request;
    request.name = name;
    request.expected = wrong_expectation.value_or(found ? found->revision : 0);
    request.revision = found ? revision : revision_if_new;
    request.next = next;
    if (redefines || !found || request.expected == 0) request.definition = definition;
    request.progress = progress;
    request.progress_if_skipped = progress_if_skipped;
    if (job) request.job = job->view();
    if (previous) request.previous = JobRef{previous->first, previous->second};
    request.overlap = overlap;
    return request;
  }

  std::string text() const {
    return fmt::format(" {}{} to {:x} next={}{}{}{}{}", name, wrong_expectation ? " (wrongly)" : "", revision,
                       next == kNever ? -1 : to_unix_ms(next), redefines ? " redefined" : "",
                       job ? fmt::format(" with {}/{}", brief(job->topic), job->id) : "",
                       previous ? fmt::format(" after {}/{}", brief(previous->first), previous->second) : "",
                       overlap == Overlap::kAllow  ? ""
                       : overlap == Overlap::kSkip ? " or skip"
                                                   : " or replace");
  }
};

std::string Workload::occurrence(const std::string& name, uint64_t number) {
  return occurrence_id(name, kStart + Millis{static_cast<int64_t>(number) * 500});
}

Workload::TurnPick Workload::turn_pick() {
  TurnPick pick;
  pick.name = schedule();
  if (random_.chance(1, 8)) pick.wrong_expectation = random_.chance(1, 2) ? 0 : random_.next() | 1;
  pick.revision = random_.chance(1, 10) ? 0 : random_.next() | 1;
  pick.revision_if_new = random_.next() | 1;
  if (random_.chance(4, 5)) pick.next = moment_near();
  pick.definition = bytes(random_.chance(1, 10) ? shape_.largest_body : 40);
  pick.redefines = random_.chance(1, 5);
  pick.progress = bytes(60);
  pick.progress_if_skipped = bytes(60);
  if (random_.chance(1, 4)) return pick;
  const uint64_t number = random_.below(kOccurrences);
  const std::string id = occurrence(pick.name, number);
  pick.job = job();
  pick.job->id = id;
  pick.job->on_conflict = OnConflict::kKeep;
  pick.job->unique_across_topics = false;
  if (random_.chance(1, 2)) {
    pick.previous = {topic(), occurrence(pick.name, (number + random_.between(1, 3)) % kOccurrences)};
    pick.overlap = static_cast<Overlap>(random_.below(3));
  }
  return pick;
}

void Workload::turn(Step& step) {
  if (schedules_.empty()) return only_tick(step);
  std::vector<TurnPick> picks(random_.between(1, 3));
  step.text = "turn";
  for (TurnPick& pick : picks) {
    pick = turn_pick();
    step.text += pick.text();
  }
  step.run = [picks](Player& player) {
    std::vector<TurnRequest> requests;
    for (const TurnPick& pick : picks) requests.push_back(pick.request(player.driver));
    return support::to_text(player.driver.turn_all(requests));
  };
}

void Workload::read_schedules(Step& step) {
  if (schedules_.empty()) return only_tick(step);
  step.text = "schedules";
  step.run = [name = schedule(), limit = static_cast<uint32_t>(random_.between(1, 4))](Player& player) {
    const std::optional<StoredSchedule> found = player.driver.get_schedule(name);
    return support::to_text(player.driver.all_schedules(limit)) +
           (found ? support::to_text(*found) : " none");
  };
}

}  // namespace delayq::support
