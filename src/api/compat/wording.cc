#include "api/compat/wording.h"

#include <algorithm>
#include <chrono>

namespace delayq::compat {

int status_of(const Error& error, int status) {
  if (status != 0) return status;
  switch (error.code) {
    case ErrorCode::kInvalid:
    case ErrorCode::kConflict:
    case ErrorCode::kNotFound:
    case ErrorCode::kStaleLease:
      return 200;
    default:
      return traits_of(error.code).http_status;
  }
}

http::Response answer(std::string body, int status) {
  return {status, "application/json; charset=utf-8", {}, std::move(body)};
}

int64_t unix_seconds(Moment moment) {
  return std::chrono::floor<std::chrono::seconds>(moment.time_since_epoch()).count();
}

int64_t delay_of(const Job& job) {
  return std::chrono::floor<std::chrono::seconds>(std::max(job.due - job.pushed, Millis::zero())).count();
}

}  // namespace delayq::compat
