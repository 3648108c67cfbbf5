#include "api/http/conversation.h"

#include <utility>

#include <fmt/format.h>

#include "core/text.h"

namespace delayq::http {

namespace {

constexpr size_t kMostUnanswered = 1024;
/// The body of a request that was refused is passed over up to this size; above it the connection is closed.
constexpr uint64_t kMostPassedOver = 64 * 1024;

/// Whether a browser asks on behalf of a page that is not ours: any page can make it send to a local address.
/// An <img> has no Origin, and may name a call that does something all the same.
bool is_foreign(const net::HttpRequest& request) {
  if (request.fetch_site == "cross-site" || request.fetch_site == "same-site") return true;
  if (request.origin.empty()) return false;
  const size_t scheme = request.origin.find("://");
  return scheme == std::string_view::npos ||
         lowered(request.origin.substr(scheme + 3)) != lowered(request.host);
}

/// What comes behind "Bearer "; empty when there is none.
std::string_view secret_of(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size()) return {};
  for (size_t i = 0; i < kScheme.size(); ++i) {
    if (to_lower(authorization[i]) != kScheme[i]) return {};
  }
  return authorization.substr(kScheme.size());
}

}  // namespace

Conversation::Conversation(Host& host, net::Connection& connection, net::HttpLimits limits)
    : api::Conversation(host.queue, host.clock, *host.front, connection, kMostUnanswered),
      host_(host),
      reader_(limits) {
  bytes_per_byte_ = api::kBytesPerByteInJson;
}

bool Conversation::wants_input() const {
  return api::Conversation::wants_input() && !watch_ && (batch_ == nullptr || !batch_->is_busy());
}

size_t Conversation::read(std::string_view input) {
  using Outcome = net::HttpReader::Outcome;
  now_ = clock_();
  const Queue::InOrder guard = in_order();
  std::string_view rest = input;
  // A request without a body is whole with its head. It is done at once: no further byte need come for it.
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
        if (batch_ != nullptr) batch_->take(now_, reader_.request().body);
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
  // A batch that has begun will never be whole: its answer, which has its place, is that; and its key may be
  // used again.
  if (batch_ != nullptr) give_up(invalid("the request did not come whole"), 400);
  return api::Conversation::end_input();
}

void Conversation::hang_up() {
  if (batch_ != nullptr) asked_.erase(batch_place_);  // it will not be answered any more
  batch_ = nullptr;                                   // which knows us, too
  keyed_.reset();
  api::Conversation::hang_up();
}

void Conversation::give_up(const Error& error, int status) {
  is_closing_ = is_over_ = true;
  keyed_.reset();
  if (batch_ != nullptr) return std::exchange(batch_, nullptr)->give_up(error);
  refuse_current(error, status, {});
}

