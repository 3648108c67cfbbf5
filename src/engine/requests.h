#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/arena.h"
#include "core/histogram.h"
#include "core/job.h"
#include "core/limits.h"
#include "core/token.h"

/// The plain values that go into an engine and come out of it. Every string_view in a request needs to live
/// only until the call returns.
namespace delayq {

// ---- push
// -----------------------------------------------------------------------------------------------------------

struct NewJob {
  std::string_view topic;
  std::string_view id;
  std::string_view group;
  std::string_view body;
  std::string_view options;
  Moment due{};
  uint32_t priority = kDefaultPriority;
  OnConflict on_conflict = OnConflict::kReject;
  /// Refuse when the id is live in any other topic too, whatever `on_conflict` says.
  bool unique_across_topics = false;
  Outlet outlet = Outlet::kTopic;
  /// There must not be more jobs than before: if the topic has no job of that id, in whatever state, nothing
  /// is stored, and the answer is kAbsent.
  bool adds_none = false;
};

enum class PushOutcome : uint8_t { kCreated, kReplaced, kKept, kConflict, kAbsent };

/// `state` and `due` are those of the job that now has the id: the new one, or the one that was in the way.
struct PushAnswer {
  PushOutcome outcome = PushOutcome::kCreated;
  JobState state = JobState::kDelayed;
  Moment due{};
};

// ---- restore
// --------------------------------------------------------------------------------------------------------

/// A job as it was elsewhere or before, to be stored as it was. A reserved one has lost its lease: it waits
/// for its due time, like a delayed or ready one, with its attempts as they are. `job.cancel_requested` is
/// not looked at; `job.until` counts for done and dead jobs, and is later than `now` then.
struct RestoreRequest {
  Job job;
  /// Any job of that id counts here, a done or dead one too: what has been finished since does not come back.
  OnConflict on_conflict = OnConflict::kKeep;
  /// For a done or dead job: how many of that state the topic keeps, at least 1. The oldest go first.
  uint32_t keep_count = 1;
};

// ---- hand-over
// ------------------------------------------------------------------------------------------------------

struct TakeRequest {
  std::string_view topic;
  Outlet outlet = Outlet::kTopic;  ///< jobs of the other one are not looked at
  uint32_t count = 1;
  /// The answer has no further job once its jobs have so many bytes: the others stay as they are. Bodies
  /// count, and an engine may count what else it keeps of a job, too.
  uint64_t max_bytes = Limits::kPopBytes;
  Moment lease_until{};
  /// Never let more than this many jobs of the topic, by whichever outlet, be reserved at once. 0: no limit.
  /// An auto-acked job fills a place for this one call.
  uint32_t max_reserved = 0;
  /// Straight to done, without a lease (at most once): the answer then waits for the commit.
  bool auto_ack = false;
  Keep keep_done;  ///< used with auto_ack
};

struct TakenJob {
  std::string_view lease;  ///< opaque, printable, without '/', at most 64 bytes; empty with auto_ack
  Job job;                 ///< `job.until` is the lease's deadline; with auto_ack the job is done already
};

struct TakeAnswer {
  std::vector<TakenJob> jobs;  ///< in hand-over order
  /// `max_bytes`, or a bound of the engine's own, ended it, and there may be more. It may even be empty then,
  /// because others who asked at the same time got that much, or what it got was damaged: ask again.
  bool is_cut = false;
  Arena storage;  ///< owns what the views point to
};

// ---- what a lease allows
// --------------------------------------------------------------------------------------------

/// A lease names its topic so that any server (and any shard) can route it. A lease of another topic is
/// stale.
struct LeaseRef {
  std::string_view topic;
  std::string_view lease;
};

struct AckRequest {
  LeaseRef lease;
  Keep keep;                 ///< for the finish pool
  std::string_view outcome;  ///< kept with the job when not empty
};

enum class AckOutcome : uint8_t { kAcked, kStale };

/// What becomes of a job whose attempt failed. The queue has decided by its retry policy.
struct NackRequest {
  LeaseRef lease;
  std::optional<Moment> retry_at;  ///< nullopt: dead
  Keep keep;                       ///< for the fail pool, when dead
  std::string_view reason;         ///< the last error, kept with the job
  /// The lease is known to have run out (tick said so); without this a lease past its deadline is stale.
  bool expired = false;
  /// The hand-over reached nobody: the job goes back as it was, its attempt not counted and its outcome text
  /// kept
  /// (`reason` is ignored).
  bool uncounted = false;
};

/// kCancelled: its producer had taken it back while it was running, so it is gone instead of retried.
enum class NackOutcome : uint8_t { kRetried, kDead, kCancelled, kStale };

struct ExtendRequest {
  LeaseRef lease;
  Moment until{};
  /// Leave a deadline that is later than `until` as it is.
  bool never_sooner = false;
};

/// The deadline that holds now; nothing where the lease was not the current one.
using ExtendAnswer = std::optional<Moment>;

/// What the queue must know of a running job to decide about its failure.
struct LeaseInfo {
  std::string topic;
  std::string lease;
  std::string options;
  uint32_t attempts = 0;
};

// ---- by id
// ----------------------------------------------------------------------------------------------------------

struct JobRef {
  std::string_view topic;
  std::string_view id;
};

/// Rule 4: exactly one of five.
enum class CancelOutcome : uint8_t { kCancelled, kReserved, kDone, kDead, kUnknown };
inline constexpr std::array<std::string_view, 5> kCancelOutcomeNames{"cancelled", "reserved", "done", "dead",
                                                                     "unknown"};
constexpr std::string_view name_of(CancelOutcome outcome) {
  return kCancelOutcomeNames[static_cast<size_t>(outcome)];
}

struct GroupCancelRequest {
  std::string_view group;
  /// Jobs of other topics are left as they are, and are not counted.
  TopicPatterns topics = kAllTopics;
  uint32_t max = 1;  ///< how many at most
};

/// `cancelled` were waiting and are gone; `reserved` are running and will not be retried.
struct GroupCancelAnswer {
  uint64_t cancelled = 0;
  uint64_t reserved = 0;
  /// How many of `cancelled` each topic had.
  std::map<std::string, uint64_t> cancelled_by_topic{};
};

/// What a topic keeps of its done or dead jobs. How long a job is kept was settled when it ended; this is for
/// those that may be kept by larger bounds.
struct TrimRequest {
  std::string_view topic;
  JobState state = JobState::kDone;  ///< or kDead
  uint32_t count = 0;                ///< how many are kept
  Millis time{};                     ///< and for how long from their ends on
  uint32_t max = 1;                  ///< how many jobs are looked at, at most
  std::string_view cursor{};         ///< empty: from the first on; else that of the answer before
};

struct TrimAnswer {
  uint64_t forgotten = 0;
  std::string cursor{};  ///< where to go on; empty: all have been looked at
};

struct RescheduleRequest {
  JobRef job;
  Moment due{};
};

/// Only kMoved moved it; the others say why not.
enum class RescheduleOutcome : uint8_t { kMoved, kReserved, kDone, kUnknown };

/// One job with the memory it lives in.
/// Which jobs are looked for.
enum class Among : uint8_t {
  kLive,  ///< delayed, ready and reserved
  kAll,   ///< those that are kept as done or dead, too
};

struct FoundJob {
  Job job;
  std::string_view
      lease{};  ///< of a reserved job: the latest, as its take answered it; may be past its deadline
  Arena storage;
};

// ---- looking around
// -------------------------------------------------------------------------------------------------

struct ListRequest {
  std::string_view topic;
  JobState state = JobState::kDelayed;
  std::string_view id_prefix;
  std::string_view outcome_contains;
  uint32_t limit = 100;
  std::string_view cursor;  ///< empty: from the start; else what the last page answered
  bool with_bodies = false;
};

/// Jobs in the order in which they entered their state. A job that stays in it for the whole walk
/// (rescheduled or extended within it, that is staying) is listed exactly once. A page may be short, or
/// empty, and still have a cursor: the work per page is bounded, not the result. It is never longer than its
/// limit.
///
/// An engine that cannot afford an order of entry promises less of the jobs that wait (ADR 13): delayed ones
/// come in no particular order, and one that stays is listed at least once; ready ones come in the order of
/// their hand-over, outlet by outlet, and one that is moved within the line may be listed twice or not at
/// all.
struct JobPage {
  std::vector<Job> jobs;
  std::string cursor;  ///< empty: that was the last page
  Arena storage;
};

struct TopicCounts {
  std::array<uint64_t, kJobStateCount> by_state{};
  std::optional<Moment> oldest_ready;  ///< earliest due time among ready jobs of the first priority in line

