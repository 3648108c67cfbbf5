#pragma once

#include "queue/hand_over.h"

namespace delayq {

/// Ends a queue in good order (rule 15): nothing new comes in, those who wait are sent home, those who hold a
/// job may finish it within the grace period, and then everything is flushed.
class Stopper {
 public:
  Stopper(Context& context, HandOver& hand_over) : context_(context), hand_over_(hand_over) {}

  void stop(Millis grace, Reply<StopReport> reply);
  /// Looks, when leases have ended, whether those were the last.
  void look_if_leases_ended();
  /// Answers when it wants to be called next.
  Moment tick();
  void clock_went_back(Millis by);

 private:
  void look();
  void flush(uint64_t leases_left);

  Context& context_;
  HandOver& hand_over_;
  bool draining_ = false;
  bool looking_ = false;      ///< the engine is being asked how many leases are out
  uint64_t leases_seen_ = 0;  ///< to have ended, when it was asked
  Moment grace_ends_ = kNever;
  Reply<StopReport> reply_;
};

}  // namespace delayq
