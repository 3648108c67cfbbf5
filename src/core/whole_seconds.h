#pragma once

#include <algorithm>
#include <cstdint>

#include "core/job.h"
#include "core/time.h"

/// Times as protocols have them that count in seconds; what is past the second is cut.
namespace delayq {

constexpr int64_t to_unix_seconds(Moment moment) {
  return std::chrono::floor<std::chrono::seconds>(moment.time_since_epoch()).count();
}

/// From the push of a job to its due time: for the first attempt, what was asked for.
constexpr int64_t delay_seconds(const Job& job) {
  return std::chrono::floor<std::chrono::seconds>(std::max(job.due - job.pushed, Millis::zero())).count();
}

}  // namespace delayq
