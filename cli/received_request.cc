#include "cli/received_request.h"

#include <algorithm>
#include <charconv>
#include <strings.h>

#include "core/ascii.h"
#include "core/limits.h"

namespace delayq::cli {

namespace {

constexpr size_t kMostHeaderBytes = size_t{64} << 10;
constexpr size_t kMostBodyBytes = Limits::kMaxBodyBytes + (size_t{1} << 20);
/// With the lines around the chunks, and whatever somebody writes in them.
constexpr size_t kMostChunkedBytes = 2 * kMostBodyBytes;

bool equals(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

/// The text up to the line's end, which is taken away with it. REQUIRES: there is one.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find("\r\n");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 2);
  return line;
}

bool parse_number(std::string_view text, int base, size_t& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  return error == std::errc{} && stop == end && !text.empty();
}

bool parse_start_line(std::string_view line, ReceivedRequest& request) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == 0 || last <= first + 1) return false;
  request.method = line.substr(0, first);
  request.target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  request.keeps_alive = version == "HTTP/1.1";
  return version == "HTTP/1.1" || version == "HTTP/1.0";
}

/// What the headers say of the body.
struct Framing {
  size_t length = 0;
  bool is_chunked = false;
  bool asks_to_continue = false;
  bool is_broken = false;
};

void note(std::string_view name, std::string_view value, ReceivedRequest& request, Framing& framing) {
  switch (name.size()) {
    case 6:
      if (equals(name, "expect")) framing.asks_to_continue = equals(value, "100-continue");
      break;
    case 10:
      if (!equals(name, "connection")) break;
      if (equals(value, "close")) request.keeps_alive = false;
      if (equals(value, "keep-alive")) request.keeps_alive = true;
      break;
    case 14:
      if (!equals(name, "content-length")) break;
      framing.is_broken |= !parse_number(value, 10, framing.length) || framing.length > kMostBodyBytes;
      break;
    case 17:
      if (!equals(name, "transfer-encoding")) break;
      framing.is_chunked = equals(value, "chunked");
      framing.is_broken |= !framing.is_chunked;
      break;
    default:
      break;
  }
}

Reading read_chunks(std::string_view& input, std::string& body) {
  for (;;) {
    if (input.find("\r\n") == std::string_view::npos) return Reading::kPartial;
    const std::string_view line = take_line(input);
    size_t length = 0;
    if (!parse_number(trimmed(line.substr(0, line.find(';'))), 16, length)) return Reading::kBroken;
    if (length > kMostBodyBytes || body.size() + length > kMostBodyBytes) return Reading::kBroken;
    if (length == 0) break;
    if (input.size() < length + 2) return Reading::kPartial;
    body += input.substr(0, length);
    if (input.substr(length, 2) != "\r\n") return Reading::kBroken;
    input.remove_prefix(length + 2);
  }
  for (;;) {  // what follows the last chunk, up to an empty line
    if (input.find("\r\n") == std::string_view::npos) return Reading::kPartial;
    if (take_line(input).empty()) return Reading::kWhole;
  }
}

}  // namespace

std::string_view ReceivedRequest::header(std::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const auto& each) { return equals(each.first, name); });
  return found == headers.end() ? std::string_view() : found->second;
}

Reading read_request(std::string_view& input, ReceivedRequest& request) {
  const size_t end = input.find("\r\n\r\n");
  if (std::min(end, input.size()) > kMostHeaderBytes) return Reading::kBroken;
  if (end == std::string_view::npos) return Reading::kPartial;
  std::string_view head = input.substr(0, end + 2);
  std::string_view rest = input.substr(end + 4);
  if (!parse_start_line(take_line(head), request)) return Reading::kBroken;
  request.headers.clear();
  Framing framing;
  while (!head.empty()) {
    const std::string_view line = take_line(head);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return Reading::kBroken;
    const std::string_view value = trimmed(line.substr(colon + 1));
    request.headers.emplace_back(line.substr(0, colon), value);
    note(line.substr(0, colon), value, request, framing);
  }
  if (framing.is_broken) return Reading::kBroken;
  const Reading partial =
      framing.asks_to_continue && rest.empty() ? Reading::kAsksToContinue : Reading::kPartial;
  if (framing.is_chunked) {
    request.unchunked.clear();
    const size_t came = rest.size();
    const Reading reading = read_chunks(rest, request.unchunked);
    if (reading == Reading::kPartial && came > kMostChunkedBytes) return Reading::kBroken;
    if (reading != Reading::kWhole) return reading == Reading::kPartial ? partial : reading;
    request.body = request.unchunked;
  } else {
    if (rest.size() < framing.length) return partial;
    request.body = rest.substr(0, framing.length);
    rest.remove_prefix(framing.length);
  }
  input = rest;
  return Reading::kWhole;
}

}  // namespace delayq::cli
