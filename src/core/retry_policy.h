#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace delayq {

/// A delay for each failed attempt; the last one repeats. One step is a fixed delay.
struct StepBackoff {
  std::vector<Millis> steps;  ///< 1 to Limits::kBackoffSteps, each 0 to Limits::kMaxDelay

  bool operator==(const StepBackoff&) const = default;
};

/// base, base * factor, base * factor^2, ... up to the cap. Jitter spreads jobs that failed together: the
/// delay is evenly between (1 - jitter) times that value and the value itself, so it exceeds neither the cap
/// nor what a reader of the policy expects.
struct ExponentialBackoff {
  Millis base = std::chrono::seconds{10};  ///< at least 1 ms
  double factor = 2;                       ///< 1 to Limits::kMaxBackoffFactor
  Millis cap = std::chrono::hours{1};      ///< base to Limits::kMaxDelay
  double jitter = 0.1;                     ///< 0 (none) to 1 (anything from zero)

  bool operator==(const ExponentialBackoff&) const = default;
};

using Backoff = std::variant<StepBackoff, ExponentialBackoff>;

/// With ExponentialBackoff{}, the default, 16 attempts are 10 s, 20 s, 40 s, ... one hour apart: about 7
/// hours.
inline constexpr uint32_t kDefaultAttempts = 16;

/// What happens after a failed attempt. Made for one call: it refers to a backoff that is stored elsewhere.
struct RetryPolicy {
  uint32_t attempts;  ///< 0: no limit
  const Backoff& backoff;
};

/// How long to wait after the `attempts_made`-th attempt failed (1: the first one); nullopt when all are used
/// up and the job is dead. Pure: `random`, any 64 random bits, decides the jitter. Never negative, never
/// above the cap, for any number of attempts. REQUIRES: check_backoff(policy.backoff).
std::optional<Millis> next_delay(const RetryPolicy& policy, uint32_t attempts_made, uint64_t random);

/// OK when every number is in the range that its comment gives. The detail starts with "backoff".
Status check_backoff(const Backoff& backoff);

/// Reads the text form that RESP, CLI and config use, and checks it:
///
///   "30s"                        fixed
///   "10s,1m,10m"                 steps, the last repeats
///   "exponential:1s:2:1h:0.2"    base, factor, cap and jitter; what is left out at the end has its default
///
/// Factor and jitter may have up to six decimals. The error's detail is like parse_duration()'s.
Result<Backoff> parse_backoff(std::string_view text);

/// The text that parse_backoff() reads back to the same value. REQUIRES: check_backoff(backoff), and factor
/// and jitter of no more than six decimals, as parse_backoff() gives them; others are rounded.
std::string format_backoff(const Backoff& backoff);

}  // namespace delayq
