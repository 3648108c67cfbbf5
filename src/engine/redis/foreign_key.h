#pragma once

#include <string_view>

#include "core/error.h"

namespace delayq::redis {

/// What Redis said of a call. When a key was not of the type that this program gives it, as an operator can
/// use it: kUnavailable, and what to do. `key` is the one that was asked about; empty: one of those below
/// `prefix`. `prefix_name` is where the prefix was chosen.
Error explain_foreign_key(Error error, std::string_view key, std::string_view prefix,
                          std::string_view prefix_name);

}  // namespace delayq::redis
