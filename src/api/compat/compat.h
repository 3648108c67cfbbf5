#pragma once

#include <string>
#include <utility>

#include "api/http/dialect.h"
#include "core/error.h"

/// The APIs of three other delay queues, as their documents describe them: paths, fields, texts.
/// docs/reference/compat.md has every call. The queue decides everything else, as for every other API.
///
/// What holds for all three:
///  - Unknown fields are ignored, as in the originals. Known fields must have the right type.
///  - A refusal is in the API's own form. Its HTTP status is 200 where the original could have said the same
///    (bad fields, an id that is taken, no such job); what the originals do not have (tokens, limits,
///    overload, a path that is not there) has the status that HTTP has for it.
namespace delayq::compat {

/// /delay-queue/api/jobs/...: {"code","message","data"}.
const http::Dialect& go_delay_queue();
/// /job: {"success","message","data"}.
const http::Dialect& callback();
/// /delayq/...: {"code","info","data"}.
const http::Dialect& delayq();

// Code that the three APIs share.

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
