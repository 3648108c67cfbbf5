#pragma once

#include <string>
#include <utility>

#include "api/http/response.h"
#include "core/error.h"

/// Code that the three APIs share.
namespace delayq::compat {

/// The HTTP status of a refusal; `status` as in http::Dialect::refusal.
inline int status_of(const Error& error, int status) {
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

/// An answer with the content type that the originals' web framework sends.
inline http::Response answer(std::string body, int status = 200) {
  return {status, "application/json; charset=utf-8", {}, std::move(body)};
}

}  // namespace delayq::compat
