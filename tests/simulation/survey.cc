#include "tests/simulation/survey.h"

#include <fmt/format.h>

#include "tests/support/engine_driver.h"

namespace delayq::simulation {
namespace {

Error wrong(std::string detail) { return {ErrorCode::kInternal, "survey", std::move(detail)}; }

Status list_topic(support::EngineDriver& driver, const TopicRow& row, TopicCounts& total, Survey& survey) {
  for (size_t index = 0; index < kJobStateCount; ++index) {
    ListRequest request;
    request.topic = row.topic;
    request.state = static_cast<JobState>(index);
    request.limit = 7;  // several pages, so that cursors work for their living
    request.with_bodies = true;
    const std::vector<support::SeenJob> jobs = driver.list_all(request);
    for (const support::SeenJob& job : jobs) {
      if (job.state != request.state || job.topic != row.topic) {
        return wrong(
            fmt::format("the list of {} in {} shows {}", name_of(request.state), row.topic, to_string(job)));
      }
    }
    if (row.counts.by_state[index] != jobs.size()) {
      return wrong(fmt::format("{} says it has {} {} jobs and lists {}", row.topic,
                               row.counts.by_state[index], name_of(request.state), jobs.size()));
    }
    total.by_state[index] += jobs.size();
    survey.jobs.insert(survey.jobs.end(), jobs.begin(), jobs.end());
  }
  return {};
}

Status list_schedules(support::EngineDriver& driver, Survey& survey) {
  for (bool has_more = true; has_more;) {
    const std::string after = survey.schedules.empty() ? "" : survey.schedules.back().name;
    SchedulePage page = driver.list_schedules({.after = after, .limit = 2});
    if (page.has_more && page.schedules.empty()) return wrong("an empty page of schedules, and more to come");
    has_more = page.has_more;
    for (StoredSchedule& schedule : page.schedules) {
      if (!survey.schedules.empty() && schedule.name <= survey.schedules.back().name)
        return wrong("schedules are out of order: " + schedule.name);
      survey.schedules.push_back(std::move(schedule));
    }
  }
  const uint64_t count = driver.engine().usage().schedules;
  if (count == survey.schedules.size()) return {};
  return wrong(fmt::format("usage says {} schedules, the list has {}", count, survey.schedules.size()));
}

Result<Survey> look_around(support::EngineDriver& driver) {
  Survey survey;
  TopicCounts total;
  std::string cursor;
  do {
    const TopicPage page = driver.topics(cursor, 3);
    for (const TopicRow& row : page.topics) {
      if (Status listed = list_topic(driver, row, total, survey); !listed.ok()) return listed.error();
    }
    cursor = page.cursor;
  } while (!cursor.empty());
  if (driver.counts("").by_state != total.by_state)
    return wrong("the total counts are not the sum of the topics'");
  if (driver.engine().usage().jobs != survey.jobs.size()) {
    return wrong(fmt::format("usage says {} jobs, the lists have {}", driver.engine().usage().jobs,
                             survey.jobs.size()));
  }
  survey.settings = driver.load_settings();
  if (Status listed = list_schedules(driver, survey); !listed.ok()) return listed.error();
  return survey;
}

}  // namespace

Result<Survey> take_survey(Engine& engine, Moment now, const std::function<bool()>& pump) {
  support::EngineDriver driver(engine, [&] { return pump() ? true : throw MachineIsOff(); });
  driver.go_to(now);
  try {
    Result<Survey> survey = look_around(driver);
    if (!survey.ok()) return survey;
    const std::set<std::string> ready = driver.ready_news();
    survey->ready_news.assign(ready.begin(), ready.end());
    survey->expired_news = driver.expired_news();
    survey->schedule_news = driver.schedule_news();
    return survey;
  } catch (const MachineIsOff&) {
    return Error{ErrorCode::kUnavailable, "survey", "the machine is off"};
  } catch (const std::exception& problem) {
    return wrong(problem.what());
  }
}

}  // namespace delayq::simulation
