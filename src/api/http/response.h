#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "json/writer.h"

namespace delayq::http {

/// A response before it is written as bytes.
struct Response {
  int status = 200;
  std::string_view content_type = "application/json";  ///< a constant
  std::string headers;                                 ///< further ones, each with its line's end
  std::string body;
  std::string_view cache = "no-store";  ///< Cache-Control; a constant
  bool is_gzipped =
      false;  ///< the body is compressed already; it is sent plain to clients that do not accept that
};

/// How a response is written.
struct Manner {
  bool may_compress = false;     ///< the client accepts gzip; small bodies are not compressed
  bool leaves_out_body = false;  ///< the request was a HEAD
  bool closes = false;           ///< it is the last one on its connection
};

/// Appends the response in HTTP/1.1.
void write_response(std::string& out, const Response& response, const Manner& manner);

/// Whether an Accept-Encoding header allows gzip.
bool accepts_gzip(std::string_view accept_encoding);

// ---- problems

/// The same error, where the request has another name for the field than the queue: "ids" for "id". Other
/// errors are returned as they are.
Error renamed(Error error, std::string_view queues, std::string_view requests);

/// Writes the members of a problem, which is a whole answer or one result of many: status, code and detail;
/// and field, known and retry_after_ms where the error has them.
void write_problem(json::Writer& json, const Error& error, int status);
inline void write_problem(json::Writer& json, const Error& error) {
  write_problem(json, error, traits_of(error.code).http_status);
}

/// The whole answer, as in RFC 9457. `status` may be more exact than the error's code.
void write_problem_document(json::Writer& json, const Error& error, int status);

std::string_view reason_phrase(int status);

}  // namespace delayq::http
