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

void Model::answered(Operation operation) {
  history_.answered(operation);
  for (auto& [topic, chain] : settings_) {
    const auto promised = std::find_if(
        chain.begin(), chain.end(), [&](const Setting& setting) { return setting.operation == operation; });
    if (promised != chain.end()) chain.erase(chain.begin(), promised);
  }
}

void Model::flushed(Operation operation) {
  history_.flushed(operation);
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
  std::map<History::Key, const support::SeenJob*> found;
  for (const support::SeenJob& job : survey.jobs) {
    if (!found.emplace(History::Key{job.topic, job.id}, &job).second) {
      return wrong(fmt::format("listed twice: {}", to_string(job)));
    }
  }
  std::vector<History::Key> missing;
  for (const auto& [key, chain] : history_.chains()) {
    if (!found.contains(key)) missing.push_back(key);
  }
  for (const History::Key& key : missing) {
    const History::Version* version = history_.find(key, nullptr, now);
    if (version == nullptr) {
      return wrong(
          fmt::format("lost: {}/{} is gone; allowed is:{}", key.first, key.second, history_.describe(key)));
    }
    history_.settle(key, *version, certain);
  }

  memory::JobTable jobs;
  uint64_t entered = 0;
  for (const support::SeenJob& job : survey.jobs) {
    const History::Key key{job.topic, job.id};
    const History::Version* version = history_.find(key, &job, now);
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
    jobs.restore(std::move(stored));
    history_.settle(key, *version, certain);
  }
  MemoryEngine::Settings settings;
  if (Status adopted = adopt_settings(survey, certain, settings); !adopted.ok()) return adopted;
  engine_ = std::make_unique<MemoryEngine>(std::move(jobs), std::move(settings), engine_->last_lease());
  history_.record(last_operation_, Promise::kNothing, engine_->jobs());
  return {};
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
  return different + found.size();
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
  return {};
}

}  // namespace delayq::simulation
