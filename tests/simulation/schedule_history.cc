#include "tests/simulation/schedule_history.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace delayq::simulation {

std::string to_string(const StoredSchedule& schedule) {
  return fmt::format("{} revision={:x} next={} definition={} progress={}", schedule.name, schedule.revision,
                     schedule.next == kNever ? -1 : to_unix_ms(schedule.next),
                     support::brief(schedule.definition), support::brief(schedule.progress));
}

void ScheduleHistory::record(const std::string& name, Version version) {
  if (version.schedule) revisions_.insert_or_assign(version.schedule->revision, *version.schedule);
  Chain& chain = chains_[name];
  if (chain.empty()) chain.push_back({});
  chain.push_back(std::move(version));
}

/// The effects of the versions that go have happened for good, which a job may not have shown yet.
void ScheduleHistory::cut(Chain& chain, Chain::iterator first) {
  for (auto version = chain.begin(); version != first; ++version) {
    first->effects.insert(first->effects.end(), version->effects.begin(), version->effects.end());
  }
  chain.erase(chain.begin(), first);
}

void ScheduleHistory::answered(Operation operation) {
  for (auto each = chains_.begin(); each != chains_.end();) {
    Chain& chain = each->second;
    const auto promised = std::find_if(
        chain.begin(), chain.end(), [&](const Version& version) { return version.operation == operation; });
    if (promised != chain.end()) {
      cut(chain, promised);
      // The answer has promised the effects on jobs as well.
      std::erase_if(chain.front().effects,
                    [&](const Effect& effect) { return effect.operation == operation; });
    }
    each = is_over(chain) && chain.front().effects.empty() ? chains_.erase(each) : std::next(each);
  }
}

void ScheduleHistory::flushed(Operation operation) {
  for (auto each = chains_.begin(); each != chains_.end();) {
    Chain& chain = each->second;
    const auto durable = std::find_if(chain.rbegin(), chain.rend(),
                                      [&](const Version& version) { return version.operation <= operation; });
    if (durable != chain.rend()) cut(chain, durable.base() - 1);
    std::erase_if(chain.front().effects, [&](const Effect& effect) { return effect.operation <= operation; });
    each = is_over(chain) && chain.front().effects.empty() ? chains_.erase(each) : std::next(each);
  }
}

std::vector<const ScheduleHistory::Version*> ScheduleHistory::find(std::string_view name,
                                                                   const StoredSchedule* found) const {
  std::vector<const Version*> versions;
  const auto chain = chains_.find(name);
  if (chain == chains_.end()) return versions;
  for (auto version = chain->second.rbegin(); version != chain->second.rend(); ++version) {
    const bool agrees =
        found == nullptr ? !version->schedule : version->schedule && *version->schedule == *found;
    if (agrees) versions.push_back(&*version);
  }
  return versions;
}

std::map<History::Key, History::Bounds> ScheduleHistory::bounds_of(std::string_view name,
                                                                   const Version& version) const {
  std::map<Key, History::Bounds> bounds;
  const auto found = chains_.find(name);
  if (found == chains_.end()) return bounds;
  bool has_happened = true;
  for (const Version& each : found->second) {
    for (const Effect& effect : each.effects) {
      History::Bounds& bound = bounds[effect.job];
      if (has_happened) {
        bound.since = std::max(bound.since, effect.operation);
      } else {
        bound.before = bound.before == 0 ? effect.operation : std::min(bound.before, effect.operation);
      }
    }
    if (&each == &version) has_happened = false;
  }
  return bounds;
}

void ScheduleHistory::settle(std::string_view name, const Version& version, bool certain) {
  const auto found = chains_.find(name);
  if (found == chains_.end()) return;
  Chain& chain = found->second;
  chain.resize(static_cast<size_t>(&version - chain.data()) + 1);
  if (certain) {
    chain.erase(chain.begin(), chain.end() - 1);
    chain.front().effects.clear();  // what was found of the jobs is certain, too
  }
  if (is_over(chain) && chain.front().effects.empty()) chains_.erase(found);
}

std::string ScheduleHistory::describe(std::string_view name) const {
  const auto found = chains_.find(name);
  if (found == chains_.end()) return "no such schedule";
  std::string text;
  for (const Version& version : found->second) {
    text += fmt::format("\n    after operation {}: {}", version.operation,
                        version.schedule ? to_string(*version.schedule) : "no such schedule");
  }
  return text;
}

const StoredSchedule* ScheduleHistory::find_revision(uint64_t revision) const {
  const auto found = revisions_.find(revision);
  return found == revisions_.end() ? nullptr : &found->second;
}

}  // namespace delayq::simulation
