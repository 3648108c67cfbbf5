#pragma once

#include <string>
#include <string_view>

#include "delivery/webhook/call.h"
#include "queue/job_options.h"
#include "queue/settings.h"
#include "signing/signature.h"

namespace delayq::webhook {

/// Where a job's call goes and what it looks like: the job's own word, then its topic's, then the format's.
/// The views are those of the options and settings.
struct Route {
  std::string_view url;      ///< empty: nobody has said where
  bool is_jobs_own = false;  ///< the job said where, not its topic
  std::string_view method;   ///< POST, and PUT for the callback API, where nobody says otherwise
  CallbackFormat format = CallbackFormat::kWebhook;
};
Route route_of(const JobOptions& options, const EffectiveSettings& topic);

/// The id of a job's message: the same for every attempt, and different when a job of that id is pushed
/// again. Made of the job alone, so that nothing has to be kept.
std::string message_id(const Job& job);

/// The request. `signer` signs what the receiver will get; a format without signatures has none. Timeouts are
/// left to the dispatcher.
Call make_call(const Job& job, const JobOptions& options, const Route& route, signing::Signer& signer,
               Moment now);

}  // namespace delayq::webhook
