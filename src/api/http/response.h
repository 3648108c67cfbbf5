#pragma once

#include <string>
#include <string_view>

namespace delayq::http {

/// What goes back, before it is bytes.
struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string headers;  ///< further ones, each with its line's end
  std::string body;
};

/// Appends the response as HTTP/1.1 has it. `may_compress`: its client understands gzip; what is small is
/// sent as it is.
void write_response(std::string& out, const Response& response, bool may_compress, bool closes);

/// Whether an Accept-Encoding header says so.
bool accepts_gzip(std::string_view accept_encoding);

std::string_view reason_phrase(int status);

}  // namespace delayq::http
