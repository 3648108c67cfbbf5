#pragma once

#include <vector>

#include "core/random.h"
#include "queue/hand_over.h"

namespace delayq {

/// Jobs whose lease ran out have failed once and go the way of all failures (rules 7 and 8).
class Recoverer {
 public:
  Recoverer(Context& context, HandOver& hand_over, const EffectiveSettings& defaults, Random random)
      : context_(context), hand_over_(hand_over), defaults_(defaults), random_(random) {}

  /// Being told twice of a lease is harmless: the second nack finds it stale.
  void recover(std::vector<LeaseInfo> leases);

  /// Tries again what the engine could not do the last time. Answers when it wants to be called next.
  Moment tick();

 private:
  void settle(const std::vector<LeaseInfo>& leases, const std::vector<NackOutcome>& outcomes);

  Context& context_;
  HandOver& hand_over_;
  const EffectiveSettings& defaults_;  ///< for topics that the queue does not know
  Random random_;
  std::vector<LeaseInfo> again_;
  Moment again_at_ = kNever;
};

}  // namespace delayq
