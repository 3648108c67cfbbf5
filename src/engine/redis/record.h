#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/arena.h"
#include "core/job.h"
#include "engine/requests.h"
#include "engine/schedules.h"

/// A job as the pool keeps it: two MessagePack arrays, one after the other. Scripts read and write the head
/// and carry the tail along unseen.
///
///   head  [version, state, priority, due, pushed, sequence, outlet, attempts, lease, until, flags, outcome]
///   tail  [group, options, body]
///
/// `lease` of a done or dead job is the moment at which it ended, or 0 when that is not known.
/// `flags` is a number: bit 0 says that a cancel was asked for, and what is above it is the lease's nonce.
///
/// `state` is 0 for delayed and for ready jobs: in which of the two it is, the delay stage knows. Moments are
/// milliseconds since 1970, and scripts count in doubles: from 2^53 - 1 on (the year 287396) it is never.
namespace delayq::redis {

inline constexpr uint32_t kRecordVersion = 1;
inline constexpr uint32_t kFlagCancelRequested = 1;

/// A moment as it is stored and as scripts are given it, and back.
int64_t to_stored(Moment moment);
Moment from_stored(int64_t ms);
/// A moment as a script answers it in text. Empty, or no number: never.
Moment read_moment(std::string_view text);

/// A record, read. The views point into it.
struct Record {
  JobState state = JobState::kDelayed;  ///< kDelayed stands for kReady, too
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
};

/// nullopt: it is none, or of a later version.
std::optional<Record> read_record(std::string_view bytes);

/// The record of a job without its place in the order of pushes, which only the script knows: it puts
/// nine bytes, a number in MessagePack, between the two pieces.
struct RecordPieces {
  std::string_view before;
  std::string_view after;
};
/// The job as it is pushed. Written into `storage`.
RecordPieces write_new_job(const NewJob& job, Moment now, Arena& storage);
/// Any job as it was elsewhere. A state other than done and dead is stored as waiting, without lease and
/// `until`.
RecordPieces write_job(const Job& job, Arena& storage);

/// Reads the changing part of a schedule, [version, revision, next, progress], into `schedule`. (The revision
/// is a text there: scripts count in doubles, which are exact up to 2^53.) False: it is none, or of a later
/// version.
bool read_turn(std::string_view bytes, StoredSchedule& schedule);

/// The job as it is answered, with all its texts copied into `storage`. `state` is that of the record.
Job copy_job(const Record& record, std::string_view topic, std::string_view id, bool with_body,
             Arena& storage);

}  // namespace delayq::redis
