#pragma once

#include <optional>
#include <string_view>

#include "engine/requests.h"
#include "queue/settings.h"

namespace delayq {

/// A failed attempt, however it failed.
struct Failure {
  std::string_view options{};     ///< the job's own word on it
  uint32_t attempts = 0;          ///< made so far, the failed one included
  std::optional<Millis> delay{};  ///< asked for by the consumer instead of the backoff
  bool dead = false;              ///< asked for by the consumer
};

/// What becomes of the job.
struct Verdict {
  std::optional<Moment> retry_at;  ///< nullopt: dead
  Keep keep;                       ///< when dead
};

/// Rule 8. The job's attempts and backoff go before its topic's; a delay that the consumer asks for replaces
/// the backoff, but not the count of attempts. `random` decides the jitter.
Verdict judge(const Failure& failure, const EffectiveSettings& topic, Moment now, uint64_t random);

}  // namespace delayq
