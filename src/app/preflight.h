#pragma once

#include <string>
#include <vector>

#include "ops/config.h"

namespace delayq {

/// What would keep a server with this configuration from starting on this machine: files that cannot be read
/// or written, addresses that are not here, topics whose jobs could not leave. Changes nothing. Each error
/// begins with its key ("tls.key: ...") and says what to do. Things that are in use only at the moment (a
/// port, a lock, a pid file), and stored data, are not checked.
std::vector<std::string> check_start(const Config& config);

}  // namespace delayq
