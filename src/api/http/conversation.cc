#include "api/http/conversation.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/http/v1.h"
#include "core/text.h"

namespace delayq::http {

namespace {

constexpr size_t kMostUnanswered = 1024;
/// The body of a refused request is read and dropped up to this size; above it the connection is closed.
constexpr uint64_t kMostPassedOver = 64 * 1024;

/// Whether a browser sends this for a page of another site: any page can make it send to a local address. An
/// <img> has no Origin, and may name a call that changes something.
bool is_foreign(const net::HttpRequest& request) {
  if (request.fetch_site == "cross-site" || request.fetch_site == "same-site") return true;
  if (request.origin.empty()) return false;
  const size_t scheme = request.origin.find("://");
  return scheme == std::string_view::npos ||
         lowered(request.origin.substr(scheme + 3)) != lowered(request.host);
}

/// What follows "Bearer "; empty without it.
std::string_view secret_of(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size()) return {};
  for (size_t i = 0; i < kScheme.size(); ++i) {
    if (to_lower(authorization[i]) != kScheme[i]) return {};
  }
  return authorization.substr(kScheme.size());
}

/// The path without the query, which may contain anything.
std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

constexpr size_t kLongestKey = 255;

Error conflict(std::string_view why, Millis retry_after) {
  return about_field("Idempotency-Key",
                     {ErrorCode::kConflict, {}, fmt::format("Idempotency-Key: {}", why), retry_after});
}

}  // namespace

Conversation::Conversation(Endpoint& host, net::Connection& connection, net::HttpLimits limits)
    : api::Conversation(host.queue, host.clock, *host.front, connection, kMostUnanswered),
      host_(host),
      reader_(limits) {
  bytes_per_byte_ = api::kBytesPerByteInJson;
}

bool Conversation::wants_input() const {
  return api::Conversation::wants_input() && stream_ == nullptr &&
         (pushes_ == nullptr || !pushes_->is_busy());
}

size_t Conversation::read(std::string_view input) {
  using Outcome = net::HttpReader::Outcome;
  now_ = clock_();
  const Queue::InOrder guard = in_order();
  std::string_view rest = input;
  // A request without a body is complete with its head, so it runs at once.
  bool is_whole = false;
  while (is_whole || wants_input()) {
    is_whole = false;
    switch (reader_.read(rest)) {
      case Outcome::kPartial:
        return input.size() - rest.size();
      case Outcome::kHead:
        begin_request(reader_.request());
        is_whole = !reader_.request().is_chunked && reader_.request().content_length.value_or(0) == 0;
        break;
      case Outcome::kBody:
        if (keyed_) keyed_->digest.add(reader_.request().body);
        if (pushes_ != nullptr) pushes_->take(now_, reader_.request().body);
        break;
      case Outcome::kRequest:
        end_request(reader_.request());
        reader_.forget_request();
        break;
      case Outcome::kBroken: {
        const bool is_too_large = reader_.status() == 413 || reader_.status() == 431;
        const ErrorCode code = is_too_large ? ErrorCode::kTooLarge : ErrorCode::kInvalid;
        give_up(about_field(reader_.error_field(), {code, {}, reader_.error()}), reader_.status());
        return input.size();
      }
    }
  }
  return input.size() - rest.size();
}

void Conversation::time_out() {
  constexpr int kRequestTimeout = 408;
  give_up(invalid("the request did not come whole in time"), kRequestTimeout);
}

bool Conversation::end_input() {
  // A push stream that has begun will never be complete. Its answer says so, and its key may be used again.
  if (pushes_ != nullptr) give_up(invalid("the request did not come whole"), 400);
  return api::Conversation::end_input();
}

void Conversation::hang_up() {
  if (pushes_ != nullptr) asked_.erase(pushes_place_);  // it will not be answered
  pushes_ = nullptr;                                    // it refers to this object
  keyed_.reset();
  api::Conversation::hang_up();
}

void Conversation::give_up(const Error& error, int status) {
  is_closing_ = is_over_ = true;
  keyed_.reset();
  if (pushes_ != nullptr) return std::exchange(pushes_, nullptr)->give_up(error);
  refuse_current(error, status, {});
}

