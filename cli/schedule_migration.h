#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/importing.h"
#include "cli/place.h"

namespace delayq::cli {

/// How many schedules a place has, and the topic of one of them. Nothing for a server that has no schedules
/// yet, and for a place that is only looked at and does not tell.
struct ScheduleCount {
  uint64_t count = 0;
  std::string topic;
};
ScheduleCount count_schedules(const Ask& ask);

/// Jobs of a topic that the target's own schedules have made while the migration ran.
struct MadeMeanwhile {
  uint64_t made = 0;
  uint64_t replacing = 0;  ///< the part of them that may have replaced a job each
};

/// Copies schedules from one place to another, or moves them.
///
/// A move has four steps: the schedule is marked as moving in the source, which ends its occurrences there;
/// it is read, with its final progress; it is stored in the target, where it goes on; it is removed from the
/// source. So no occurrence is made by both, and none is lost. It can be ended between any two steps and run
/// again. A schedule that the target does not take loses the mark, and goes on in the source.
class ScheduleMigration {
 public:
  struct Ledger {
    uint64_t created = 0;
    uint64_t there = 0;    ///< the target has it already
    uint64_t others = 0;   ///< the target has another schedule with this name
    uint64_t failed = 0;   ///< not stored
    uint64_t late = 0;     ///< was set in the source meanwhile
    uint64_t removed = 0;  ///< from the source
    uint64_t all() const { return created + there + others + failed + late; }
  };
  using Failed = std::function<void(const std::string& line, const Error& error)>;

  /// The places and `lines` must outlive it. `failed` may be empty.
  ScheduleMigration(const Place& from, const Place& to, bool removes, ImportCounts& lines, Failed failed)
      : from_(from), to_(to), removes_(removes), lines_(lines), failed_(std::move(failed)) {}

  /// Notes what the target's schedules have made so far.
  void begin();
  /// By topic: what they have made since begin(), those that were stored meanwhile included. A schedule goes
  /// on in the target as soon as it is there.
  std::map<std::string, MadeMeanwhile> made_meanwhile() const;

  /// Marks the schedules of a page of lines. True: some were not marked yet, so read the page again.
  Result<bool> mark(const std::vector<resp::Value>& page);
  /// Copies or moves the schedules of a page.
  Status take(const std::vector<resp::Value>& page);

  const Ledger& ledger() const { return ledger_; }
  /// The differences, one sentence each.
  std::vector<std::string> differences() const;

 private:
  struct Batch {
    std::vector<ExportedLine> lines;
    Words texts;
    size_t bytes = 0;
  };

  Status store(Batch batch);
  /// Whether the target's schedule of that name is the same.
  Result<bool> is_there(const ExportedLine& line) const;
  Status remove(const std::vector<std::string>& names);
  Status unmark(const std::vector<std::string>& names);

  const Place& from_;
  const Place& to_;
  bool removes_;
  ImportCounts& lines_;
  Failed failed_;
  Ledger ledger_;
  std::map<std::string, uint64_t> made_;  ///< by name: jobs that were made before, or elsewhere
};

}  // namespace delayq::cli
