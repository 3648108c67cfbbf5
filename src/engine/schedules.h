#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "engine/requests.h"

/// The plain values that go into an engine and come out of it, about schedules. An engine stores a schedule,
/// reports when its time has come, and changes it together with the job that it makes. What a schedule means
/// is known to the queue alone.
namespace delayq {

/// A schedule as an engine stores it.
struct StoredSchedule {
  std::string name{};
  /// Identifies this version of the schedule: a turn names the revision that it was computed from. Random,
  /// never 0.
  uint64_t revision = 0;
  Moment next = kNever;      ///< when the queue wants to hear of it; kNever: not at all
  std::string definition{};  ///< only the queue reads it; changes seldom, may be as large as a body
  std::string progress{};    ///< only the queue reads it; small, changes with every occurrence

  bool operator==(const StoredSchedule&) const = default;
};

/// What becomes of the job that a turn pushes when the schedule's previous job is still live.
enum class Overlap : uint8_t {
  kAllow,    ///< it is pushed all the same
  kSkip,     ///< it is not pushed
  kReplace,  ///< it is pushed; the previous one is cancelled, unless it is reserved
};

/// One atomic step of a schedule: it is stored, changed or removed, and a job is pushed with it. All of it is
/// durable, or nothing of it.
struct TurnRequest {
  std::string_view name{};
  /// The revision that the caller has read; 0: there is no schedule of that name. If it is another one by
  /// now, nothing happens, and the outcome is kChanged.
  uint64_t expected = 0;
  uint64_t revision = 0;  ///< the new one; 0: the schedule is removed
  Moment next = kNever;
  std::optional<std::string_view> definition{};  ///< nullopt: as it is. REQUIRED when there was none
  std::string_view progress{};
  /// Pushed in the same step. Its id belongs to the schedule: occurrence_owner(id) is the name. REQUIRES:
  /// on_conflict is kKeep, unique_across_topics and adds_none are not set.
  std::optional<NewJob> job{};
  /// The job before, which `overlap` is about. Its id belongs to the schedule, too; its topic may be another.
  std::optional<JobRef> previous{};
  Overlap overlap = Overlap::kAllow;
  /// Stored instead of `progress` when the job was not pushed because of the previous one.
  std::string_view progress_if_skipped{};
};

enum class TurnOutcome : uint8_t {
  kTurned,
  kSkipped,  ///< turned, but without the job: the previous one is live
  /// Nothing happened: the schedule is not as expected. Or, of a batch with large jobs to replace, the engine
  /// has done only a part, at least the first; the others are still due and are reported again.
  kChanged,
};

struct TurnAnswer {
  TurnOutcome outcome = TurnOutcome::kTurned;
  PushOutcome pushed = PushOutcome::kCreated;  ///< kKept when a live job had that id already
  bool has_replaced = false;                   ///< the previous job was cancelled

  bool operator==(const TurnAnswer&) const = default;
};

struct ScheduleListRequest {
  std::string_view after{};  ///< names behind this one; empty: from the first on
  uint32_t limit = 100;
  /// The page has no further schedule once it has so many bytes.
  uint64_t max_bytes = Limits::kPopBytes;
};

/// Schedules in the order of their names, bytewise.
struct SchedulePage {
  std::vector<StoredSchedule> schedules{};
  bool has_more = false;
};

/// Due schedules are reported again after this time, unless they were turned.
inline constexpr Millis kDueScheduleReminder{1'000};
/// How many schedules, and about how many bytes of them, one report has at most.
inline constexpr uint32_t kDueSchedules = 128;
inline constexpr uint64_t kDueScheduleBytes = uint64_t{8} << 20;

}  // namespace delayq
