#pragma once

#include <string>

#include "cli/receiver.h"
#include "core/time.h"
#include "signing/signature.h"

namespace delayq::cli {

/// A call and what was made of it, as a line for a person: when, what, of which job, rightly signed or not,
/// and how its body begins.
///
///   08:00:00.000 POST /hooks/order  topic=order job-id=7 attempt=1  verified  {"uid":1}
std::string call_for_people(const ReceivedRequest& request, signing::Verdict verdict, Moment now);

/// All of it, as a line of JSON: {"at","method","path","verdict","headers":{...},"body" or "body_base64"}.
std::string call_for_programs(const ReceivedRequest& request, signing::Verdict verdict, Moment now);

}  // namespace delayq::cli
