#include "api/http/response.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <zlib.h>

#include "core/text.h"

namespace delayq::http {

namespace {

/// Below this size most of a response is its head.
constexpr size_t kWorthCompressing = 4096;

/// Returns nothing when there is not enough memory: then the body is sent as it is.
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

/// What gzip() was given. REQUIRES: `packed` is a constant of this program.
std::string gunzip(std::string_view packed) {
  constexpr int kGzip = 15 + 16;
  constexpr size_t kStep = 64 * 1024;
  z_stream stream{};
  std::string out;
  if (inflateInit2(&stream, kGzip) != Z_OK) return out;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // zlib does not write there
  stream.avail_in = static_cast<uInt>(packed.size());
  for (int result = Z_OK; result == Z_OK;) {
    const size_t before = out.size();
    out.resize(before + kStep);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = kStep;
    result = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  return out;
}

void append_number(std::string& out, size_t number) {
  std::array<char, 24> digits;
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), static_cast<size_t>(end - digits.data()));
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
  const bool has_body = response.status != 304;
  std::optional<std::string> other;
  if (response.is_gzipped && !manner.may_compress) other = gunzip(response.body);
  if (!response.is_gzipped && manner.may_compress && response.body.size() >= kWorthCompressing)
    other = gzip(response.body);
  const std::string& body = other ? *other : response.body;
  const bool is_compressed = response.is_gzipped != other.has_value();
  out += "HTTP/1.1 ";
  append_number(out, static_cast<size_t>(response.status));
  out += ' ';
  out += reason_phrase(response.status);
  if (has_body) {
    out += "\r\nContent-Type: ";
    out += response.content_type;
    out += "\r\nContent-Length: ";
    append_number(out, body.size());
  }
  out += "\r\nCache-Control: ";
  out += response.cache;
  out += "\r\nX-Content-Type-Options: nosniff\r\n";
  out += response.headers;
  if (has_body && is_compressed) out += "Content-Encoding: gzip\r\n";
  if (is_compressed || response.is_gzipped) out += "Vary: Accept-Encoding\r\n";
  if (manner.closes) out += "Connection: close\r\n";
  out += "\r\n";
  if (!manner.leaves_out_body) out += body;
}

Error renamed(Error error, std::string_view queues, std::string_view requests) {
  if (error.field != queues) return error;
  error.field = requests;
  error.detail = fmt::format("{}: {}", requests, error.detail);
  return error;
}

void write_problem(json::Writer& json, const Error& error, int status) {
  json.key("status").number(uint64_t{static_cast<unsigned>(status)});
  json.key("code").text(traits_of(error.code).name).key("detail").text(error.detail);
  if (!error.field.empty()) json.key("field").text(error.field);
  if (error.known) {
    json.key("known").begin_array();
    for (const std::string_view name : *error.known) json.text(name);
    json.end_array();
  }
  if (error.retry_after > Millis::zero())
    json.key("retry_after_ms").number(static_cast<uint64_t>(error.retry_after.count()));
}

void write_problem_document(json::Writer& json, const Error& error, int status) {
  json.begin_object().key("type").text("about:blank").key("title").text(reason_phrase(status));
  write_problem(json, error, status);
  json.end_object();
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Payload Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 507:
      return "Insufficient Storage";
    default:
      return "Unknown";
  }
}

}  // namespace delayq::http
