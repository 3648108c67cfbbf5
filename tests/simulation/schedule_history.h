#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/schedules.h"
#include "tests/simulation/history.h"

namespace delayq::simulation {

/// What may be true of each schedule after a crash, and which jobs must agree with it.
///
/// Every turn adds a version to the chain of its schedule. As with jobs, the answer to a turn promises its
/// version, and after a crash a schedule is any one version of its chain. But a turn is one step with the job
/// that it pushes: if the schedule has come to that version, the job was pushed, otherwise it was not.
class ScheduleHistory {
 public:
  using Operation = History::Operation;
  using Key = History::Key;

  /// The operation has changed this job.
  struct Effect {
    Key job;
    Operation operation = 0;
  };

  struct Version {
    std::optional<StoredSchedule> schedule;  ///< nullopt: there is no such schedule
    Operation operation = 0;
    /// On jobs: of the turn that made this version, and, in the first version of a chain, of those before.
    std::vector<Effect> effects;
  };
  using Chain = std::vector<Version>;

  /// A turn that was carried out, with the jobs that it pushed and cancelled.
  void record(const std::string& name, Version version);
  /// See History.
  void answered(Operation operation);
  void flushed(Operation operation);

  const std::map<std::string, Chain, std::less<>>& chains() const { return chains_; }
  /// The versions that agree with what an engine has found (nullptr: nothing), the latest first.
  std::vector<const Version*> find(std::string_view name, const StoredSchedule* found) const;
  /// What must be true of jobs if the schedule is as in `version`.
  std::map<Key, History::Bounds> bounds_of(std::string_view name, const Version& version) const;
  /// See History.
  void settle(std::string_view name, const Version& version, bool certain);
  std::string describe(std::string_view name) const;

  /// A schedule as it was at some time, by its revision; nullptr: there never was such a revision.
  const StoredSchedule* find_revision(uint64_t revision) const;

 private:
  using Chains = std::map<std::string, Chain, std::less<>>;

  /// The versions before `first` are history.
  static void cut(Chain& chain, Chain::iterator first);
  static bool is_over(const Chain& chain) { return chain.size() == 1 && !chain.front().schedule; }

  Chains chains_;  // never empty; the last version is how the model has it
  std::map<uint64_t, StoredSchedule> revisions_;
};

/// One line for a trace or a failure.
std::string to_string(const StoredSchedule& schedule);

}  // namespace delayq::simulation
