#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace delayq {

/// The five states of a job. Code, APIs, metrics and dashboard use exactly these.
enum class JobState : uint8_t {
  kDelayed,   ///< waits for its due time
  kReady,     ///< due; waits for a consumer
  kReserved,  ///< handed out under a lease
  kDone,      ///< acked; kept for a while
  kDead,      ///< failed for good; kept until redriven, purged or out of retention
};
inline constexpr size_t kJobStateCount = 5;

inline constexpr std::array<std::string_view, kJobStateCount> kJobStateNames{"delayed", "ready", "reserved",
                                                                             "done", "dead"};

constexpr std::string_view name_of(JobState state) { return kJobStateNames[static_cast<size_t>(state)]; }

constexpr std::optional<JobState> parse_job_state(std::string_view name) {
  for (size_t i = 0; i < kJobStateCount; ++i) {
    if (kJobStateNames[i] == name) return static_cast<JobState>(i);
  }
  return std::nullopt;
}

/// An id in one of these states is in use. Done and dead jobs are only kept: a push with the same id replaces
/// them.
constexpr bool is_live(JobState state) { return state < JobState::kDone; }

/// What can happen to a job.
enum class JobEvent : uint8_t {
  kDue,         ///< its time has come
  kTake,        ///< handed to a consumer under a lease
  kAck,         ///< the consumer is done with it
  kRetry,       ///< failed (nack, lease expired, callback failed), and will be tried again
  kGiveUp,      ///< failed for good
  kReschedule,  ///< moved to another time
  kRedrive,     ///< a dead job is tried again
  kCancel,      ///< cancelled by the producer
  kForget,      ///< retention or a purge removes it
};
inline constexpr size_t kJobEventCount = 9;

/// Where an event leads from a state. An event that cannot happen in a state has no row. `kReschedule` and
/// `kRetry` lead to delayed, and from there at once to ready when due.
struct Transition {
  JobState from;
  JobEvent event;
  std::optional<JobState> to;  ///< nullopt: the job is gone
};

inline constexpr std::array kTransitions{
    Transition{JobState::kDelayed, JobEvent::kDue, JobState::kReady},
    Transition{JobState::kDelayed, JobEvent::kReschedule, JobState::kDelayed},
    Transition{JobState::kDelayed, JobEvent::kCancel, std::nullopt},
    Transition{JobState::kDelayed, JobEvent::kForget, std::nullopt},
    Transition{JobState::kReady, JobEvent::kTake, JobState::kReserved},
    Transition{JobState::kReady, JobEvent::kReschedule, JobState::kDelayed},
    Transition{JobState::kReady, JobEvent::kCancel, std::nullopt},
    Transition{JobState::kReady, JobEvent::kForget, std::nullopt},
    Transition{JobState::kReserved, JobEvent::kAck, JobState::kDone},
    Transition{JobState::kReserved, JobEvent::kRetry, JobState::kDelayed},
    Transition{JobState::kReserved, JobEvent::kGiveUp, JobState::kDead},
    Transition{JobState::kReserved, JobEvent::kCancel,
               JobState::kReserved},  // runs to its end, is not retried
    Transition{JobState::kReserved, JobEvent::kForget, std::nullopt},
    Transition{JobState::kDone, JobEvent::kForget, std::nullopt},
    Transition{JobState::kDead, JobEvent::kRedrive, JobState::kReady},
    Transition{JobState::kDead, JobEvent::kReschedule, JobState::kDelayed},
    Transition{JobState::kDead, JobEvent::kForget, std::nullopt},
};

/// The row for (from, event), or nullptr when that cannot happen.
constexpr const Transition* find_transition(JobState from, JobEvent event) {
  for (const Transition& row : kTransitions) {
    if (row.from == from && row.event == event) return &row;
  }
  return nullptr;
}

constexpr bool can(JobState from, JobEvent event) { return find_transition(from, event) != nullptr; }

}  // namespace delayq