  uint64_t of(JobState state) const { return by_state[static_cast<size_t>(state)]; }
};

struct TopicRow {
  std::string topic;
  TopicCounts counts;
};

/// Topics in the order of their names, bytewise; the cursor is the last name.
struct TopicPage {
  std::vector<TopicRow> topics;
  std::string cursor;
};

struct ForecastRequest {
  std::string_view topic;  ///< empty: all
  Moment from{};
  Moment to{};
  uint32_t bins = 1;
};

/// How many delayed jobs fall due in each of `bins` equal parts of [from, to). `resolution` is the coarsest
/// step the engine could tell apart in that range: a bin's edge may be off by that much.
struct Forecast {
  std::vector<uint64_t> bins;
  Millis resolution{1};
};

struct TopicSettings {
  std::string topic;
  std::string settings;
};

/// A copy of everything that an engine keeps.
struct BackupReport {
  std::string path;    ///< where it is
  uint64_t bytes = 0;  ///< its size
  uint64_t files = 0;
  /// How many jobs were kept when it was made; those that were on their way at that moment may or may not be
  /// in it.
  uint64_t jobs = 0;
};

/// What an engine uses and how far it lags. Cheap enough to ask before every push. Where the jobs are on
/// another machine the figures may be about a second old; a flush() brings them up to date.
struct EngineUsage {
  uint64_t jobs = 0;
  uint64_t topics = 0;
  uint64_t memory_bytes = 0;    ///< of the job table and its indexes
  uint64_t disk_bytes = 0;      ///< what its files occupy
  uint64_t live_bytes = 0;      ///< the part of disk_bytes that is still needed
  uint64_t disk_free = 0;       ///< UINT64_MAX where there is no disk
  bool lacks_room = false;      ///< what was accepted waits for room on the disk
  uint64_t unsynced_bytes = 0;  ///< accepted, not yet durable
  uint64_t commits = 0;
  uint64_t written_bytes = 0;  ///< since the start, by commits and by cleaning
  uint64_t copied_bytes = 0;   ///< since the start: of written_bytes, what cleaning wrote again
  uint64_t segments = 0;       ///< files
};

/// How commits went, since the start.
struct CommitFigures {
  /// How long each commit took to write and sync, in microseconds; from 2^26 us, a minute, on in one bucket.
  Histogram<28> micros;
  /// How many records each commit had.
  Histogram<20> records;
};

}  // namespace delayq
