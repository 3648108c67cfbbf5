#include "tests/simulation/checked_engine.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "tests/simulation/checked_engine_run.h"

namespace delayq::simulation {
namespace {

/// A bin's edge may be off by the resolution, so only jobs well inside must be there, and none from well
/// outside.
std::string forecast_difference(const Forecast& real, const Forecast& expected,
                                const std::vector<Moment>& dues, Moment from, Moment to) {
  if (real.bins.size() != expected.bins.size()) return "a forecast with another number of bins";
  const Millis slack = real.resolution - Millis{1};
  const auto between = [&](Moment begin, Moment end) {
    return std::count_if(dues.begin(), dues.end(), [&](Moment due) { return begin <= due && due < end; });
  };
  const auto total = std::accumulate(real.bins.begin(), real.bins.end(), int64_t{0});
  const int64_t least = between(from + slack, to - slack);
  const int64_t most = between(from - slack, to + slack);
  if (least <= total && total <= most) return {};
  return fmt::format("{} jobs in the forecast, should be {} to {}", total, least, most);
}

}  // namespace

void CheckedEngine::fail(std::string_view verb, const std::string& what) {
  world_.witness.fail(fmt::format("{}: {}", verb, what));
}

void CheckedEngine::keep_news(const Survey& survey) {
  for (const std::string& topic : survey.ready_news) {
    for (const Outlet outlet : {Outlet::kTopic, Outlet::kCallback}) ready_.emplace(topic, outlet);
  }
  expired_.insert(expired_.end(), survey.expired_news.begin(), survey.expired_news.end());
  keep_due(survey.schedule_news);
}

Result<Survey> CheckedEngine::look_around(Moment now) {
  // Looking is a verb: a lease that has run out at `now` is told on the way, once. Should the clock go back
  // after that, its deadline is ahead again, but nothing is left to do then.
  latest_ = std::max(latest_, now);
  constexpr int kTries = 3;  // a sector may have been unreadable
  for (int i = 1;; ++i) {
    Result<Survey> survey = take_survey(world_.real, now, world_.pump);
    if (survey.ok() || is_failure(survey.error()) || !careful_ || i == kTries) return survey;
  }
}

void CheckedEngine::audit(Moment now) {
  if (failed_) return;
  // Looking is a verb: what is due at `now` becomes ready.
  ask_model<TopicCounts>(
      world_.model.begin(), Promise::kNothing,
      [&](Engine& engine, Reply<TopicCounts> reply) { engine.counts(now, "", std::move(reply)); });
  const Result<Survey> survey = look_around(now);
  if (!survey.ok() && is_failure(survey.error())) return;
  if (!survey.ok()) return fail("audit", survey.error().detail);
  keep_news(*survey);
  if (failed_ || !world_.is_sound()) return;  // a journal that has just failed has less than it took
  const Status same = world_.model.compare(*survey);
  if (!same.ok()) fail("audit", same.error().detail);
}

void CheckedEngine::recover_from(const Error& error, Moment now) {
  if (world_.witness.failed()) return;
  world_.witness.say(fmt::format("  in doubt: {}", to_string(error)));
  recover(now, false);
}

void CheckedEngine::recover(Moment now, bool certain) {
  const Result<Survey> survey = look_around(now);
  if (!survey.ok() && is_failure(survey.error())) return;
  if (!survey.ok()) return fail("recover", survey.error().detail);
  keep_news(*survey);
  const Status adopted = world_.model.adopt(*survey, now, certain);
  if (!adopted.ok()) fail("recover", adopted.error().detail);
}

// ---- looking around

void CheckedEngine::get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply) {
  run_same<std::optional<FoundJob>>(
      "get", now, Promise::kNothing, std::move(reply),
      [&](Engine& engine, Reply<std::optional<FoundJob>> done) { engine.get(now, job, std::move(done)); });
}

void CheckedEngine::locate(Moment now, std::string_view id, Among among,
                           Reply<std::vector<std::string>> reply) {
  run_same<std::vector<std::string>>("locate", now, Promise::kNothing, std::move(reply),
                                     [&](Engine& engine, Reply<std::vector<std::string>> done) {
                                       engine.locate(now, id, among, std::move(done));
                                     });
}

void CheckedEngine::list(Moment now, const ListRequest& request, Reply<JobPage> reply) {
  // Pages and cursors are each engine's own: any page must be a part of the whole list.
  ListRequest all = request;
  all.cursor = {};
  all.limit = UINT32_MAX;
  auto judge = [whole = request.cursor.empty()](const JobPage& real, const JobPage& expected) {
    const bool ends = whole && real.cursor.empty();
    return ends && real.jobs.size() != expected.jobs.size()
               ? difference(real.jobs.size(), expected.jobs.size())
               : difference(real, expected);
  };
  run<JobPage>(
      {"list", now, Promise::kNothing, std::move(judge)}, std::move(reply),
      [&](Reply<JobPage> done) { world_.real.list(now, request, std::move(done)); },
      [&](Operation operation) {
        return ask_model<JobPage>(operation, Promise::kNothing, [&](Engine& engine, Reply<JobPage> done) {
          engine.list(now, all, std::move(done));
        });
      });
}

void CheckedEngine::counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) {
  run_same<TopicCounts>(
      "counts", now, Promise::kNothing, std::move(reply),
      [&](Engine& engine, Reply<TopicCounts> done) { engine.counts(now, topic, std::move(done)); });
}

void CheckedEngine::topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicPage> reply) {
  run_same<TopicPage>(
      "topics", now, Promise::kNothing, std::move(reply),
      [&](Engine& engine, Reply<TopicPage> done) { engine.topics(now, cursor, limit, std::move(done)); });
}

