#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/job_state.h"
#include "core/time.h"

/// Times as protocols have them that count in seconds; what is past the second is cut.

namespace delayq {

inline constexpr uint32_t kDefaultPriority = 1024;

/// What a push does when its id is already waiting or running.
enum class OnConflict : uint8_t {
  kReject,   ///< answer with a conflict
  kReplace,  ///< the new job takes the old one's place in one step (upsert, debounce); a running lease goes
             ///< stale
  kKeep,     ///< leave the existing job alone and answer with it
};

constexpr std::optional<OnConflict> parse_on_conflict(std::string_view name) {
  if (name == "reject") return OnConflict::kReject;
  if (name == "replace") return OnConflict::kReplace;
  if (name == "keep") return OnConflict::kKeep;
  return std::nullopt;
}

/// The way by which a ready job leaves. It is settled when the job is pushed and never changes.
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
  bool cancel_requested = false;  ///< reserved, and its producer took it back: it will not be retried
  Outlet outlet = Outlet::kTopic;
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
