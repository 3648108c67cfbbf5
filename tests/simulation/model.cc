#include "tests/simulation/model.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace delayq::simulation {
namespace {

/// The model's own news are not needed: what the real engine tells is checked against the model's state.
class Deaf final : public EngineListener {
  void on_ready(std::string_view, Outlet) override {}
  void on_expired(std::vector<LeaseInfo>) override {}
  void on_schedules_due(std::vector<StoredSchedule>) override {}
};

/// What becomes ready in the same tick enters that state at once: the order among those is nobody's promise.
void sort_ready(std::vector<support::SeenJob>& jobs) {
  const auto is_ready = [](const support::SeenJob& job) { return job.state == JobState::kReady; };
  for (auto begin = std::find_if(jobs.begin(), jobs.end(), is_ready); begin != jobs.end();) {
    const auto end = std::find_if(begin, jobs.end(), [&](const support::SeenJob& job) {
      return !is_ready(job) || job.topic != begin->topic;
    });
    std::sort(begin, end, [](const auto& a, const auto& b) { return a.id < b.id; });
    begin = std::find_if(end, jobs.end(), is_ready);
  }
}

Error wrong(std::string detail) { return {ErrorCode::kInternal, "model", std::move(detail)}; }

}  // namespace

void Model::poll() {
  Deaf deaf;
  engine_->poll(deaf);
}

std::unique_ptr<MemoryEngine> Model::copy() const {
  memory::JobTable jobs;
  for (const auto& [topic, in_topic] : engine_->jobs().topics()) {
    for (const auto& [id, job] : in_topic.jobs) jobs.restore(job);
  }
  return std::make_unique<MemoryEngine>(std::move(jobs), engine_->settings(), engine_->last_lease());
}

void Model::tick(Moment now) {
  while (engine_->tick(now) <= now) {
  }
  poll();
  history_.record(last_operation_, Promise::kNothing, engine_->jobs());
}

bool Model::store_settings(Operation operation, std::string_view topic, std::string_view settings) {
  std::vector<Setting>& chain = settings_[std::string(topic)];
  if (chain.empty()) chain.push_back({});
  chain.push_back({std::string(settings), operation});
  return apply<bool>(operation, Promise::kChanges, [&](Engine& engine, Reply<bool> reply) {
    engine.store_settings(topic, settings, std::move(reply));
  });
}

TurnAnswer Model::turn(Operation operation, Moment now, const TurnRequest& request, std::string& wrong) {
  const std::string name{request.name};
  const auto copy_of = [&]() -> std::optional<StoredSchedule> {
    const MemoryEngine::Schedules::Entry* entry = engine_->schedules().find(name);
    return entry == nullptr ? std::nullopt : std::optional(entry->schedule);
  };
  const std::optional<StoredSchedule> before = copy_of();
  using Answers = std::vector<TurnAnswer>;
  const TurnAnswer answer =
      apply<Answers>(operation, Promise::kChanges, [&](Engine& engine, Reply<Answers> reply) {
        engine.turn(now, {&request, 1}, std::move(reply));
      }).front();
  if (answer.outcome == TurnOutcome::kChanged) return answer;
  ScheduleHistory::Version version{copy_of(), operation, {}};
  const auto changed = [&](const auto& job) {
    version.effects.push_back({{std::string(job.topic), std::string(job.id)}, operation});
  };
  const bool has_pushed = request.job && answer.outcome == TurnOutcome::kTurned;
  if (has_pushed && answer.pushed != PushOutcome::kKept) changed(*request.job);
  if (answer.has_replaced) changed(*request.previous);
  wrong = occurrences_.turned({operation, now, before ? &*before : nullptr,
                               version.schedule ? &*version.schedule : nullptr, request, answer});
  schedule_history_.record(name, std::move(version));
  return answer;
}

void Model::answered(Operation operation) {
  history_.answered(operation);
  schedule_history_.answered(operation);
  for (auto& [topic, chain] : settings_) {
    const auto promised = std::find_if(
        chain.begin(), chain.end(), [&](const Setting& setting) { return setting.operation == operation; });
    if (promised != chain.end()) chain.erase(chain.begin(), promised);
  }
}

void Model::flushed(Operation operation) {
  history_.flushed(operation);
  schedule_history_.flushed(operation);
  for (auto& [topic, chain] : settings_) {
    const auto durable = std::find_if(chain.rbegin(), chain.rend(),
                                      [&](const Setting& setting) { return setting.operation <= operation; });
    if (durable != chain.rend()) chain.erase(chain.begin(), durable.base() - 1);
  }
}

void Model::pair_leases(std::string_view real, std::string_view ours) {
  leases_.emplace(std::string(real), std::string(ours));
  named_.emplace(ours);
}

void Model::guess_lease(std::string_view real, std::string_view ours) {
  pair_leases(real, ours);
  guessed_.emplace(real);
}

void Model::settle_lease(std::string_view real) {
  const auto chosen = may_be_.find(to_model(real));
  if (chosen == may_be_.end()) return;
  leases_.insert_or_assign(std::string(real), chosen->second);
  guessed_.emplace(real);
}

