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

/// The plain values that are passed to an engine and returned by it. A string_view in a request must stay
/// valid only until the call returns.
namespace delayq {

// ---- push

struct NewJob {
  std::string_view topic;
  std::string_view id;
  std::string_view group;
  std::string_view body;
  std::string_view options;
  Moment due{};
  uint32_t priority = kDefaultPriority;
  OnConflict on_conflict = OnConflict::kReject;
  /// Reject the job if its id is live in any other topic, whatever `on_conflict` says.
  bool unique_across_topics = false;
  Outlet outlet = Outlet::kTopic;
  /// Never increase the number of jobs: if the topic has no job with this id, in any state, store nothing and
  /// reply kAbsent.
  bool adds_none = false;
  Millis lease{};  ///< the job's own lease length (see TakeRequest::own_leases); zero: none
};

enum class PushOutcome : uint8_t { kCreated, kReplaced, kKept, kConflict, kAbsent };
inline constexpr std::array<std::string_view, 5> kPushOutcomeNames{"created", "replaced", "kept", "conflict",
                                                                   "absent"};
constexpr std::string_view name_of(PushOutcome outcome) {
  return kPushOutcomeNames[static_cast<size_t>(outcome)];
}

/// `state` and `due` belong to the job that now has the id: the new job, or the existing one.
struct PushAnswer {
  PushOutcome outcome = PushOutcome::kCreated;
  JobState state = JobState::kDelayed;
  Moment due{};
};

// ---- restore

/// A job from an export or another server, stored in the state that it had. A reserved job has lost its
/// lease: it waits for its due time like a delayed or ready job and keeps its attempts.
/// `job.cancel_requested` is ignored. `job.until` is used only for done and dead jobs, and must then be
/// later than `now`.
struct RestoreRequest {
  Job job;
  /// Here a done or dead job with this id is a conflict, too: a job that has ended since does not come back.
  OnConflict on_conflict = OnConflict::kKeep;
  /// For a done or dead job: how many jobs in that state the topic keeps, at least 1. The oldest are
  /// removed first.
  uint32_t keep_count = 1;
  Millis lease{};  ///< as NewJob::lease
};

// ---- hand-over

struct TakeRequest {
  std::string_view topic;
  Outlet outlet = Outlet::kTopic;  ///< jobs of the other outlet are ignored
  uint32_t count = 1;
  /// The reply contains no further job once its jobs have this many bytes; the others stay as they are.
  /// Bodies count; an engine may also count the other data of a job.
  uint64_t max_bytes = Limits::kPopBytes;
  Moment lease_until{};
  /// A job that has a lease length of its own is leased for that long from `now` on instead.
  bool own_leases = false;
  /// At most this many jobs of the topic, of either outlet, may be reserved at once. 0: no limit. An
  /// auto-acked job counts during this one call.
  uint32_t max_reserved = 0;
  /// The job becomes done at once, without a lease (at most once). The reply then waits for the commit.
  bool auto_ack = false;
  Keep keep_done;  ///< used with auto_ack
};

struct TakenJob {
  std::string_view lease;  ///< opaque, printable, without '/', at most 64 bytes; empty with auto_ack
  Job job;                 ///< `job.until` is the lease's deadline; with auto_ack the job is done already
};

struct TakeAnswer {
  std::vector<TakenJob> jobs;  ///< in hand-over order
  /// `max_bytes` or a bound of the engine ended the batch, and there may be more jobs. `jobs` may even be
  /// empty, because concurrent takes used up the bytes or the records found were damaged. Take again.
  bool is_cut = false;
  Arena storage;  ///< owns the memory of the views
};

// ---- with a lease

/// A lease is sent with its topic so that any server (and any shard) can route it.
/// With another topic it is stale.
struct LeaseRef {
  std::string_view topic;
  std::string_view lease;
};

struct AckRequest {
  LeaseRef lease;
  Keep keep;                 ///< retention of the done job: in one batch the same for all jobs of a topic
  std::string_view outcome;  ///< stored with the job if not empty
};

enum class AckOutcome : uint8_t { kAcked, kStale };

/// What happens to a job whose attempt failed. The queue decides this by its retry policy.
struct NackRequest {
  LeaseRef lease;
  std::optional<Moment> retry_at;  ///< nullopt: dead
  Keep keep;                       ///< retention of the dead job
  std::string_view reason;         ///< the last error, stored with the job
  /// The lease is known to have expired (on_expired() reported it). Without this, a lease past
  /// its deadline is stale.
  bool expired = false;
  /// The hand-over reached no consumer: the job returns as it was, the attempt is not counted, and the job
  /// keeps its outcome text (`reason` is ignored).
  bool uncounted = false;
};

/// kCancelled: its producer cancelled the job while it was running, so it is removed and not retried.
enum class NackOutcome : uint8_t { kRetried, kDead, kCancelled, kStale };
inline constexpr std::array<std::string_view, 4> kNackOutcomeNames{"retried", "dead", "cancelled",
                                                                   "stale_lease"};
constexpr std::string_view name_of(NackOutcome outcome) {
  return kNackOutcomeNames[static_cast<size_t>(outcome)];
}

struct ExtendRequest {
  LeaseRef lease;
  Moment until{};
  /// Keep the current deadline if it is later than `until`.
  bool never_sooner = false;
};

/// The deadline that is now in force, or nullopt if the lease was not current.
using ExtendAnswer = std::optional<Moment>;

/// The data of a running job that the queue needs to decide about a failure.
struct LeaseInfo {
  std::string topic;
  std::string lease;
  std::string options;
  uint32_t attempts = 0;
};

/// A reserved job, or nullopt where the lease is not the latest one of a reserved job.
struct HeldJobs {
  std::vector<std::optional<Job>> jobs;  ///< one for each lease
  Arena storage;                         ///< owns the memory of the views
};

/// A delayed job that has become ready.
struct DueJob {
  std::string topic;
  std::string id;
  std::string group;