void Conversation::begin_request(const net::HttpRequest& request) {
  ++front_.traffic[ProtocolKind::kHttp].requests;
  current_ = Current{&v1(), {}, {}, {}};
  if (!request.keep_alive) is_closing_ = true;
  if (Status status = admit(request); !status.ok()) {
    current_->refusal = status.error();
    pass_over_body(request);
    if (!is_over_) return;
    return turn_away(status.error(), traits_of(status.error().code).http_status);
  }
  // Any client may send a request that needs no token: nothing of its body is kept.
  if (is_open_to_all()) reader_.set_body(net::HttpReader::Body::kDropped);
  if (reader_.expects_to_be_asked() && replies_.waiting() == 0) {
    replies_.output() += "HTTP/1.1 100 Continue\r\n\r\n";
    connection_->on_output();
  }
  if (!comes_in_pieces()) return;
  reader_.set_body(net::HttpReader::Body::kPieces);
  call_route(request);
}

void Conversation::pass_over_body(const net::HttpRequest& request) {
  keyed_.reset();
  reader_.set_body(net::HttpReader::Body::kDropped);
  if (request.content_length.value_or(request.is_chunked ? kMostPassedOver + 1 : 0) > kMostPassedOver)
    is_closing_ = is_over_ = true;
}

/// Refuses a request for another host name: a web page may have its own name resolve to this address. Where
/// tokens are needed this check is not, since a page has no token. Health checks are not checked either: load
/// balancers send them with any name. Nor is a request without a Host: a browser always sends one.
Status Conversation::check_host(const net::HttpRequest& request) const {
  if (!front_.access.is_open() || (is_open_to_all() && request.origin.empty())) return {};
  if ((request.host.empty() && request.origin.empty()) || host_.names.accepts(request.host)) return {};
  return about_field(
      "Host", Error{ErrorCode::kForbidden,
                    {},
                    fmt::format("Host: {} is not a name of this server; to allow it, add it to server.hosts",
                                quote(request.host))});
}

/// The order of the checks matters: an unknown client does not learn which paths and topics exist.
Status Conversation::admit(const net::HttpRequest& request) {
  const api::Access& access = front_.access;
  for (const Dialect* dialect : host_.dialects) {
    if (dialect->owns(request.target)) current_->dialect = dialect;
  }
  if (is_foreign(request) && !current_->dialect->is_public)
    return Error{ErrorCode::kForbidden, {}, "requests of pages from other places are not answered", {}};
  if (!access.is_open()) caller_ = access.identify(secret_of(request.authorization));
  Result<Target> target = parse_target(request.target);
  if (target.ok()) {
    current_->target = std::move(*target);
    current_->match = current_->dialect->find(request.method, current_->target);
  }
  if (Status status = check_host(request); !status.ok()) return status;
  if (!is_open_to_all()) {
    if (Status status = access.check_scope(caller_, kAnyScope); !status.ok()) return status;
    if (Status status = access.count_request(caller_, now_); !status.ok()) return status;
  }
  if (!target.ok()) return target.error();
  const Dialect::Match& match = current_->match;
  if (match.route == nullptr) {
    if (match.allowed.empty())
      return Error{ErrorCode::kNotFound, {}, "there is no such path; see /openapi.yaml", {}};
    return invalid(fmt::format("this path understands {}", match.allowed));
  }
  if (is_open_to_all()) return {};
  switch (match.route->reach) {
    case api::Reach::kNone:
      return access.check_scope(caller_, match.route->scopes);
    case api::Reach::kTopic:
      return access.check(caller_, match.route->scopes, match.names[0]);
    case api::Reach::kAll:
      break;
  }
  return access.check_all(caller_, match.route->scopes);
}

void Conversation::end_request(const net::HttpRequest& request) {
  ++requests_;
  if (is_closing_) is_over_ = true;
  if (keyed_) end_keyed(request.body);
  if (pushes_ != nullptr) {
    pushes_->take(now_, request.body);
    std::exchange(pushes_, nullptr)->finish(now_);
  } else if (current_->refusal) {
    turn_away(*current_->refusal, traits_of(current_->refusal->code).http_status);
  } else if (!comes_in_pieces()) {
    call_route(request);
  }
  current_.reset();
}

void Conversation::call_route(const net::HttpRequest& request) {
  if (answer_again(request)) return;
  const Status status =
      route()->handle({*this, *current_->dialect, request, current_->target, current_->match.names});
  if (!status.ok() && comes_in_pieces()) pass_over_body(request);
  if (!status.ok()) turn_away(status.error(), 0);
  claim_.reset();
}

