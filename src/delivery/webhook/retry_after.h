#pragma once

#include <optional>
#include <string_view>

#include "delivery/webhook/call.h"

namespace delayq::webhook {

/// The value of a `Retry-After` header: seconds ("120"), or a date in one of HTTP's three forms. Nothing for
/// anything else: then it is as if the header were not there. More than a year is a year.
std::optional<RetryAfter> parse_retry_after(std::string_view value);

}  // namespace delayq::webhook
