#include "tests/simulation/history.h"

#include <algorithm>

#include <fmt/format.h>

namespace delayq::simulation {
namespace {

bool is_waiting(JobState state) { return state == JobState::kDelayed || state == JobState::kReady; }
bool is_kept(JobState state) { return !is_live(state); }

/// Delayed and ready are one to the disk: which of the two, the clock tells.
bool same_place(JobState a, JobState b) { return a == b || (is_waiting(a) && is_waiting(b)); }

bool same_version(const memory::StoredJob& a, const memory::StoredJob& b) {
  return a.sequence == b.sequence && same_place(a.state, b.state) && a.attempts == b.attempts &&
         a.due == b.due && a.until == b.until && a.lease == b.lease &&
         a.cancel_requested == b.cancel_requested && a.outcome == b.outcome;
}

bool agrees(const memory::StoredJob& version, const support::SeenJob& now) {
  if (!same_place(version.state, now.state)) return false;
  support::SeenJob expected = seen(version);
  expected.state = now.state;
  return expected == now;
}

}  // namespace

support::SeenJob seen(const memory::StoredJob& job) {
  return {job.topic,    job.id,       job.group, job.body,   job.options, job.outcome,         job.state,
          job.priority, job.attempts, job.due,   job.pushed, job.until,   job.cancel_requested};
}

void History::record(Operation operation, Promise promise, const memory::JobTable& jobs) {
  // Both are sorted by topic and id: one walk finds what is new, changed and gone.
  auto chain = chains_.begin();
  std::vector<std::pair<Key, const memory::StoredJob*>> changes;
  const auto pass_gone = [&](const Key* up_to) {
    for (; chain != chains_.end() && (up_to == nullptr || chain->first < *up_to); ++chain) {
      if (chain->second.back().job) changes.emplace_back(chain->first, nullptr);
    }
  };
  Key key;
  for (const auto& [topic, in_topic] : jobs.topics()) {
    key.first = topic;
    for (const auto& [id, job] : in_topic.jobs) {
      key.second = id;
      pass_gone(&key);
      const bool known = chain != chains_.end() && chain->first == key;
      if (known && chain->second.back().job && same_version(*chain->second.back().job, job)) {
        chain->second.back().job->state = job.state;
        chain->second.back().job->entered = job.entered;
      } else {
        changes.emplace_back(key, &job);
      }
      if (known) ++chain;
    }
  }
  pass_gone(nullptr);
  for (const auto& [changed, job] : changes) add(operation, promise, changed, job);
}

void History::add(Operation operation, Promise promise, const Key& key, const memory::StoredJob* job) {
  Chain& chain = chains_[key];
  if (chain.empty()) chain.push_back({std::nullopt, 0, true});
  // A kept job goes by age or by number at any time; nobody was promised that it would.
  const bool by_the_way = job == nullptr && chain.back().job && is_kept(chain.back().job->state);
  const bool promised = promise == Promise::kRemovals || (promise == Promise::kChanges && !by_the_way);
  chain.push_back({job != nullptr ? std::optional(*job) : std::nullopt, operation, promised});
  if (promised) unanswered_[operation].push_back(key);
}

void History::passed_through(Operation operation, const Key& key, JobState state, Moment until) {
  const auto found = chains_.find(key);
  if (found == chains_.end() || found->second.size() < 2) return;
  Chain& chain = found->second;
  const auto last = chain.end() - 1;
  const auto before = chain.end() - 2;
  if (last->job || last->operation != operation || !before->job) return;
  Version between{before->job, operation, last->promised};
  between.job->state = state;
  between.job->until = until;
  between.job->attempts += 1;
  last->promised = false;
  chain.insert(last, std::move(between));
}

void History::may_be_due(Operation operation, const Key& key, Moment due) {
  const auto found = chains_.find(key);
  if (found == chains_.end()) return;
  const Version last = found->second.back();
  if (!last.job || last.operation != operation || !is_waiting(last.job->state)) return;
  Version other = last;
  other.job->due = due;
  found->second.insert(found->second.end() - 1, std::move(other));
}

void History::answered(Operation operation) {
  const auto found = unanswered_.find(operation);
  if (found == unanswered_.end()) return;
  for (const Key& key : found->second) {
    const auto chain = chains_.find(key);
    if (chain == chains_.end()) continue;
    std::vector<Version>& versions = chain->second;
    const auto promised = std::find_if(versions.rbegin(), versions.rend(), [&](const Version& version) {
      return version.operation == operation && version.promised;
    });
    if (promised == versions.rend()) continue;
    versions.erase(versions.begin(), promised.base() - 1);
    if (versions.size() == 1 && !versions.front().job) chains_.erase(chain);
  }
  unanswered_.erase(found);
}

void History::flushed(Operation operation) {
  for (auto chain = chains_.begin(); chain != chains_.end();) {
    Chain& versions = chain->second;
    const auto durable = std::find_if(versions.rbegin(), versions.rend(),
                                      [&](const Version& version) { return version.operation <= operation; });
    if (durable != versions.rend()) versions.erase(versions.begin(), durable.base() - 1);
    const bool over = versions.size() == 1 && !versions.front().job;
    chain = over ? chains_.erase(chain) : std::next(chain);
  }
}

const History::Version* History::find(const Key& key, const support::SeenJob* now_seen, Moment now) const {
  static const Version kAbsent{std::nullopt, 0, true};
  const auto found = chains_.find(key);
  if (found == chains_.end()) return now_seen == nullptr ? &kAbsent : nullptr;
  for (auto version = found->second.rbegin(); version != found->second.rend(); ++version) {
    if (now_seen == nullptr) {
      // Retention may have ended while nobody looked.
      if (!version->job || (is_kept(version->job->state) && version->job->until <= now)) return &*version;
    } else if (version->job && agrees(*version->job, *now_seen)) {
      return &*version;
    }
  }
  return nullptr;
}

void History::settle(const Key& key, const Version& version, bool certain) {
  const auto found = chains_.find(key);
  if (found == chains_.end()) return;
  Chain& chain = found->second;
  const auto index = static_cast<size_t>(&version - chain.data());
  chain.resize(index + 1);
  if (certain) chain.erase(chain.begin(), chain.end() - 1);
  if (chain.size() == 1 && !chain.front().job) chains_.erase(found);
}

std::string History::describe(const Key& key) const {
  const auto found = chains_.find(key);
  if (found == chains_.end()) return "no such job";
  std::string text;
  for (const Version& version : found->second) {
    text += fmt::format("\n    after operation {}: {}", version.operation,
                        version.job ? to_string(seen(*version.job)) : "no such job");
  }
  return text;
}

}  // namespace delayq::simulation