void Conversation::receive(std::shared_ptr<PushStream> stream, ReplyPlace place) {
  pushes_ = std::move(stream);
  pushes_place_ = place;
  pushes_->on_progress([self = weak_from_this()] {
    const auto here = std::static_pointer_cast<Conversation>(self.lock());
    if (here != nullptr && here->connection_ != nullptr) here->connection_->on_resume();
  });
}

// ---- a response that ends with the connection

void Conversation::begin_stream(std::shared_ptr<Stream> stream) {
  const ReplyPlace place = reserve();
  asked_.erase(place);
  replies_.fill(place, [](std::string& out) {
    out +=
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n";
  });
  connection_->on_output();
  stream_ = std::move(stream);
  host_.events.add(stream_);
  front_.lingering.insert(this);
}

bool Conversation::is_behind(size_t bytes) const {
  return replies_.waiting() > 0 || !replies_.output().empty() || connection_->unsent() > bytes;
}

void Conversation::check_again() {
  api::Conversation::check_again();
  if (stream_ == nullptr || stream_->may_go_on(front_.access, caller_)) return;
  is_over_ = true;
  if (connection_ != nullptr) connection_->on_output();
}

// ---- answers

size_t Conversation::most_answered() const {
  if (route() == nullptr || current_->refusal) return most_bytes(api::AnswerKind::kShort);
  if (route()->answer) return most_bytes(*route()->answer);
  // One result for each thing that the request names: the size of the request bounds that.
  constexpr size_t kResultPerByte = 8;
  return most_bytes(api::AnswerKind::kShort) + kResultPerByte * reader_.request().body.size();
}

Conversation::ReplyPlace Conversation::reserve() {
  const ReplyPlace place = replies_.reserve(most_answered());
  const net::HttpRequest& request = reader_.request();
  const bool takes_gzip = accepts_gzip(request.accept_encoding);
  const bool is_logged = front_.served != nullptr;
  if (is_closing_) last_place_ = place;
  const bool is_head = request.method == "HEAD";
  if (!takes_gzip && !is_logged && !is_head && claim_ == nullptr) return place;
  Asked asked;
  asked.is_head = is_head;
  asked.takes_gzip = takes_gzip;
  asked.claim = std::exchange(claim_, nullptr);
  if (is_logged) {
    asked.verb = request.method;
    asked.target = path_of(request.target);
    asked.token = caller_.name();
    asked.bytes_in = std::max<uint64_t>(request.body.size(), request.content_length.value_or(0));
    asked.begun = front_.stopwatch();
    asked.may_wait = route() != nullptr && route()->flow == Flow::kMayWait;
  }
  asked_.emplace(place, std::move(asked));
  return place;
}

void Conversation::turn_away(const Error& error, int status) {
  Served served = about("http", reader_.request().method);
  served.target = path_of(reader_.request().target);
  served.status = traits_of(error.code).http_status;
  tell_if_turned_away(served, error);
  const bool is_wrong_method = route() == nullptr && !current_->match.allowed.empty();
  if (!is_wrong_method) return refuse_current(error, status, {});
  refuse_current(error, 405, fmt::format("Allow: {}\r\n", current_->match.allowed));
}

void Conversation::refuse_current(const Error& error, int status, std::string headers) {
  const ReplyPlace place = reserve();
  Response response = (current_ ? *current_->dialect : v1()).refusal(error, status);
  response.headers = std::move(headers);
  send_refusal(place, error, std::move(response));
}

void Conversation::send_refusal(ReplyPlace place, const Error& error, Response response) {
  front_.traffic[ProtocolKind::kHttp].refuse(error.code);
  if (error.code == ErrorCode::kUnauthorized) response.headers += "WWW-Authenticate: Bearer\r\n";
  if (error.retry_after > Millis::zero()) {
    response.headers += fmt::format("Retry-After: {}\r\n",
                                    std::chrono::ceil<std::chrono::seconds>(error.retry_after).count());
  }
  send(place, std::move(response), traits_of(error.code).name);
}

