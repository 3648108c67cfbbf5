#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calendar/recurrence.h"
#include "engine/schedules.h"
#include "queue/job_options.h"

/// Schedules: rules that make a job again and again (rule 16), as users give them and as they are stored.
namespace delayq {

/// What becomes of occurrences that were not made in time, because no server ran or the schedule was paused.
enum class Missed : uint8_t {
  kOne,   ///< the last one is made, at once
  kSkip,  ///< none is made that is older than Limits::kMissedAfter
  kAll,   ///< all are made, in their order; of more than Limits::kCatchUp, the latest
};

inline constexpr std::array<std::string_view, 3> kOverlapNames{"allow", "skip", "replace"};
inline constexpr std::array<std::string_view, 3> kMissedNames{"one", "skip", "all"};
constexpr std::string_view name_of(Overlap overlap) { return kOverlapNames[static_cast<size_t>(overlap)]; }
constexpr std::string_view name_of(Missed missed) { return kMissedNames[static_cast<size_t>(missed)]; }
/// kInvalid with the field `overlap` or `missed`, and the words that exist.
Result<Overlap> parse_overlap(std::string_view text);
Result<Missed> parse_missed(std::string_view text);

/// A schedule as a user defines it: a rule, and a template of the jobs that it makes. The views belong to the
/// caller.
struct ScheduleSpec {
  std::string_view name{};

  // ---- the rule
  std::optional<Millis> every{};  ///< exactly one of every and cron
  std::string_view cron{};
  std::string_view zone{};         ///< of the cron rule; empty: UTC
  std::optional<Moment> start{};   ///< no occurrence before; `every` counts from it, else from the first set
  std::optional<Moment> end{};     ///< no occurrence after
  std::optional<uint64_t> runs{};  ///< how many jobs are made in all
  Millis jitter{};                 ///< each job is due up to so much later than its occurrence
  Overlap overlap = Overlap::kAllow;
  Missed missed = Missed::kOne;

  // ---- the jobs
  std::string_view topic{};
  std::string_view body{};
  std::optional<uint32_t> priority{};  ///< else that of the topic
  std::string_view group{};
  JobOptions options{};

  bool from_configuration = false;  ///< it came from the server's configuration file

  bool operator==(const ScheduleSpec&) const = default;
  bool has_same_rule(const ScheduleSpec& other) const {
    return every == other.every && cron == other.cron && zone == other.zone && start == other.start;
  }
};

/// How far a schedule has come. Stored anew with every occurrence.
struct ScheduleProgress {
  Moment created{};  ///< when it was first set
  Moment decided{};  ///< occurrences up to here were made, skipped or missed
  uint64_t made = 0;
  uint64_t skipped = 0;  ///< not made, because the job before was still there
  uint64_t missed = 0;   ///< not made, because it was too late for them
  Moment previous{};     ///< the occurrence of the job that was made last; Moment{}: none
  std::string previous_topic{};
  Moment catch_up_until{};  ///< while occurrences up to here are made up for (Missed::kAll); else Moment{}
  bool paused = false;
  /// It is being moved to another place and makes no jobs here meanwhile. Whether it is paused is another
  /// matter: it is what the other place needs to know.
  bool moving = false;

  bool operator==(const ScheduleProgress&) const = default;
};

enum class ScheduleState : uint8_t { kActive, kPaused, kEnded };
inline constexpr std::array<std::string_view, 3> kScheduleStateNames{"active", "paused", "ended"};
constexpr std::string_view name_of(ScheduleState state) {
  return kScheduleStateNames[static_cast<size_t>(state)];
}

/// A stored schedule, read.
struct ScheduleView {
  ScheduleSpec spec{};
  ScheduleProgress progress{};
  ScheduleState state = ScheduleState::kActive;
  Moment next = kNever;   ///< the next occurrence; kNever unless active
  std::string problem{};  ///< why it makes no jobs here: a zone that this machine lacks, for example
  std::shared_ptr<const StoredSchedule> storage{};  ///< the spec's views point into it

  /// False: what is stored is damaged, and `spec` has only the name.
  bool is_readable() const { return !spec.topic.empty(); }
};

/// OK, or the first field that is wrong.
Status check_schedule(const ScheduleSpec& spec, Moment now, const Limits& limits);
/// The same for progress that comes from elsewhere.
Status check_progress(const ScheduleProgress& progress);
/// The name that no schedule may have: GET /v1/schedules/preview is another call.
inline constexpr std::string_view kPreviewName = "preview";
/// 1-200 bytes, as a topic; not kPreviewName.
Status check_schedule_name(std::string_view name);

/// The rule as arithmetic. `created` is the first anchor of `every`. kInvalid for a rule that cannot be.
Result<Recurrence> recurrence_of(const ScheduleSpec& spec, Moment created);

/// The bytes of StoredSchedule::definition and progress.
std::string encode_definition(const ScheduleSpec& spec);
std::string encode_progress(const ScheduleProgress& progress);
/// Unknown fields are skipped, so that an older server can read what a newer one has stored. nullopt: that is
/// not a schedule. The views point into `stored`.
std::optional<ScheduleSpec> decode_definition(const StoredSchedule& stored);
std::optional<ScheduleProgress> decode_progress(std::string_view bytes);

/// What a schedule does at one moment.
struct ScheduleStep {
  std::optional<Moment> occurrence{};  ///< a job is made for it
  ScheduleProgress progress{};         ///< then
  ScheduleProgress if_skipped{};       ///< if the job was not pushed because of the one before
  uint64_t missed = 0;                 ///< how many occurrences are given up
  Moment next = kNever;                ///< when to look again
};

/// Decides about the occurrences up to `now`. At most one job is made in a step; `next` is not after `now` if
/// there are more.
ScheduleStep step_schedule(const ScheduleSpec& spec, const Recurrence& rule, const ScheduleProgress& progress,
                           Moment now);

/// How many occurrences up to `now` nothing was decided about, whether it is paused or not; counts up to
/// Limits::kCatchUp.
uint64_t count_undecided(const ScheduleSpec& spec, const Recurrence& rule, const ScheduleProgress& progress,
                         Moment now);

/// The next occurrence that is not decided, as long as the schedule is active; else kNever.
Moment next_occurrence(const ScheduleSpec& spec, const Recurrence& rule, const ScheduleProgress& progress);
ScheduleState state_of(const ScheduleSpec& spec, const Recurrence& rule, const ScheduleProgress& progress);

/// The occurrences that come next, in their order, at most `count`. None while the schedule is paused.
std::vector<Moment> next_occurrences(const ScheduleSpec& spec, const Recurrence& rule,
                                     ScheduleProgress progress, uint32_t count);

/// The first `count` occurrences (1 to Limits::kPreview) of a schedule that is set at `from`; fewer when it
/// ends before. Only the rule counts: name, topic and body may be missing. kInvalid for a rule that cannot
/// be.
Result<std::vector<Moment>> preview_schedule(const ScheduleSpec& spec, Moment from, uint32_t count);

/// When the job of an occurrence is due: at the occurrence, or up to `jitter` later, always by the same time
/// for the same occurrence.
Moment due_of(const ScheduleSpec& spec, Moment occurrence);

}  // namespace delayq