  bool operator==(const DueJob&) const = default;
};

// ---- by id

struct JobRef {
  std::string_view topic;
  std::string_view id;
};

/// Rule 4: a cancel has exactly one of these five outcomes.
enum class CancelOutcome : uint8_t { kCancelled, kReserved, kDone, kDead, kUnknown };
inline constexpr std::array<std::string_view, 5> kCancelOutcomeNames{"cancelled", "reserved", "done", "dead",
                                                                     "unknown"};
constexpr std::string_view name_of(CancelOutcome outcome) {
  return kCancelOutcomeNames[static_cast<size_t>(outcome)];
}

struct GroupCancelRequest {
  std::string_view group;
  /// Jobs of other topics are neither changed nor counted.
  TopicPatterns topics = kAllTopics;
  uint32_t max = 1;  ///< cancel at most this many
  /// Empty: start at the first job of the group. Otherwise the cursor of the last reply.
  std::string_view cursor{};
};

/// `cancelled` counts jobs that were waiting and are removed; `reserved` counts running jobs, which will
/// not be retried.
struct GroupCancelAnswer {
  uint64_t cancelled = 0;
  uint64_t reserved = 0;
  /// The part of `cancelled` for each topic.
  std::map<std::string, uint64_t> cancelled_by_topic{};
  std::string cursor{};  ///< where to continue; empty: all jobs of the group have been visited
};

/// New bounds for the done or dead jobs of a topic. The retention of a job is set when it ends; a trim
/// applies lower bounds to jobs that ended before the bounds were lowered.
struct TrimRequest {
  std::string_view topic;
  JobState state = JobState::kDone;  ///< or kDead
  uint32_t count = 0;                ///< how many jobs to keep
  Millis time{};                     ///< how long to keep a job after its end
  uint32_t max = 1;                  ///< how many jobs to visit at most
  /// Empty: start at the first job. Otherwise the cursor of the last reply.
  std::string_view cursor{};
};

struct TrimAnswer {
  uint64_t forgotten = 0;
  std::string cursor{};  ///< where to continue; empty: all jobs have been visited
};

struct RescheduleRequest {
  JobRef job;
  Moment due{};
};

/// kMoved: the job has the new due time. Otherwise its state, or kUnknown, is the reason why not.
enum class RescheduleOutcome : uint8_t { kMoved, kReserved, kDone, kUnknown };

/// Which jobs a search includes.
enum class Among : uint8_t {
  kLive,  ///< delayed, ready and reserved
  kAll,   ///< also done and dead
};

struct FoundJob {
  Job job;
  /// Of a reserved job: its latest lease, as take returned it. May be past its deadline.
  std::string_view lease{};
  Arena storage;
};

// ---- reading

/// Due times: `from` and later, and before `before`.
struct DueWindow {
  Moment from = Moment::min();
  Moment before = kNever;