void Conversation::send(ReplyPlace place, Response response, std::string_view code) {
  Asked asked;
  if (const auto found = asked_.find(place); found != asked_.end()) {
    asked = std::move(found->second);
    asked_.erase(found);
  }
  // Recorded even if the client has disconnected: it will send the request again.
  if (asked.claim != nullptr) {
    if (response.status < 300 && code.empty()) {
      host_.idempotency.finish(asked.claim, response);
    } else {
      host_.idempotency.abandon(asked.claim);
    }
  }
  if (!asked.verb.empty()) log(asked, response.status, code, response.body.size());
  if (connection_ == nullptr) return;
  replies_.fill(place, [&](std::string& out) {
    write_response(out, response, {asked.takes_gzip, asked.is_head, last_place_ == place});
  });
  connection_->on_output();
}

void Conversation::log(const Asked& asked, int status, std::string_view code, size_t bytes) {
  Served served = about("http", asked.verb);
  served.token = asked.token;
  served.target = asked.target;
  served.status = status;
  served.code = code;
  served.bytes_in = asked.bytes_in;
  served.bytes_out = bytes;
  served.took = std::chrono::duration_cast<std::chrono::microseconds>(front_.stopwatch() - asked.begun);
  served.may_wait = asked.may_wait;
  front_.served(served);
}

// ---- requests with an Idempotency-Key

bool Conversation::answer_again(const net::HttpRequest& request) {
  if (!request.idempotency_key || request.method != "POST") return false;
  std::string_view given = *request.idempotency_key;
  // The length is the one that was sent, as openapi.yaml says. A text in quotes is the same key without them.
  const bool is_too_long = given.size() > kLongestKey;
  if (given.size() >= 2 && given.front() == '"' && given.back() == '"')
    given = given.substr(1, given.size() - 2);
  if (given.empty() || is_too_long) {
    if (comes_in_pieces()) pass_over_body(request);
    refuse_current(
        invalid("Idempotency-Key",
                fmt::format("Idempotency-Key: expected 1 to {} characters, quotes included", kLongestKey)),
        0, {});
    return true;
  }
  std::string name = IdempotencyBook::name_of(caller_.name(), given);
  RequestDigest digest(request.target, request.content_type);
  if (!comes_in_pieces()) {
    digest.add(request.body);
    return answer_found(host_.idempotency.begin(now_, name, digest.finish()));
  }
  // Whether it is the same request is known when the whole body has arrived.
  IdempotencyBook::Found found = host_.idempotency.begin(now_, name, std::nullopt);
  if (found.outcome == IdempotencyBook::Outcome::kRunning) {
    pass_over_body(request);
    return answer_found(std::move(found));
  }
  claim_ = found.claim;
  keyed_.emplace(Keyed{std::move(name), std::move(digest), std::move(found.claim)});
  return found.outcome != IdempotencyBook::Outcome::kNew;
}

void Conversation::end_keyed(std::string_view last_piece) {
  Keyed keyed = std::move(*keyed_);
  keyed_.reset();
  keyed.digest.add(last_piece);
  const Sha256 digest = keyed.digest.finish();
  if (keyed.claim != nullptr) return IdempotencyBook::set_digest(keyed.claim, digest);
  IdempotencyBook::Found found = host_.idempotency.begin(now_, keyed.name, digest);
  if (found.outcome == IdempotencyBook::Outcome::kNew) {
    // The answer was forgotten while the body arrived, and the body was not kept.
    host_.idempotency.abandon(found.claim);
    return refuse_current(conflict("the answer has just been forgotten; send it again", Millis{1'000}), 0,
                          {});
  }
  answer_found(std::move(found));
}

bool Conversation::answer_found(IdempotencyBook::Found found) {
  switch (found.outcome) {
    case IdempotencyBook::Outcome::kNew:
      claim_ = std::move(found.claim);
      return false;
    case IdempotencyBook::Outcome::kKnown: {
      Response again = *found.answer;
      again.headers += "Idempotency-Replayed: true\r\n";
      send(reserve(), std::move(again));
      return true;
    }
    case IdempotencyBook::Outcome::kRunning:
      refuse_current(conflict("the first request with this key is still being worked on", Millis{1'000}), 0,
                     {});
      return true;
    case IdempotencyBook::Outcome::kAnother:
      break;
  }
  refuse_current(conflict("was used for another request", {}), 0, {});
  return true;
}

}  // namespace delayq::http
