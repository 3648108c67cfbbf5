#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/memory/job_table.h"
#include "tests/support/seen_job.h"

namespace delayq::simulation {

/// What the answer to an operation vouches for.
enum class Promise : uint8_t {
  kNothing,   ///< it only looked, or its effect may be lost (a lease)
  kChanges,   ///< what it did to jobs; not that an old kept job went by the way
  kRemovals,  ///< that, too
};

/// What may be true of each job after a crash.
///
/// Every change of a job adds a version to its chain. The answer to the operation that made a version
/// promises it: the versions before it are history. What was not promised may have happened or not, but
/// within one job in order, so after a crash a job is any one version of its chain.
class History {
 public:
  using Operation = uint64_t;
  using Key = std::pair<std::string, std::string>;  ///< topic, id

  struct Version {
    std::optional<memory::StoredJob> job;  ///< nullopt: there is no such job
    Operation operation = 0;
    bool promised = false;  ///< the answer to `operation` vouches for it
  };

  struct Change {
    Key key;
    std::optional<memory::StoredJob> job;  ///< nullopt: there is no such job any more
  };

  /// What is known from elsewhere about a job; 0: nothing.
  struct Bounds {
    Operation since = 0;   ///< what this operation did to the job has happened
    Operation before = 0;  ///< what this operation did to the job has not happened
  };

  /// Finds what the operation changed.
  void record(Operation operation, Promise promise, const memory::JobTable& jobs);
  /// The job that this operation took away had first been handed out into `state`: an engine may be stopped
  /// between the two.
  void passed_through(Operation operation, const Key& key, JobState state, Moment until, Moment now);
  /// How these jobs are not as they were when last recorded.
  std::vector<Change> changes_in(const memory::JobTable& jobs) const;
  /// The operation, which will not be answered, may have done this to the job instead of what was recorded.
  void may_have(Operation operation, const Change& change);
  /// The operation was answered, and not with an error.
  void answered(Operation operation);
  /// Everything up to this operation is durable.
  void flushed(Operation operation);
  /// A new life begins: what was not answered never will be.
  void forget_unanswered() { unanswered_.clear(); }

  /// The latest version that agrees with what an engine says after its restart, or with its silence (`seen`
  /// null), within these bounds. nullptr: what it says cannot be.
  const Version* find(const Key& key, const support::SeenJob* seen, Moment now, const Bounds& bounds) const;
  const Version* find(const Key& key, const support::SeenJob* seen, Moment now) const {
    return find(key, seen, now, Bounds{});
  }
  /// The leases of the versions that agree with a reserved job: when a job was given back and taken again
  /// within a millisecond, which of them survived does not show.
  std::vector<uint64_t> leases_of(const Key& key, const support::SeenJob& seen) const;
  /// The job is as in `version`, which find() answered: later versions never happened. `certain`: nor can an
  /// earlier one come back, because what was found is on the disk.
  void settle(const Key& key, const Version& version, bool certain);

  const std::map<Key, std::vector<Version>>& chains() const { return chains_; }
  std::string describe(const Key& key) const;

 private:
  using Chain = std::vector<Version>;

  void add(Operation operation, Promise promise, Change change);

  std::map<Key, Chain> chains_;  // never empty; the last version is how the model has it
  std::map<Operation, std::vector<Key>> unanswered_;
};

/// A StoredJob as an engine would show it.
support::SeenJob seen(const memory::StoredJob& job);

}  // namespace delayq::simulation
