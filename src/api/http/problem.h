#pragma once

#include <string_view>

#include "core/error.h"
#include "json/writer.h"

namespace delayq::http {

/// The same error, where the request has another name for the field than the queue: "ids" for "id". Other
/// errors are returned as they are.
Error renamed(Error error, std::string_view queues, std::string_view requests);

/// The members by which every problem is told, be it the whole answer or one result of many: status, code,
/// detail, and where there is something to say, field, known and retry_after_ms.
void write_problem(json::Writer& json, const Error& error, int status);
inline void write_problem(json::Writer& json, const Error& error) {
  write_problem(json, error, traits_of(error.code).http_status);
}

/// The whole answer, as RFC 9457 has it. `status` may say more than the error's code does.
void write_problem_document(json::Writer& json, const Error& error, int status);

std::string_view reason_phrase(int status);

}  // namespace delayq::http
