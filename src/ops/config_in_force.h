#pragma once

#include <span>
#include <string>

#include "ops/config.h"

namespace delayq {

/// What is in force after all that was said, the last about a key being the one that counts: a file that says
/// the same, in which each value has where it came from behind it. Of topics, what they say themselves.
std::string config_in_force(std::span<const Said> said);

}  // namespace delayq
