#pragma once

#include "queue/hand_over.h"

namespace delayq {

/// Ends a queue in good order (rule 15): nothing new comes in, those who wait are sent home, those who hold a
/// job may finish it within the grace period, and then everything is flushed.
///
/// Every step has a deadline, so that an engine that does not answer (a full disk, a Redis that is away)
/// cannot keep the server from stopping. When the flush failed or was given up, stop() is answered with the
/// error: what was answered before is safe, what was not answered may be stored or not.
class Stopper {
 public:
  /// After the grace period: for counting the leases that are left, and for flushing.
  static constexpr Millis kLongestCount = std::chrono::seconds{2};
  static constexpr Millis kLongestFlush = std::chrono::seconds{10};

  Stopper(Context& context, HandOver& hand_over) : context_(context), hand_over_(hand_over) {}

  void stop(Millis grace, Reply<StopReport> reply);
  /// Looks, when leases have ended, whether those were the last.
  void look_if_leases_ended();
  /// Answers when it wants to be called next.
  Moment tick();
  void clock_went_back(Millis by);

 private:
  enum class Phase : uint8_t {
    kServing,
    kGrace,     ///< jobs that are handed out may be finished
    kCounting,  ///< the grace period is over: how many are left?
    kFlushing,
    kStopped,
  };

  void enter(Phase phase, Millis at_most);
  void look();
  void counted(const Result<TopicCounts>& counts);
  void flush();
  void finish(Result<StopReport> result);

  Context& context_;
  HandOver& hand_over_;
  Phase phase_ = Phase::kServing;
  Moment phase_ends_ = kNever;
  bool looking_ = false;      ///< the engine is being asked how many leases are out
  uint64_t leases_seen_ = 0;  ///< to have ended, when it was asked
  StopReport report_;         ///< no leases when the engine did not say
  Reply<StopReport> reply_;
};

}  // namespace delayq