std::vector<Moment> CheckedEngine::dues_of(std::string_view topic) const {
  std::vector<Moment> dues;
  for (const auto& [when, job] : world_.model.jobs().alarms()) {
    if (job->state == JobState::kDelayed && (topic.empty() || job->topic == topic)) dues.push_back(job->due);
  }
  return dues;
}

void CheckedEngine::forecast(Moment now, const ForecastRequest& request, Reply<Forecast> reply) {
  auto dues = std::make_shared<std::vector<Moment>>();
  auto judge = [dues, from = request.from, to = request.to](const Forecast& real, const Forecast& expected) {
    return forecast_difference(real, expected, *dues, from, to);
  };
  run<Forecast>(
      {"forecast", now, Promise::kNothing, std::move(judge)}, std::move(reply),
      [&](Reply<Forecast> done) { world_.real.forecast(now, request, std::move(done)); },
      [&](Operation operation) {
        Forecast expected = ask_model<Forecast>(
            operation, Promise::kNothing,
            [&](Engine& engine, Reply<Forecast> done) { engine.forecast(now, request, std::move(done)); });
        *dues = dues_of(request.topic);
        return expected;
      });
}

// ---- settings and running

void CheckedEngine::store_settings(std::string_view topic, std::string_view settings, Reply<bool> reply) {
  run<bool>(
      {"store_settings", now_, Promise::kChanges}, std::move(reply),
      [&](Reply<bool> done) { world_.real.store_settings(topic, settings, std::move(done)); },
      [&](Operation operation) { return world_.model.store_settings(operation, topic, settings); });
}

void CheckedEngine::load_settings(Reply<std::vector<TopicSettings>> reply) {
  run_same<std::vector<TopicSettings>>(
      "load_settings", now_, Promise::kNothing, std::move(reply),
      [&](Engine& engine, Reply<std::vector<TopicSettings>> done) { engine.load_settings(std::move(done)); });
}

void CheckedEngine::flush(Reply<bool> reply) {
  const Operation before = world_.model.begin();
  auto judge = [this, before](bool, bool) {
    world_.model.flushed(before);
    return std::string();
  };
  run<bool>(
      {"flush", now_, Promise::kChanges, std::move(judge)}, std::move(reply),
      [&](Reply<bool> done) { world_.real.flush(std::move(done)); }, [](Operation) { return true; });
}

Moment CheckedEngine::tick(Moment now) {
  now_ = now;
  latest_ = std::max(latest_, now);
  if (failed_) return world_.real.tick(now);
  world_.model.tick(now);
  const Moment next = world_.real.tick(now);
  // It may ask to be called for reasons of its own, but not later than the next job needs it.
  Moment needed = kNever;
  for (const auto& [when, job] : world_.model.jobs().alarms()) {
    if (job->state == JobState::kDelayed) needed = std::min(needed, when.first);
  }
  for (const auto& [when, job] : world_.model.jobs().deadlines()) {
    if (when.first > latest_) needed = std::min(needed, when.first);  // else it was told already
  }
  for (const auto& entry : world_.model.schedules()) {
    const Moment when = entry->schedule.next;
    if (when == kNever) continue;
    needed = std::min(needed, when > latest_ ? when : latest_ + kDueScheduleReminder);
  }
  if (next > needed && world_.is_sound()) {
    fail("tick", fmt::format("wants to be called at {}, but has something to do at {}",
                             next == kNever ? -1 : to_unix_ms(next), to_unix_ms(needed)));
  }
  return next;
}

bool CheckedEngine::poll(EngineListener& listener) {
  // First what was kept back: the engine is not on the stack now, so whoever is told may make us wait for it.
  auto answers = std::exchange(answers_, {});
  const auto ready = std::exchange(ready_, {});
  auto expired = std::exchange(expired_, {});
  auto due = std::exchange(due_, {});
  bool any = !answers.empty() || !ready.empty() || !expired.empty() || !due.empty();
  for (auto& give : answers) give();
  for (const auto& [topic, outlet] : ready) listener.on_ready(topic, outlet);
  if (!expired.empty()) listener.on_expired(std::move(expired));
  if (!due.empty()) listener.on_schedules_due(std::move(due));

  listener_ = careful_ ? nullptr : &listener;
  any |= world_.real.poll(*this);
  listener_ = nullptr;
  return any || !answers_.empty() || !ready_.empty() || !expired_.empty() || !due_.empty();
}

void CheckedEngine::on_ready(std::string_view topic, Outlet outlet) {
  if (listener_ != nullptr) return listener_->on_ready(topic, outlet);
  ready_.emplace(topic, outlet);
}

void CheckedEngine::on_expired(std::vector<LeaseInfo> leases) {
  bool has_stranger = false;
  for (const LeaseInfo& info : leases) {
    if (world_.witness.tracing())
      world_.witness.say(fmt::format("  engine: lease ran out: {}/{}", info.topic, info.lease));
    has_stranger |= world_.model.to_model(info.lease) == "unknown";
    const memory::StoredJob* job = failed_ ? nullptr : world_.model.find_lease(info.lease);
    if (job != nullptr && job->until > latest_) {
      fail("on_expired", fmt::format("told before its time: {}", to_string(seen(*job))));
    }
  }
  if (listener_ != nullptr && !has_stranger) return listener_->on_expired(std::move(leases));
  for (LeaseInfo& info : leases) expired_.push_back(std::move(info));
}

}  // namespace delayq::simulation
