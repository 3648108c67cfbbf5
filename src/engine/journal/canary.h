#pragma once

#include <cstdint>

namespace delayq::journal {

/// Bugs planted on purpose, to prove that the simulator finds them. They exist only in the build of this
/// engine that the simulator links (DELAYQ_PLANTED_BUGS, see tests/simulation). In all other builds
/// is_planted() is the constant false, so the program that users run has none of these bugs.
enum class Canary : uint8_t {
  kNone,
  kLostCancel,      ///< a cancel is replied to but not written
  kEarlyWheelSlot,  ///< jobs wait in a wheel slot slightly before their time
  kForgottenLease,  ///< a lease's deadline is not monitored
  kWrongCrc,        ///< checksums are not verified when records are read back
  kEarlyRemoval,    ///< compaction removes a segment before the copies of its records are durable
  kUncheckedFiles,  ///< segments are not compared with the manifest
  kUnwrittenTurn,   ///< a schedule's job is pushed, but that the schedule moved on is not written
  kSplitTurn,       ///< a schedule and its job are written one after the other, not as one group
};

#ifdef DELAYQ_PLANTED_BUGS
/// The bug that is planted in the engines of this thread.
inline thread_local Canary planted_bug = Canary::kNone;
inline bool is_planted(Canary canary) { return planted_bug == canary; }
#else
constexpr bool is_planted(Canary /*canary*/) { return false; }
#endif

}  // namespace delayq::journal
