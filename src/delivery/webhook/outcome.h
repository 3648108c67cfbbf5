#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "delivery/webhook/call.h"
#include "queue/callback.h"

namespace delayq::webhook {

/// What becomes of a job whose call has ended. How often and after which time it is tried again is the
/// queue's business; `retry_after` is what the receiver asked for.
enum class Fate : uint8_t { kDone, kFailed, kDead };

struct Outcome {
  Fate fate = Fate::kFailed;
  std::optional<Millis> retry_after{};
  /// The host did not do its work at all, so that the next call to it is likely to fail as well.
  bool host_failed = false;
  /// Kept with the job: "200 in 12 ms: first bytes of the answer".
  std::string text;
};

/// The longest wait that a receiver may ask for.
inline constexpr Millis kLongestRetryAfter = std::chrono::hours{24};

/// 2xx is a success (for the callback API only with the body `ok`), 410 makes the job dead, and everything
/// else, redirects included, has failed. Retry-After counts with 429 and 503.
Outcome outcome_of(const CallResult& result, CallbackFormat format, Moment now);

}  // namespace delayq::webhook
