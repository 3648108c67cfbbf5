#include "api/compat/wording.h"

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

}  // namespace delayq::compat
