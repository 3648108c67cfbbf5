#include "api/http/dialect.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <zlib.h>

#include <fmt/format.h>

#include "api/http/conversation.h"
#include "core/encoding.h"
#include "core/text.h"

namespace delayq::http {

namespace {

Result<std::string> unescape(std::string_view text, bool plus_is_space) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return invalid(fmt::format("a broken %-escape in {}", quote(text)));
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

/// Removes from `text`, and returns, what is before `separator`; all of it if there is none.
std::string_view take_until(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view front = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return front;
}

/// Whether the path is the route's; then `names` gets the parts that the route leaves open.
bool matches(std::string_view route, const std::vector<std::string>& path,
             std::vector<std::string_view>& names) {
  names.clear();
  for (const std::string& part : path) {
    if (!route.starts_with('/')) return false;
    route.remove_prefix(1);
    const std::string_view wanted = route.substr(0, route.find('/'));
    if (wanted.starts_with('{')) {
      names.emplace_back(part);
    } else if (wanted != part) {
      return false;
    }
    route.remove_prefix(wanted.size());
  }
  return route.empty();
}

/// Whether a request's method is the route's; otherwise the route's is added to `allowed`.
bool takes(std::string_view routes_method, std::string_view method, std::string& allowed) {
  const bool is_get = routes_method == "GET";
  if (routes_method == method || (is_get && method == "HEAD")) return true;
  allowed += fmt::format("{}{}{}", allowed.empty() ? "" : ", ", routes_method, is_get ? ", HEAD" : "");
  return false;
}

}  // namespace

// ---- Target

std::optional<std::string_view> Target::find(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

Result<Target> parse_target(std::string_view text) {
  if (!text.starts_with('/')) return invalid("the target is not a path");
  constexpr size_t kUsual = 6;
  Target target;
  target.path.reserve(kUsual);
  std::string_view query = text;
  std::string_view path = take_until(query, '?').substr(1);
  const bool is_plain = path.find('%') == std::string_view::npos;
  while (!path.empty()) {
    const std::string_view part = take_until(path, '/');
    if (is_plain) {
      target.path.emplace_back(part);
      continue;
    }
    Result<std::string> segment = unescape(part, false);
    if (!segment.ok()) return segment.error();
    target.path.push_back(std::move(*segment));
  }
  while (!query.empty()) {
    std::string_view pair = take_until(query, '&');
    if (pair.empty()) continue;
    Result<std::string> key = unescape(take_until(pair, '='), true);
    Result<std::string> value = unescape(pair, true);
    if (!key.ok()) return key.error();
    if (!value.ok()) return value.error();
    target.query.emplace_back(std::move(*key), std::move(*value));
  }
  return target;
}

// ---- Responder

Responder::Responder(std::shared_ptr<Conversation> conversation, const Dialect& dialect,
                     std::shared_ptr<Held> held)
    : conversation_(std::move(conversation)),
      dialect_(&dialect),
      place_(conversation_->reserve()),
      now_(conversation_->now_),
      held_(std::move(held)) {}

Queue& Responder::queue() const { return conversation_->queue_; }

void Responder::send(Response response) const { conversation_->send(place_, std::move(response)); }

void Responder::send_json(absl::FunctionRef<int(json::Writer&)> write) const {
  constexpr size_t kUsual = 240;
  Response response;
  response.body.reserve(kUsual);
  json::Writer json(response.body);
  response.status = write(json);
  send(std::move(response));
}

void Responder::refuse(const Error& error) const { refuse(error, dialect_->refusal(error, 0)); }

void Responder::refuse(const Error& error, Response response) const {
  conversation_->send_refusal(place_, error, std::move(response));
}

void Responder::pop(const PopRequest& request, Reply<PopAnswer> reply) const {
  const Status status = conversation_->ask_for_jobs(now_, request, place_, std::move(reply));
  if (!status.ok()) refuse(status.error());
}

Status Responder::check(Scopes scopes, std::string_view topic) const {
  return conversation_->front_.access.check(held_->caller, scopes, topic);
}

void Responder::find(std::string_view id, Reply<std::optional<FoundJob>> reply) const {
  queue().find(now_, id, conversation_->front_.access.topics_of(held_->caller), std::move(reply));
}

void Responder::find_kept_too(std::string_view id, Reply<std::optional<FoundJob>> reply) const {
  queue().find_kept_too(now_, id, conversation_->front_.access.topics_of(held_->caller), std::move(reply));
}

// ---- Call

Queue& Call::queue() const { return conversation.queue_; }
Moment Call::now() const { return conversation.now_; }
Endpoint& Call::host() const { return conversation.host_; }
const api::Access& Call::access() const { return conversation.front_.access; }
const api::Caller& Call::caller() const { return conversation.caller_; }

Result<Fields> Call::fields() const {
  if (request.method == "POST") return Fields::of_json(request.body);
  return Fields(target.query);
}

Responder Call::accept() const { return {conversation.self(), dialect, nullptr}; }

Responder Call::accept_steps() const {
  auto held = std::make_shared<Responder::Held>(Responder::Held{caller(), queue().begin_steps()});
  return {conversation.self(), dialect, std::move(held)};
}

void Call::receive(std::shared_ptr<PushStream> stream, const Responder& responder) const {
  conversation.receive(std::move(stream), responder.place_);
}

void Call::begin_stream(std::shared_ptr<Stream> stream) const {
  conversation.begin_stream(std::move(stream));
}

// ---- Dialect

bool Dialect::owns(std::string_view target) const {
  if (root.empty()) return true;
  if (!target.starts_with(root)) return false;
  return target.size() == root.size() || target[root.size()] == '/' || target[root.size()] == '?';
}

Dialect::Match Dialect::find(std::string_view method, const Target& target) const {
  Match match;
  bool is_literal = false;
  for (const Route& route : routes) {
    if (!matches(route.path, target.path, match.names)) continue;
    if (is_literal && !match.names.empty()) break;
    is_literal |= match.names.empty();
    if (!takes(route.method, method, match.allowed)) continue;
    match.route = &route;
    return match;
  }
  return match;
}

namespace {

/// Below this size most of a response is its head.
constexpr size_t kWorthCompressing = 4096;
/// All other clients wait while an answer is compressed: some 8 ms for each MiB.
constexpr size_t kMostCompressed = size_t{1} << 20;

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
  if (!response.is_gzipped && manner.may_compress && response.body.size() >= kWorthCompressing &&
      response.body.size() <= kMostCompressed)
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