std::string Model::to_model(std::string_view real) const {
  const auto found = leases_.find(real);
  return found == leases_.end() ? "unknown" : found->second;
}

const memory::StoredJob* Model::find_lease(std::string_view real) const {
  const std::string ours = to_model(real);
  uint64_t number = 0;
  std::from_chars(ours.data() + 1, ours.data() + ours.size(), number);
  for (const auto& [deadline, job] : engine_->jobs().deadlines()) {
    if (job->lease == number) return job;
  }
  return nullptr;
}

Status Model::adopt(const Survey& survey, Moment now, bool certain) {
  may_be_.clear();
  Found found;
  for (const support::SeenJob& job : survey.jobs) {
    if (!found.emplace(History::Key{job.topic, job.id}, &job).second) {
      return wrong(fmt::format("listed twice: {}", to_string(job)));
    }
  }
  Bounds bounds;
  if (Status adopted = adopt_schedules(survey, found, now, certain, bounds); !adopted.ok()) return adopted;
  memory::JobTable jobs;
  if (Status adopted = adopt_jobs(survey, found, bounds, now, certain, jobs); !adopted.ok()) return adopted;
  MemoryEngine::Settings settings;
  if (Status adopted = adopt_settings(survey, certain, settings); !adopted.ok()) return adopted;
  MemoryEngine::Schedules schedules;
  for (const StoredSchedule& schedule : survey.schedules) {
    MemoryEngine::Schedules::Entry& entry = schedules.find_or_insert(schedule.name);
    entry.schedule = schedule;
    schedules.set_next(entry, schedule.next);
  }
  engine_ = std::make_unique<MemoryEngine>(std::move(jobs), std::move(settings), engine_->last_lease(),
                                           std::move(schedules));
  history_.record(last_operation_, Promise::kNothing, engine_->jobs());
  return {};
}

Status Model::adopt_jobs(const Survey& survey, const Found& found, const Bounds& bounds, Moment now,
                         bool certain, memory::JobTable& into) {
  const auto bounds_of = [&](const History::Key& key) {
    const auto known = bounds.find(key);
    return known == bounds.end() ? History::Bounds{} : known->second;
  };
  std::vector<History::Key> missing;
  for (const auto& [key, chain] : history_.chains()) {
    if (!found.contains(key)) missing.push_back(key);
  }
  for (const History::Key& key : missing) {
    const History::Version* version = history_.find(key, nullptr, now, bounds_of(key));
    if (version == nullptr) {
      return wrong(
          fmt::format("lost: {}/{} is gone; allowed is:{}", key.first, key.second, history_.describe(key)));
    }
    history_.settle(key, *version, certain);
  }

  uint64_t entered = 0;
  for (const support::SeenJob& job : survey.jobs) {
    const History::Key key{job.topic, job.id};
    const History::Version* version = history_.find(key, &job, now, bounds_of(key));
    if (version == nullptr) {
      return wrong(fmt::format("not allowed: {}\n    allowed is:{}", to_string(job), history_.describe(key)));
    }
    memory::StoredJob stored = *version->job;
    if (job.state == JobState::kReserved) {
      for (const uint64_t lease : history_.leases_of(key, job)) {
        if (lease != stored.lease) may_be_[name_of(lease)] = name_of(stored.lease);
      }
    }
    stored.state = job.state;
    stored.entered = ++entered;
    into.restore(std::move(stored));
    history_.settle(key, *version, certain);
  }
  return {};
}

Status Model::adopt_schedules(const Survey& survey, const Found& found, Moment now, bool certain,
                              Bounds& bounds) {
  std::map<std::string_view, const StoredSchedule*> listed;
  for (const StoredSchedule& schedule : survey.schedules) {
    if (!listed.emplace(schedule.name, &schedule).second)
      return wrong("a schedule is listed twice: " + to_string(schedule));
    if (!schedule_history_.chains().contains(schedule.name))
      return wrong("a schedule that nobody has set: " + to_string(schedule));
  }
  std::vector<std::string> names;
  for (const auto& [name, chain] : schedule_history_.chains()) names.push_back(name);
  for (const std::string& name : names) {
    const auto is = listed.find(name);
    Status adopted =
        adopt_schedule(name, is == listed.end() ? nullptr : is->second, found, now, certain, bounds);
    if (!adopted.ok()) return adopted;
  }
  return {};
}

