#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "cli/importing.h"

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

/// The counts of one topic's migration.
struct TopicLedger {
  using ByKind = std::array<uint64_t, kKinds>;

  ByKind read{};               ///< in the source, each job once, as it was met last
  ByKind created{};            ///< stored by this run
  Moment soonest_end{kNever};  ///< when the retention of the first done or dead one ends
  uint64_t there = 0;          ///< already in the target: from an earlier run, or read again
  uint64_t others = 0;         ///< the target has another job with this id
  uint64_t dropped = 0;        ///< their retention was over
  uint64_t failed = 0;
  uint64_t running = 0;  ///< with a consumer of the source; a move leaves them
  uint64_t removed = 0;  ///< from the source

  uint64_t all_read() const { return read[0] + read[1] + read[2]; }
};

/// Copies all jobs, settings and schedules from one place to another; moves jobs and schedules if copied ones
/// are to be removed. Schedules come first: see ScheduleMigration.
///
/// It can be ended at any moment and run again: jobs that the target has are recognised by id and body, and
/// kept. A job is removed from the source only when the target has answered that it is durable there. Jobs
/// that a consumer of the source is working on are copied as ready ones, but not moved.
class Migration {
 public:
  struct Reports {
    std::function<void(uint64_t lines)> progress;
    std::function<void(const std::string& line, const Error& error)> failed;
  };

  /// The places must outlive it.
  Migration(const Place& from, const Place& to, bool removes, Reports reports)
      : from_(from),
        to_(to),
        removes_(removes),
        reports_(std::move(reports)),
        schedules_(from, to, removes, lines_, reports_.failed) {}

  Status run();

  const std::map<std::string, TopicLedger>& topics() const { return topics_; }
  const ImportCounts& lines() const { return lines_; }
  const ScheduleMigration::Ledger& schedules() const { return schedules_.ledger(); }

  using Counts = std::map<std::string, TopicCounts>;
  /// Returns the differences, one sentence each; none when every job that the source has, or had, is
  /// accounted for. `before` are the target's counts when run() began; the others are from after it. Jobs
  /// that the target's schedules have made since then are no difference.
  std::vector<std::string> differences(const Counts& before, const Counts& source, const Counts& target,
                                       Moment now) const;

 private:
  /// A job of the topic that is being read.
  struct Met {
    Kind kind = Kind::kWaiting;
    bool is_safe = false;  ///< in the target
  };

  /// The next page of the source, with schedules that are marked as moving.
  Result<resp::Value> read_page(const std::string& cursor);
  Status take(std::vector<resp::Value>& page);
  Status store(std::vector<ExportedLine>& lines, Words texts);
  /// Returns false for a line that must not be stored.
  bool meet(const ExportedLine& line);
  /// Counts the result of a line. Returns false if it is not known yet: the target has a job with this id.
  bool settle(const ExportedLine& line, const resp::Value& answer, const std::string& text);
  /// Checks whether the target's jobs with these ids are the same jobs.
  Status compare(const std::vector<const ExportedLine*>& kept);
  /// All of the topic has been read.
  Status finish_topic();
  Status remove_topic(TopicLedger& ledger);
  Status remove_waiting(TopicLedger& ledger);
  Status remove_in(const std::string& state, TopicLedger& ledger);
  /// For the jobs of a page that are in the target.
  Result<std::vector<Words>> cancels_for(const std::vector<resp::Value>& page);
  Status purge(TopicLedger& ledger, const Words& command) const;
  /// Of the topic, in the source.
  Result<TopicCounts> count_left() const;

  const Place& from_;
  const Place& to_;
  bool removes_;
  Reports reports_;
  std::map<std::string, TopicLedger> topics_;
  ImportCounts lines_;
  ScheduleMigration schedules_;
  std::string topic_;                       ///< that is being read
  absl::flat_hash_map<uint64_t, Met> met_;  ///< its jobs, by a hash of their ids
};

}  // namespace delayq::cli
