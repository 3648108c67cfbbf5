#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/arena.h"
#include "core/job.h"
#include "engine/redis/cold_store.h"
#include "engine/requests.h"
#include "engine/schedules.h"

/// A job as stored in the pool: two MessagePack arrays, one after the other. Scripts read and write the head;
/// they copy the tail unchanged.
///
///   head  [version, state, priority, due, pushed, sequence, outlet, attempts, lease, until, flags, outcome]
///   tail  [group, options, body]
///
/// A job with a lease length of its own has that length, in ms, as the 13th item of its head.
///
/// The body of a waiting job may be in the cold store (cold_store.h). `flags` is then 2, and the tail is
///
///   tail  [group, options, [version, hops, step, partition, offset, bytes of the body]]
///
/// `lease` of a done or dead job is the time at which it ended, or 0 if unknown.
/// `flags` is a number: bit 0 means that a cancel was requested; the bits above are the nonce of the lease.
///
/// `state` is 0 for delayed and ready jobs; a job is ready unless it is in the delay stage.
/// Times are milliseconds since 1970, and scripts calculate in doubles: values from 2^53 - 1
/// (the year 287396) mean never.
namespace delayq::redis {

inline constexpr uint32_t kRecordVersion = 1;
inline constexpr uint32_t kFlagCancelRequested = 1;

/// Converts a time to the form in which it is stored and passed to scripts, and back.
int64_t to_stored(Moment moment);
Moment from_stored(int64_t ms);
/// From `now` to `due`, as scripts calculate it: never overflows.
inline Millis time_left(Moment now, Moment due) { return Millis{to_stored(due) - to_stored(now)}; }
/// Reads a time that a script returned as text. Empty or not a number: never.
Moment read_moment(std::string_view text);

/// When a lease was given out: its number starts above the time (scripts/take.lua), to within some
/// milliseconds. nullopt: unknown, because an earlier version gave it out.
std::optional<Moment> time_of_lease(uint64_t number);

/// Where the body of a job is in the cold store.
struct ColdBody {
  uint32_t version = 0;  ///< random for each body that is moved there: tells it from others of the same job
  uint32_t hops = 0;     ///< how often it was moved within the store
  ColdPlace place;
  uint64_t bytes = 0;

  bool operator==(const ColdBody&) const = default;
};

/// A parsed record. The views point into it.
struct Record {
  JobState state = JobState::kDelayed;  ///< kDelayed also stands for kReady
  uint32_t priority = 0;
  Moment due{};
  Moment pushed{};
  uint64_t sequence = 0;
  Outlet outlet = Outlet::kTopic;
  uint32_t attempts = 0;
  uint64_t lease = 0;
  uint64_t nonce = 0;  ///< of the lease
  Moment until{};
  bool cancel_requested = false;
  std::string_view outcome;
  std::string_view group;
  std::string_view options;
  std::string_view body;
  std::optional<ColdBody> cold;  ///< the body is there; `body` is empty
};

/// nullopt: not a record, or of a later version.
std::optional<Record> read_record(std::string_view bytes);

/// The record of a job without its push number, which only the script knows: the script inserts nine bytes, a
/// MessagePack number, between the two pieces.
struct RecordPieces {
  std::string_view before;
  std::string_view after;
};
/// The record of a new job. Written into `storage`.
RecordPieces write_new_job(const NewJob& job, Moment now, Arena& storage);
/// The record of a job that is restored. Unless it is done or dead, it is stored as waiting,
/// without lease and `until`. `own_lease` is the job's own lease length; zero: none.
RecordPieces write_job(const Job& job, Millis own_lease, Arena& storage);

/// Reads the changing part of a schedule, [version, revision, next, progress], into `schedule`. (The revision
/// is a text there: scripts count in doubles, which are exact up to 2^53.) False: it is none, or of a later
/// version.
bool read_turn(std::string_view bytes, StoredSchedule& schedule);

/// The value of a record in the cold store, one MessagePack array:
///
///   [version, deployment, topic, id, version of the body, hops, record]
///
/// `record` is that of the job as it was in the pool: the whole job with its body.
struct ColdRecord {
  std::string_view deployment;  ///< the prefix of its keys in Redis
  std::string_view topic;
  std::string_view id;
  uint32_t version = 0;  ///< as in ColdBody
  uint32_t hops = 0;     ///< as in ColdBody
  std::string_view record;
};
std::string write_cold(const ColdRecord& record);
/// The views point into `bytes`. nullopt: not such a value, or of a later version.
std::optional<ColdRecord> read_cold(std::string_view bytes);

/// Makes the Job of a reply, with all its texts copied into `storage`. `state` is that of the record.
Job copy_job(const Record& record, std::string_view topic, std::string_view id, bool with_body,
             Arena& storage);

}  // namespace delayq::redis