  bool is_all() const { return from == Moment::min() && before == kNever; }
  bool has(Moment due) const { return from <= due && (due < before || before == kNever); }
};

struct ListRequest {
  std::string_view topic;
  JobState state = JobState::kDelayed;
  std::string_view id_prefix;
  std::string_view outcome_contains;
  DueWindow due{};  ///< the same for all pages of a walk
  uint32_t limit = 100;
  std::string_view cursor;  ///< empty: from the start; otherwise the cursor of the last page
  bool with_bodies = false;
};

/// Jobs in the order in which they entered their state. A job that stays in the state during the whole walk
/// is listed exactly once; a job that is rescheduled or extended without leaving the state also stays. A page
/// may be short or empty and still have a cursor, because the work per page is bounded. A page never has more
/// than `limit` jobs.
///
/// An engine that cannot afford an order of entry promises less for waiting jobs (ADR 13). Delayed jobs come
/// in no particular order, and one that stays is listed at least once. Ready jobs come in hand-over order,
/// outlet by outlet, and one that moves within this order may be listed twice or not at all. With a window
/// such an engine lists delayed jobs by due time, and one whose due time changes may be listed twice or not
/// at all.
struct JobPage {
  std::vector<Job> jobs;
  std::string cursor;  ///< empty: this is the last page
  Arena storage;
};

struct TopicCounts {
  std::array<uint64_t, kJobStateCount> by_state{};
  std::optional<Moment> oldest_ready;  ///< earliest due time among the ready jobs of the best priority
  /// Job::handed_over of the reserved job that is held for the longest time; none: unknown, or there is none.
  std::optional<Moment> oldest_lease{};

  uint64_t of(JobState state) const { return by_state[static_cast<size_t>(state)]; }
};

struct TopicRow {
  std::string topic;
  TopicCounts counts;
};

/// Topics in the bytewise order of their names. The cursor is the last name.
struct TopicPage {
  std::vector<TopicRow> topics;
  std::string cursor;
};

struct ForecastRequest {
  std::string_view topic;  ///< empty: all topics
  Moment from{};
  Moment to{};
  uint32_t bins = 1;
};

/// How many delayed jobs fall due in each of `bins` equal parts of [from, to). The edge of a bin may be wrong
/// by up to `resolution`, the coarsest time step of the engine in that range.
struct Forecast {
  std::vector<uint64_t> bins;
  Millis resolution{1};
};

struct TopicSettings {
  std::string topic;
  std::string settings;
};

/// Describes a finished backup.
struct BackupReport {
  std::string path;    ///< where the copy is
  uint64_t bytes = 0;  ///< its size
  uint64_t files = 0;
  /// The number of jobs when the copy was made. Changes that were not yet durable at that moment may or
  /// may not be in it.
  uint64_t jobs = 0;
};

/// What an engine uses and how far it lags. Cheap enough to call before every push. Where the jobs are on
/// another machine, the figures may be about a second old; a flush() brings them up to date.
struct EngineUsage {
  uint64_t jobs = 0;
  uint64_t topics = 0;
  uint64_t schedules = 0;
  std::optional<uint64_t>
      cold_bodies{};            ///< jobs whose bodies are in a cold store; none: there is no such store
  uint64_t memory_bytes = 0;    ///< of the job table and its indexes
  uint64_t disk_bytes = 0;      ///< size of its files
  uint64_t live_bytes = 0;      ///< the part of disk_bytes that is still needed
  uint64_t disk_free = 0;       ///< UINT64_MAX where there is no disk
  bool lacks_room = false;      ///< accepted changes wait for free disk space
  uint64_t unsynced_bytes = 0;  ///< accepted, not yet durable
  uint64_t commits = 0;
  uint64_t written_bytes = 0;  ///< since the start, by commits and by compaction
  uint64_t copied_bytes = 0;   ///< since the start: the part of written_bytes that compaction copied
  uint64_t segments = 0;       ///< number of files
};

/// Statistics of commits since the start.
struct CommitFigures {
  /// Time to write and sync each commit, in microseconds. The last bucket holds everything from 2^26 us
  /// (about a minute) on.
  Histogram<28> micros;
  /// Number of records in each commit.
  Histogram<20> records;
};

}  // namespace delayq
