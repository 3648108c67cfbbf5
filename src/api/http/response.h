#pragma once

#include <string>
#include <string_view>

namespace delayq::http {

/// What goes back, before it is bytes.
struct Response {
  int status = 200;
  std::string_view content_type = "application/json";  ///< a constant
  std::string headers;                                 ///< further ones, each with its line's end
  std::string body;
};

/// How it goes back.
struct Manner {
  bool may_compress = false;     ///< its client understands gzip; what is small is sent as it is
  bool leaves_out_body = false;  ///< it was asked for with HEAD
  bool closes = false;           ///< nothing comes behind it
};

/// Appends the response as HTTP/1.1 has it.
void write_response(std::string& out, const Response& response, const Manner& manner);

/// Whether an Accept-Encoding header says so.
bool accepts_gzip(std::string_view accept_encoding);

}  // namespace delayq::http
