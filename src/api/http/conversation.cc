#include "api/http/conversation.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "api/http/problem.h"

namespace delayq::http {

namespace {

constexpr size_t kMostOutput = 1 << 20;
constexpr size_t kMostUnanswered = 1024;

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> parts;
  path.remove_prefix(1);
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    parts.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

/// Whether the path is one of the route's; then `names` gets the parts that it leaves open.
bool matches(std::string_view route, const std::vector<std::string>& path,
             std::vector<std::string_view>& names) {
  const std::vector<std::string_view> parts = split(route);
  names.clear();
  if (parts.size() != path.size()) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].starts_with('{')) {
      names.emplace_back(path[i]);
    } else if (parts[i] != path[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

Conversation::Conversation(Host& host, net::Connection& connection, net::HttpLimits limits)
    : host_(host), connection_(&connection), reader_(limits) {}

bool Conversation::wants_input() const {
  return !is_over_ && !holds_up_ && replies_.waiting() < kMostUnanswered &&
         const_cast<api::Replies&>(replies_).output().size() < kMostOutput;
}

size_t Conversation::read(std::string_view input) {
  now_ = host_.clock();
  std::string_view rest = input;
  while (wants_input()) {
    const net::HttpReader::Outcome outcome = reader_.read(rest);
    if (reader_.take_expectation() && replies_.waiting() == 0) {
      replies_.output() += "HTTP/1.1 100 Continue\r\n\r\n";
      connection_->on_output();
    }
    if (outcome == net::HttpReader::Outcome::kPartial) break;
    if (outcome == net::HttpReader::Outcome::kBroken) {
      const ErrorCode code = reader_.status() == 400 ? ErrorCode::kInvalid : ErrorCode::kTooLarge;
      is_over_ = true;
      problem(replies_.reserve(), {code, {}, reader_.error(), {}}, reader_.status());
      return input.size();
    }
    if (!reader_.request().keep_alive) is_over_ = true;
    handle(reader_.request());
  }
  return input.size() - rest.size();
}

namespace {

/// Whether a browser asks on behalf of a page that is not ours: any page can make it send to a local address.
bool is_foreign(const net::HttpRequest& request) {
  if (request.origin.empty()) return false;
  const size_t scheme = request.origin.find("://");
  return scheme == std::string_view::npos || request.origin.substr(scheme + 3) != request.host;
}

}  // namespace

void Conversation::handle(const net::HttpRequest& request) {
  if (request.method == "HEAD") heads_.insert(replies_.next());
  if (is_foreign(request))
    return refuse({ErrorCode::kForbidden, {}, "requests of pages from other places are not answered", {}});
  const Result<Target> target = parse_target(request.target);
  if (!target.ok()) return refuse(target.error());
  Call call{request, *target, {}};
  std::string allowed;
  const Route* route = find_route(call, allowed);
  if (route != nullptr) {
    if (Status status = (this->*route->handler)(call); !status.ok()) refuse(status.error());
    return;
  }
  if (allowed.empty())
    return refuse({ErrorCode::kNotFound, {}, "there is no such path; see /openapi.yaml", {}});
  problem(replies_.reserve(), {ErrorCode::kInvalid, {}, fmt::format("this path understands {}", allowed), {}},
          405, fmt::format("Allow: {}\r\n", allowed));
}

const Conversation::Route* Conversation::find_route(Call& call, std::string& allowed) const {
  for (const Route& route : routes()) {
    if (!matches(route.path, call.target.path, call.names)) continue;
    const bool is_get = route.method == "GET";
    if (route.method == call.request.method || (is_get && call.request.method == "HEAD")) return &route;
    allowed += fmt::format("{}{}{}", allowed.empty() ? "" : ", ", route.method, is_get ? ", HEAD" : "");
  }
  return nullptr;
}

void Conversation::answer(Place place, Write write) {
  std::string body;
  json::Writer json(body);
  const int status = write(json);
  send(place, status, "application/json", {}, body);
}

void Conversation::reply(Write write) { answer(replies_.reserve(), write); }

void Conversation::problem(Place place, const Error& error, int status, std::string more) {
  if (status == 0) status = traits_of(error.code).http_status;
  std::string body;
  json::Writer json(body);
  write_problem_document(json, error, status);
  if (error.retry_after > Millis::zero()) {
    more += fmt::format("Retry-After: {}\r\n",
                        std::chrono::ceil<std::chrono::seconds>(error.retry_after).count());
  }
  send(place, status, "application/problem+json", more, body);
}

void Conversation::send(Place place, int status, std::string_view content_type, std::string_view more,
                        std::string_view body) {
  if (connection_ == nullptr) return;
  const bool is_head = !heads_.empty() && heads_.erase(place) > 0;
  replies_.fill(place, [&](std::string& out) {
    fmt::format_to(std::back_inserter(out),
                   "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}{}\r\n", status,
                   reason_phrase(status), content_type, body.size(), more,
                   is_over_ ? "Connection: close\r\n" : "");
    if (!is_head) out += body;
  });
  connection_->on_output();
}

bool Conversation::end_input() {
  is_over_ = true;
  return !holds_up_ && replies_.waiting() > 0;
}

void Conversation::hang_up() {
  connection_ = nullptr;
  is_over_ = true;
  const Moment now = host_.clock();
  for (const auto& [place, waiter] : std::exchange(pops_, {})) host_.queue.drop_waiter(now, waiter);
}

std::span<const Conversation::Route> Conversation::routes() {
  using C = Conversation;
  static constexpr std::array kRoutes{
      Route{"POST", "/v1/topics/{topic}/jobs", &C::push},
      Route{"GET", "/v1/topics/{topic}/jobs", &C::list},
      Route{"PUT", "/v1/topics/{topic}/jobs/{id}", &C::push_as},
      Route{"GET", "/v1/topics/{topic}/jobs/{id}", &C::get},
      Route{"DELETE", "/v1/topics/{topic}/jobs/{id}", &C::cancel},
      Route{"PATCH", "/v1/topics/{topic}/jobs/{id}", &C::reschedule},
      Route{"POST", "/v1/jobs", &C::push_many},
      Route{"DELETE", "/v1/groups/{group}", &C::cancel_group},
      Route{"POST", "/v1/topics/{topic}/pop", &C::pop_topic},
      Route{"POST", "/v1/pop", &C::pop},
      Route{"POST", "/v1/ack", &C::ack},
      Route{"POST", "/v1/nack", &C::nack},
      Route{"POST", "/v1/extend", &C::extend},
      Route{"GET", "/v1/topics", &C::topics},
      Route{"GET", "/v1/topics/{topic}", &C::topic},
      Route{"PATCH", "/v1/topics/{topic}", &C::change_settings},
      Route{"DELETE", "/v1/topics/{topic}", &C::purge},
      Route{"POST", "/v1/topics/{topic}/pause", &C::pause},
      Route{"POST", "/v1/topics/{topic}/resume", &C::resume},
      Route{"POST", "/v1/topics/{topic}/redrive", &C::redrive},
      Route{"GET", "/v1/forecast", &C::forecast},
      Route{"GET", "/v1/stats", &C::totals},
      Route{"GET", "/healthz", &C::health},
      Route{"GET", "/readyz", &C::health},
      Route{"GET", "/openapi.yaml", &C::openapi},
  };
  return kRoutes;
}

}  // namespace delayq::http