void Conversation::begin_request(const net::HttpRequest& request) {
  ++front_.http.requests;
  current_ = Current{};
  if (!request.keep_alive) is_closing_ = true;
  if (Status status = admit(request); !status.ok()) {
    current_->refusal = status.error();
    pass_over_body(request);
    if (!is_over_) return;
    return turn_away(status.error(), traits_of(status.error().code).http_status);
  }
  // Nobody who has not said who he is has anything kept for him.
  if (is_route_for_everybody()) reader_.set_body(net::HttpReader::Body::kDropped);
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

bool Conversation::comes_in_pieces() const {
  return current_->route != nullptr && current_->route->handler == &Conversation::push_many;
}

bool Conversation::may_wait() const {
  if (!current_ || !has_route()) return false;
  if (current_->dialect_route != nullptr) return current_->dialect_route->may_wait;
  const Handler handler = current_->route->handler;
  return handler == &Conversation::pop || handler == &Conversation::pop_topic;
}

void Conversation::find_current_route(const net::HttpRequest& request) {
  Current& current = *current_;
  if (current.dialect != nullptr) {
    current.dialect_route =
        find_dialect_route(*current.dialect, request.method, current.target, current.allowed);
  } else {
    current.route = find_route(request.method, current.target, current.names, current.allowed);
  }
}

bool Conversation::is_route_for_everybody() const {
  if (current_->dialect_route != nullptr) return current_->dialect_route->scopes == 0;
  return current_->route != nullptr && current_->route->scopes == 0;
}

/// Whether the request names this server, or a page of somebody who had his own name point here. A page has
/// no token: where one is needed, there is nothing to find out. Nor is there in whether the server is well,
/// which is asked for by whatever name a load balancer has; and a browser always sends a Host.
Status Conversation::check_host(const net::HttpRequest& request) const {
  if (!front_.access.is_open() || (is_route_for_everybody() && request.origin.empty())) return {};
  if ((request.host.empty() && request.origin.empty()) || host_.names.accepts(request.host)) return {};
  return about_field(
      "Host",
      Error{ErrorCode::kForbidden,
            {},
            fmt::format("Host: {} is not a name of this server; if it is to be one, add it to server.hosts",
                        quote(request.host))});
}

/// In an order that tells a stranger nothing: who is asking comes before what there is.
Status Conversation::admit(const net::HttpRequest& request) {
  const api::Access& access = front_.access;
  for (const Dialect* dialect : host_.dialects) {
    if (dialect->owns(request.target)) current_->dialect = dialect;
  }
  if (is_foreign(request))
    return Error{ErrorCode::kForbidden, {}, "requests of pages from other places are not answered", {}};
  if (!access.is_open()) caller_ = access.identify(secret_of(request.authorization));
  Result<Target> target = parse_target(request.target);
  if (target.ok()) {
    current_->target = std::move(*target);
    find_current_route(request);
  }
  const Dialect::Route* in_dialect = current_->dialect_route;
  const Scopes scopes = in_dialect != nullptr ? in_dialect->scopes
                        : has_route()         ? current_->route->scopes
                                              : 0;
  const bool is_for_everybody = is_route_for_everybody();
  if (Status status = check_host(request); !status.ok()) return status;
  if (!is_for_everybody) {
    if (Status status = access.check_scope(caller_, kAnyScope); !status.ok()) return status;
    if (Status status = access.count_request(caller_, now_); !status.ok()) return status;
  }
  if (!target.ok()) return target.error();
  if (!has_route()) {
    if (current_->allowed.empty())
      return Error{ErrorCode::kNotFound, {}, "there is no such path; see /openapi.yaml", {}};
    return invalid(fmt::format("this path understands {}", current_->allowed));
  }
  if (is_for_everybody) return {};
  switch (in_dialect != nullptr ? api::Reach::kNone : current_->route->reach) {
    case api::Reach::kNone:
      return access.check_scope(caller_, scopes);
    case api::Reach::kTopic:
      return access.check(caller_, scopes, current_->names[0]);
    case api::Reach::kAll:
      break;
  }
  return access.check_all(caller_, scopes);
}

void Conversation::end_request(const net::HttpRequest& request) {
  ++requests_;
  if (is_closing_) is_over_ = true;
  if (keyed_) end_keyed(request.body);
  if (batch_ != nullptr) {
    batch_->take(now_, request.body);
    std::exchange(batch_, nullptr)->finish(now_);
  } else if (current_->refusal) {
    turn_away(*current_->refusal, traits_of(current_->refusal->code).http_status);
  } else if (!comes_in_pieces()) {
    call_route(request);
  }
  current_.reset();
}

void Conversation::call_route(const net::HttpRequest& request) {
  if (answer_again(request)) return;
  Status status;
  if (const Dialect* dialect = current_->dialect; dialect != nullptr) {
    status =
        current_->dialect_route->handle({*this, *dialect, request.method, request.body, current_->target});
  } else {
    status = (this->*current_->route->handler)({request, current_->target, current_->names});
  }
  if (!status.ok() && comes_in_pieces()) pass_over_body(request);
  if (!status.ok()) turn_away(status.error(), 0);
  claim_.reset();
}

}  // namespace delayq::http
