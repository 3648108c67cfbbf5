#pragma once

#include "core/result.h"
#include "ops/config.h"

namespace delayq {

/// Sends what spdlog's default logger is told to where `log` says, as lines of UTC time, level and message:
/// "2030-01-31T08:00:00.000Z info listening on ...". From info on a line is flushed at once. To be called
/// before other threads log; kUnavailable when the file cannot be opened, and then the logger is as it was.
Status start_log(const Config::Log& log);

}  // namespace delayq