Status Model::adopt_schedule(const std::string& name, const StoredSchedule* is, const Found& found,
                             Moment now, bool certain, Bounds& bounds) {
  const std::string has = is == nullptr ? name + ", which is gone" : to_string(*is);
  const std::vector<const ScheduleHistory::Version*> versions = schedule_history_.find(name, is);
  if (versions.empty()) {
    return wrong(
        fmt::format("not allowed: schedule {}\n    allowed is:{}", has, schedule_history_.describe(name)));
  }
  // There may have been none several times; jobs tell which one it is.
  std::string first_problem;
  for (const ScheduleHistory::Version* version : versions) {
    const Bounds of_jobs = schedule_history_.bounds_of(name, *version);
    const auto broken = std::find_if(of_jobs.begin(), of_jobs.end(), [&](const auto& each) {
      const auto job = found.find(each.first);
      const support::SeenJob* seen_job = job == found.end() ? nullptr : job->second;
      return history_.find(each.first, seen_job, now, each.second) == nullptr;
    });
    if (broken == of_jobs.end()) {
      bounds.insert(of_jobs.begin(), of_jobs.end());
      occurrences_.went_back(name, version->operation);
      schedule_history_.settle(name, *version, certain);
      return {};
    }
    if (!first_problem.empty()) continue;
    const auto job = found.find(broken->first);
    first_problem = fmt::format(
        "a turn was torn apart: the schedule {}\n    is as after operation {}, and its job {}/{} {}{}", has,
        version->operation, broken->first.first, broken->first.second,
        job == found.end() ? "is gone" : "is not as it was then:\n    " + to_string(*job->second),
        history_.describe(broken->first));
  }
  return wrong(first_problem);
}

Status Model::adopt_settings(const Survey& survey, bool certain, MemoryEngine::Settings& into) {
  for (const TopicSettings& setting : survey.settings) {
    into.emplace(setting.topic, setting.settings);
    if (!settings_.contains(setting.topic))
      return wrong("settings of a topic that never had any: " + setting.topic);
  }
  for (auto& [topic, chain] : settings_) {
    const auto found = into.find(topic);
    const std::string value = found == into.end() ? "" : found->second;
    const auto match = std::find_if(chain.rbegin(), chain.rend(),
                                    [&](const Setting& setting) { return setting.value == value; });
    if (match == chain.rend()) {
      return wrong(fmt::format("settings of {} are {} bytes that are none of the {} allowed ones", topic,
                               value.size(), chain.size()));
    }
    chain.erase(match.base(), chain.end());
    if (certain) chain.erase(chain.begin(), chain.end() - 1);
  }
  return {};
}

std::vector<support::SeenJob> Model::expected() const {
  std::vector<support::SeenJob> jobs;
  for (const auto& [topic, in_topic] : engine_->jobs().topics()) {
    for (const memory::JobTable::InOrder& in_state : in_topic.states) {
      for (const auto& [entered, job] : in_state) jobs.push_back(seen(*job));
    }
  }
  return jobs;
}

uint64_t Model::count_differences(const Survey& survey) const {
  std::map<History::Key, const support::SeenJob*> found;
  for (const support::SeenJob& job : survey.jobs) found.emplace(History::Key{job.topic, job.id}, &job);
  uint64_t different = 0;
  for (support::SeenJob should : expected()) {
    const auto has = found.find({should.topic, should.id});
    if (has == found.end()) {
      ++different;
      continue;
    }
    should.state = has->second->state;  // the clock may have moved on
    different += should == *has->second ? 0 : 1;
    found.erase(has);
  }
  different += found.size();
  std::map<std::string_view, const StoredSchedule*> schedules;
  for (const StoredSchedule& schedule : survey.schedules) schedules.emplace(schedule.name, &schedule);
  for (const auto& entry : engine_->schedules()) {
    const auto has = schedules.find(entry->schedule.name);
    different += has != schedules.end() && *has->second == entry->schedule ? 0 : 1;
    schedules.erase(entry->schedule.name);
  }
  return different + schedules.size();
}

Status Model::compare(const Survey& survey) const {
  std::vector<support::SeenJob> expected = this->expected();
  std::vector<support::SeenJob> listed = survey.jobs;
  sort_ready(expected);
  sort_ready(listed);
  for (size_t i = 0; i < std::max(expected.size(), listed.size()); ++i) {
    if (i < expected.size() && i < listed.size() && expected[i] == listed[i]) continue;
    const std::string has = i < listed.size() ? to_string(listed[i]) : "nothing more";
    const std::string should = i < expected.size() ? to_string(expected[i]) : "nothing more";
    return wrong(fmt::format("listed is     {}\n    should be    {}", has, should));
  }
  MemoryEngine::Settings settings;
  for (const TopicSettings& each : survey.settings) settings.emplace(each.topic, each.settings);
  if (settings != engine_->settings()) return wrong("the settings are not those that were stored");
  const SchedulePage schedules = engine_->schedules().page({.limit = UINT32_MAX, .max_bytes = UINT64_MAX});
  for (size_t i = 0; i < std::max(schedules.schedules.size(), survey.schedules.size()); ++i) {
    const StoredSchedule* has = i < survey.schedules.size() ? &survey.schedules[i] : nullptr;
    const StoredSchedule* should = i < schedules.schedules.size() ? &schedules.schedules[i] : nullptr;
    if (has != nullptr && should != nullptr && *has == *should) continue;
    return wrong(fmt::format("listed is     schedule {}\n    should be    {}",
                             has == nullptr ? "no more" : to_string(*has),
                             should == nullptr ? "no more" : to_string(*should)));
  }
  return {};
}

}  // namespace delayq::simulation
