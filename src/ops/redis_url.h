#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace delayq {

/// A prefix of keys: without braces, which would decide where a Cluster keeps them.
Status check_redis_prefix(std::string_view text);

/// A URL of Redis for those who look at it: with stars for the password.
std::string without_password(std::string_view url);

}  // namespace delayq
