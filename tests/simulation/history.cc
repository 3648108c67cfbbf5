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

/// What is new, changed and gone; `same` gets the last version of each other job, and the job.
template <class Chains, class Same>
std::vector<History::Change> compare(Chains& chains, const memory::JobTable& jobs, Same same) {
  // Both are sorted by topic and id: one walk finds it all.
  auto chain = chains.begin();
  std::vector<History::Change> changes;
  const auto pass_gone = [&](const History::Key* up_to) {
    for (; chain != chains.end() && (up_to == nullptr || chain->first < *up_to); ++chain) {
      if (chain->second.back().job) changes.push_back({chain->first, std::nullopt});
    }
  };
  History::Key key;
  for (const auto& [topic, in_topic] : jobs.topics()) {
    key.first = topic;
    for (const auto& [id, job] : in_topic.jobs) {
      key.second = id;
      pass_gone(&key);
      const bool known = chain != chains.end() && chain->first == key;
      if (known && chain->second.back().job && same_version(*chain->second.back().job, job)) {
        same(*chain->second.back().job, job);
      } else {
        changes.push_back({key, job});
      }
      if (known) ++chain;
    }
  }
  pass_gone(nullptr);
  return changes;
}

}  // namespace

support::SeenJob seen(const memory::StoredJob& job) {
  return {job.topic,    job.id,       job.group, job.body,   job.options, job.outcome,          job.state,
          job.priority, job.attempts, job.due,   job.pushed, job.until,   job.cancel_requested, job.outlet};
}

void History::record(Operation operation, Promise promise, const memory::JobTable& jobs) {
  const auto keep_up = [](memory::StoredJob& last, const memory::StoredJob& job) {
    last.state = job.state;
    last.entered = job.entered;
  };
  for (Change& change : compare(chains_, jobs, keep_up)) add(operation, promise, std::move(change));
}

std::vector<History::Change> History::changes_in(const memory::JobTable& jobs) const {
  return compare(chains_, jobs, [](const memory::StoredJob&, const memory::StoredJob&) {});
}

void History::add(Operation operation, Promise promise, Change change) {
  Chain& chain = chains_[change.key];
  if (chain.empty()) chain.push_back({std::nullopt, 0, true});
  // A kept job goes by age or by number at any time; nobody was promised that it would.
  const bool by_the_way = !change.job && chain.back().job && is_kept(chain.back().job->state);
  const bool promised = promise == Promise::kRemovals || (promise == Promise::kChanges && !by_the_way);
  chain.push_back({std::move(change.job), operation, promised});
  if (promised) unanswered_[operation].push_back(change.key);
}

void History::passed_through(Operation operation, const Key& key, JobState state, Moment until, Moment now) {
  const auto found = chains_.find(key);
  if (found == chains_.end() || found->second.size() < 2) return;
  Chain& chain = found->second;
  const auto last = chain.end() - 1;
  const auto before = chain.end() - 2;
  if (last->job || last->operation != operation || !before->job) return;
  Version between{before->job, operation, last->promised};
  between.job->state = state;
  between.job->until = until;
  between.job->ended = now;
  between.job->attempts += 1;
  last->promised = false;
  chain.insert(last, std::move(between));
}

void History::may_have(Operation operation, const Change& change) {
  const auto found = chains_.find(change.key);
  if (found == chains_.end()) return;
  Chain& chain = found->second;
  const bool known = std::any_of(chain.begin(), chain.end(), [&](const Version& version) {
    if (!version.job || !change.job) return !version.job && !change.job;
    return same_version(*version.job, *change.job);
  });
  // The last one stays how the model has it.
  if (!known) chain.insert(chain.end() - 1, {change.job, operation, false});
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

const History::Version* History::find(const Key& key, const support::SeenJob* now_seen, Moment now,
                                      const Bounds& bounds) const {
  static const Version kAbsent{std::nullopt, 0, true};
  const auto found = chains_.find(key);
  if (found == chains_.end()) return now_seen == nullptr && bounds.before == 0 ? &kAbsent : nullptr;
  const Chain& chain = found->second;
  const auto made_by = [&](Operation operation) {
    return std::find_if(chain.begin(), chain.end(),
                        [&](const Version& version) { return version.operation == operation; });
  };
  // A version that is not in the chain any more was followed by one that is known to have happened.
  auto first = bounds.since == 0 ? chain.begin() : made_by(bounds.since);
  if (first == chain.end()) first = chain.begin();
  auto last = chain.end();
  if (bounds.before != 0) {
    last = made_by(bounds.before);
    if (last == chain.end()) return nullptr;
  }
  while (last > first) {
    const Version& version = *--last;
    if (now_seen == nullptr) {
      // Retention may have ended while nobody looked.
      if (!version.job || (is_kept(version.job->state) && version.job->until <= now)) return &version;
    } else if (version.job && agrees(*version.job, *now_seen)) {
      return &version;
    }
  }
  return nullptr;
}

std::vector<uint64_t> History::leases_of(const Key& key, const support::SeenJob& now_seen) const {
  std::vector<uint64_t> leases;
  const auto found = chains_.find(key);
  if (found == chains_.end()) return leases;
  for (const Version& version : found->second) {
    const bool is_one =
        version.job && version.job->state == JobState::kReserved && agrees(*version.job, now_seen);
    if (is_one && std::find(leases.begin(), leases.end(), version.job->lease) == leases.end())
      leases.push_back(version.job->lease);
  }
  return leases;
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
