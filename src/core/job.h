#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/job_state.h"
#include "core/time.h"

/// Unix seconds, for protocols that count in seconds; the milliseconds are cut off.

namespace delayq {

inline constexpr uint32_t kDefaultPriority = 1024;

/// What a push does when its id is already waiting or running.
enum class OnConflict : uint8_t {
  kReject,   ///< fails with a conflict
  kReplace,  ///< replaces the old job in one step (upsert, debounce); a running lease becomes stale
  kKeep,     ///< keeps the existing job and returns it
};

constexpr std::optional<OnConflict> parse_on_conflict(std::string_view name) {
  if (name == "reject") return OnConflict::kReject;
  if (name == "replace") return OnConflict::kReplace;
  if (name == "keep") return OnConflict::kKeep;
  return std::nullopt;
}

/// How a ready job leaves the queue. This is decided when the job is pushed and never changes.
enum class Outlet : uint8_t {
  kTopic,     ///< as its topic's `delivery` says
  kCallback,  ///< it has a callback of its own: it is always called back, and no pop gets it
};
inline constexpr size_t kOutletCount = 2;

/// A job as it is looked up, listed and handed out. The views belong to the creator of the Job (usually an
/// Arena).
struct Job {
  std::string_view topic;
  std::string_view id;
  std::string_view group;  ///< empty: none
  std::string_view body;   ///< any bytes; empty in listings that did not ask for bodies
  std::string_view
      options;  ///< the queue's own note on this job (see queue/job_options.h); engines only keep it
  std::string_view outcome;  ///< the last error, or what a callback answered
  JobState state = JobState::kDelayed;
  uint32_t priority = kDefaultPriority;
  uint32_t attempts = 0;  ///< times it was handed out, the current one included
  Moment due{};
  Moment pushed{};
  Moment until{};  ///< reserved: the lease's deadline; done and dead: when retention ends; otherwise unset
  bool cancel_requested = false;  ///< reserved, and cancelled by its producer: it will not be retried
  Outlet outlet = Outlet::kTopic;
  Moment handed_over{};  ///< reserved: since when this lease is held, up to a second early; unset: unknown
};

/// How long and how many finished jobs a topic keeps. Not kept at all when either is zero.
struct Keep {
  Moment until{};
  uint32_t count = 0;
};

constexpr int64_t to_unix_seconds(Moment moment) {
  return std::chrono::floor<std::chrono::seconds>(moment.time_since_epoch()).count();
}

/// From the push of a job to its due time: for the first attempt, what was asked for.
constexpr int64_t delay_seconds(const Job& job) {
  return std::chrono::floor<std::chrono::seconds>(std::max(job.due - job.pushed, Millis::zero())).count();
}

}  // namespace delayq
