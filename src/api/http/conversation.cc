#include "api/http/conversation.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace delayq::http {

namespace {

constexpr size_t kMostOutput = 1 << 20;
constexpr size_t kMostUnanswered = 1024;

/// The field that an error's detail starts with: "delay: ..." as we say it, "delay 2h is ..." as the queue
/// does.
std::string_view field_of(std::string_view detail) {
  constexpr std::array<std::string_view, 18> kFields{
      "topic", "id",    "group", "body",     "delay",  "due",    "at",     "priority", "attempts",
      "lease", "count", "wait",  "callback", "reason", "topics", "leases", "bins",     "backoff"};
  const size_t end = detail.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  if (end == 0 || end == std::string_view::npos) return {};
  const std::string_view word = detail.substr(0, end);
  const bool is_field = std::find(kFields.begin(), kFields.end(), word) != kFields.end();
  return detail[end] == ':' || (detail[end] == ' ' && is_field) ? word : std::string_view();
}

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

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
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
    case 503:
      return "Service Unavailable";
    case 507:
      return "Insufficient Storage";
    default:
      return "Unknown";
  }
}

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
      const ErrorCode code = reader_.status() == 413 ? ErrorCode::kTooLarge : ErrorCode::kInvalid;
      is_over_ = true;
      refuse({code, {}, reader_.error(), {}});
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
  const bool is_known = !allowed.empty();
  const int status = is_known ? 405 : 404;
  std::string body;
  json::Writer json(body);
  json.begin_object().key("type").text("about:blank").key("title").text(reason_phrase(status));
  json.key("status")
      .number(uint64_t{static_cast<unsigned>(status)})
      .key("code")
      .text(is_known ? "invalid" : "not_found");
  json.key("detail").text(is_known ? fmt::format("this path understands {}", allowed)
                                   : "there is no such path; see the API reference");
  json.end_object();
  send(replies_.reserve(), status, "application/problem+json",
       is_known ? fmt::format("Allow: {}\r\n", allowed) : "", body);
}

const Conversation::Route* Conversation::find_route(Call& call, std::string& allowed) const {
  for (const Route& route : routes()) {
    if (!matches(route.path, call.target.path, call.names)) continue;
    if (route.method == call.request.method) return &route;
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", route.method);
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

void Conversation::problem(Place place, const Error& error) {
  const ErrorTraits& traits = traits_of(error.code);
  std::string body;
  json::Writer json(body);
  json.begin_object().key("type").text("about:blank").key("title").text(reason_phrase(traits.http_status));
  json.key("status")
      .number(uint64_t{static_cast<unsigned>(traits.http_status)})
      .key("code")
      .text(traits.name);
  json.key("detail").text(error.detail);
  if (const std::string_view field = field_of(error.detail); !field.empty()) json.key("field").text(field);
  json.end_object();
  std::string more;
  if (error.retry_after > Millis::zero()) {
    more = fmt::format("Retry-After: {}\r\n",
                       std::chrono::ceil<std::chrono::seconds>(error.retry_after).count());
  }
  send(place, traits.http_status, "application/problem+json", more, body);
}

void Conversation::send(Place place, int status, std::string_view content_type, std::string_view more,
                        std::string_view body) {
  if (connection_ == nullptr) return;
  replies_.fill(place, [&](std::string& out) {
    fmt::format_to(std::back_inserter(out),
                   "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}{}\r\n", status,
                   reason_phrase(status), content_type, body.size(), more,
                   is_over_ ? "Connection: close\r\n" : "");
    out += body;
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
      Route{"POST", "/v1/topics/{topic}/jobs", &C::push,
            "Push. `{\"id\"?, \"body\", \"delay\"? or \"at\"?, \"priority\"?, \"attempts\"?, \"backoff\"?, "
            "\"lease\"?, \"group\"?, \"callback\"?, \"on_conflict\"?, \"unique\"?}`; with another "
            "`Content-Type` than JSON the body is any bytes and the rest is in the query. 201 "
            "`{\"topic\",\"id\",\"state\",\"due_at\"}`."},
      Route{"GET", "/v1/topics/{topic}/jobs", &C::list,
            "A page of jobs: `?state=` and `prefix=`, `error=`, `limit=`, `cursor=`, `bodies=true`."},
      Route{"PUT", "/v1/topics/{topic}/jobs/{id}", &C::push_as,
            "The same with the id in the path; `on_conflict` is `replace` unless it says otherwise."},
      Route{"GET", "/v1/topics/{topic}/jobs/{id}", &C::get, "What is known of a job."},
      Route{"DELETE", "/v1/topics/{topic}/jobs/{id}", &C::cancel,
            "`{\"result\"}`: cancelled, reserved, done, dead or unknown."},
      Route{"PATCH", "/v1/topics/{topic}/jobs/{id}", &C::reschedule,
            "`{\"delay\"}` or `{\"at\"}`: another time."},
      Route{"POST", "/v1/jobs", &C::push_many,
            "A JSON array of jobs, each with its topic, or `application/x-ndjson`; one commit, a result for "
            "each."},
      Route{"DELETE", "/v1/groups/{group}", &C::cancel_group, "Takes all waiting jobs of a group back."},
      Route{
          "POST", "/v1/topics/{topic}/pop", &C::pop_topic,
          "`{\"count\"?, \"wait\"?, \"lease\"?, \"ack\"?: \"auto\"}`. Waits up to `wait` for the first job."},
      Route{"POST", "/v1/pop", &C::pop, "The same over `\"topics\"`, the first before the second."},
      Route{"POST", "/v1/ack", &C::ack, "`{\"leases\": [...]}`: done. A result for each."},
      Route{"POST", "/v1/nack", &C::nack,
            "`{\"leases\": [...], \"delay\"?, \"reason\"?, \"dead\"?}`: failed."},
      Route{"POST", "/v1/extend", &C::extend, "`{\"leases\": [...], \"lease\"?}`: more time."},
      Route{"GET", "/v1/topics", &C::topics, "A page of topics with their counts: `?cursor=`, `limit=`."},
      Route{"GET", "/v1/topics/{topic}", &C::topic, "Counts, rates, lateness and the settings in force."},
      Route{"PATCH", "/v1/topics/{topic}", &C::change_settings,
            "Changes settings: `attempts`, `backoff`, `lease`, `keep_done`, `keep_dead`, `rate`, "
            "`concurrency`, `paused`, `priority`."},
      Route{"DELETE", "/v1/topics/{topic}", &C::purge, "Removes all jobs of a topic, the running ones too."},
      Route{"POST", "/v1/topics/{topic}/pause", &C::pause, "Stops the hand-over, not pushing."},
      Route{"POST", "/v1/topics/{topic}/resume", &C::resume, "Goes on with it."},
      Route{"POST", "/v1/topics/{topic}/redrive", &C::redrive,
            "Makes dead jobs ready again: all, `{\"ids\"}` or `{\"error\"}`."},
      Route{"GET", "/v1/forecast", &C::forecast,
            "How many jobs fall due when: `?from=`, `to=`, `bins=`, `topic=`."},
      Route{"GET", "/v1/stats", &C::totals, "The same as for a topic, of all."},
      Route{"GET", "/healthz", &C::health, "The server answers."},
      Route{"GET", "/readyz", &C::health, "The same; it listens only when it has recovered."},
  };
  return kRoutes;
}

}  // namespace delayq::http
