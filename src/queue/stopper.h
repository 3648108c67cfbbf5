#pragma once

#include "queue/hand_over.h"

namespace delayq {

/// Stops a queue gracefully (rule 15): pushes and pops are refused, waiting consumers get an empty answer,
/// consumers that hold a job may finish it within the grace period, and then everything is flushed.
///
/// Every step has a deadline, so that an engine that does not answer (a full disk, an unavailable Redis)
/// cannot prevent the server from stopping. If the flush fails or times out, stop() replies with the error:
/// changes that were answered before are safe, others may be stored or not.
class Stopper {
 public:
  /// The timeouts after the grace period: for counting the leases that are left, and for the flush.
  static constexpr Millis kLongestCount = std::chrono::seconds{2};
  static constexpr Millis kLongestFlush = std::chrono::seconds{10};

  Stopper(Context& context, HandOver& hand_over) : context_(context), hand_over_(hand_over) {}

  void stop(Millis grace, Reply<StopReport> reply);
  /// If leases have ended, checks whether any are left.
  void look_if_leases_ended();
  /// Returns when to call it next.
  Moment tick();
  void clock_went_back(Millis by);

 private:
  enum class Phase : uint8_t {
    kServing,
    kGrace,     ///< consumers may finish their jobs
    kCounting,  ///< the grace period is over: the leases that are left are counted
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
  bool looking_ = false;      ///< the engine is counting the leases
  uint64_t leases_seen_ = 0;  ///< Context::leases_ended when the engine was asked
  StopReport report_;         ///< leases_left is 0 if the engine did not answer
  Reply<StopReport> reply_;
};

}  // namespace delayq
