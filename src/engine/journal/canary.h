#pragma once

#include <cstdint>

namespace delayq::journal {

/// Bugs planted on purpose, to prove that the simulator would find them. They exist only in the build of this
/// engine that the simulator links (DELAYQ_PLANTED_BUGS, see tests/simulation); everywhere else is_planted()
/// is the constant false, so that the program that users run has none of them.
enum class Canary : uint8_t {
  kNone,
  kLostCancel,      ///< a cancel is answered but not written
  kEarlyWheelSlot,  ///< jobs wait in a slot a little before their time
  kForgottenLease,  ///< a lease's deadline is not watched
  kWrongCrc,        ///< checksums are not compared when reading back
  kEarlyRemoval,    ///< cleaning removes a segment before its survivors are durable
  kUncheckedFiles,  ///< segments are not compared with the manifest
  kUnwrittenTurn,   ///< a schedule's job is pushed, but that the schedule moved on is not written
};

#ifdef DELAYQ_PLANTED_BUGS
/// The one that is planted in the engines of this thread.
inline thread_local Canary planted_bug = Canary::kNone;
inline bool is_planted(Canary canary) { return planted_bug == canary; }
#else
constexpr bool is_planted(Canary /*canary*/) { return false; }
#endif

}  // namespace delayq::journal
