#include "api/http/response.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <zlib.h>

#include <fmt/format.h>

#include "api/http/problem.h"

namespace delayq::http {

namespace {

/// Below this the head is most of a response.
constexpr size_t kWorthCompressing = 4096;

/// Nothing when there is no memory for it: then it goes as it is.
std::optional<std::string> gzip(std::string_view text) {
  constexpr int kGzip = 15 + 16;  // the largest window, with gzip's header
  constexpr int kMemory = 8;
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return std::nullopt;
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib does not write there
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return result == Z_STREAM_END ? std::optional(std::move(out)) : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

bool accepts_gzip(std::string_view accept_encoding) {
  while (!accept_encoding.empty()) {
    const size_t end = std::min(accept_encoding.find(','), accept_encoding.size());
    const std::string_view item = accept_encoding.substr(0, end);
    accept_encoding.remove_prefix(std::min(end + 1, accept_encoding.size()));
    const size_t semicolon = std::min(item.find(';'), item.size());
    if (trimmed(item.substr(0, semicolon)) != "gzip") continue;
    const std::string_view weight = trimmed(item.substr(std::min(semicolon + 1, item.size())));
    return weight.find_first_not_of("q=0. ") != std::string_view::npos || weight.empty();
  }
  return false;
}

void write_response(std::string& out, const Response& response, const Manner& manner) {
  std::optional<std::string> compressed;
  if (manner.may_compress && response.body.size() >= kWorthCompressing) compressed = gzip(response.body);
  const std::string& body = compressed ? *compressed : response.body;
  fmt::format_to(std::back_inserter(out),
                 "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
                 "X-Content-Type-Options: nosniff\r\n{}{}{}\r\n",
                 response.status, reason_phrase(response.status), response.content_type, body.size(),
                 response.headers, compressed ? "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n" : "",
                 manner.closes ? "Connection: close\r\n" : "");
  if (!manner.leaves_out_body) out += body;
}

}  // namespace delayq::http
