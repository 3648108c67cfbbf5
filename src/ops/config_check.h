#pragma once

#include <string>
#include <vector>

#include "ops/config.h"

namespace delayq {

/// What is wrong with a configuration although each of its values is right: what is missing, or does not go
/// with something else. To be asked when the file, the environment and the command line have all been heard,
/// since each may say a part, and only when none of them had an error: what could not be read is missing,
/// too.
std::vector<std::string> check_config(const Config& config);

}  // namespace delayq
