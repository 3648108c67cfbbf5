#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "delivery/webhook/call.h"
#include "queue/delivery.h"
#include "queue/job_options.h"
#include "queue/settings.h"
#include "signing/signature.h"

namespace delayq::webhook {

/// Where a job's call goes and what it looks like. What the job says overrides what its topic says, and that
/// overrides the default of the format.
/// The views are those of the options and settings.
struct CallRoute {
  std::string_view url;      ///< empty: neither the job nor its topic has one
  bool is_jobs_own = false;  ///< the URL is the job's, not its topic's
  std::string_view method;   ///< by default POST, and PUT for the callback API
  CallbackFormat format = CallbackFormat::kWebhook;
};
CallRoute route_of(const JobOptions& options, const EffectiveSettings& topic);

/// The id of a job's message: the same for every attempt, and different when a job of that id is pushed
/// again. Computed from the job alone, so that nothing must be stored.
std::string message_id(const Job& job);

/// The request, without timeouts. `signer` signs what the receiver will get; a format without signatures has
/// none.
Call make_call(const Job& job, const JobOptions& options, const CallRoute& route, signing::Signer& signer,
               Moment now);

/// The fate of a job whose call has ended. The queue decides how often and when it is tried again;
/// `retry_after` is the delay that the receiver asked for.
enum class CallFate : uint8_t { kDone, kFailed, kDead };

struct CallOutcome {
  CallFate fate = CallFate::kFailed;
  std::optional<Millis> retry_after{};
  /// The host itself failed, so the next call to it is likely to fail as well.
  bool host_failed = false;
  /// Kept with the job: "200 in 12 ms: first bytes of the answer".
  std::string text;
};

/// The longest wait that a receiver may ask for.
inline constexpr Millis kLongestRetryAfter = std::chrono::hours{24};

/// 2xx is a success (for the callback API only with the body `ok`), 410 makes the job dead, and everything
/// else, redirects included, has failed. Retry-After counts with 429 and 503.
CallOutcome outcome_of(const CallResult& result, CallbackFormat format, Moment now);

}  // namespace delayq::webhook
