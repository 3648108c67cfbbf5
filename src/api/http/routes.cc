// Every path that there is.
#include <array>

#include <fmt/format.h>

#include "api/http/conversation.h"

namespace delayq::http {

namespace {

using api::Reach;

constexpr Scopes kPushing = only(Scope::kPush);
constexpr Scopes kConsuming = only(Scope::kConsume);
constexpr Scopes kReading = only(Scope::kRead);
constexpr Scopes kOperating = only(Scope::kAdmin);
constexpr Scopes kForEverybody = 0;

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

const Conversation::Route* Conversation::find_route(std::string_view method, const Target& target,
                                                    std::vector<std::string_view>& names,
                                                    std::string& allowed) {
  for (const Route& route : routes()) {
    if (!matches(route.path, target.path, names)) continue;
    if (route.method == method) return &route;
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", route.method);
  }
  return nullptr;
}

std::span<const Conversation::Route> Conversation::routes() {
  using C = Conversation;
  static constexpr std::array kRoutes{
      Route{"POST", "/v1/topics/{topic}/jobs", &C::push, kPushing, Reach::kTopic,
            "Push. `{\"id\"?, \"body\", \"delay\"? or \"at\"?, \"priority\"?, \"attempts\"?, \"backoff\"?, "
            "\"lease\"?, \"group\"?, \"callback\"?, \"on_conflict\"?, \"unique\"?}`; with another "
            "`Content-Type` than JSON the body is any bytes and the rest is in the query. 201 "
            "`{\"topic\",\"id\",\"state\",\"due_at\"}`."},
      Route{"GET", "/v1/topics/{topic}/jobs", &C::list, kReading, Reach::kTopic,
            "A page of jobs: `?state=` and `prefix=`, `error=`, `limit=`, `cursor=`, `bodies=true`."},
      Route{"PUT", "/v1/topics/{topic}/jobs/{id}", &C::push_as, kPushing, Reach::kTopic,
            "The same with the id in the path; `on_conflict` is `replace` unless it says otherwise."},
      Route{"GET", "/v1/topics/{topic}/jobs/{id}", &C::get, kAnyScope, Reach::kTopic,
            "What is known of a job."},
      Route{"DELETE", "/v1/topics/{topic}/jobs/{id}", &C::cancel, kPushing, Reach::kTopic,
            "`{\"result\"}`: cancelled, reserved, done, dead or unknown."},
      Route{"PATCH", "/v1/topics/{topic}/jobs/{id}", &C::reschedule, kPushing, Reach::kTopic,
            "`{\"delay\"}` or `{\"at\"}`: another time."},
      Route{"POST", "/v1/jobs", &C::push_many, kPushing, Reach::kNone,
            "A JSON array of jobs, each with its topic, or `application/x-ndjson`; one commit, a result for "
            "each."},
      Route{"DELETE", "/v1/groups/{group}", &C::cancel_group, kPushing, Reach::kAll,
            "Takes all waiting jobs of a group back."},
      Route{
          "POST", "/v1/topics/{topic}/pop", &C::pop_topic, kConsuming, Reach::kTopic,
          "`{\"count\"?, \"wait\"?, \"lease\"?, \"ack\"?: \"auto\"}`. Waits up to `wait` for the first job."},
      Route{"POST", "/v1/pop", &C::pop, kConsuming, Reach::kNone,
            "The same over `\"topics\"`, the first before the second."},
      Route{"POST", "/v1/ack", &C::ack, kConsuming, Reach::kNone,
            "`{\"leases\": [...]}`: done. A result for each."},
      Route{"POST", "/v1/nack", &C::nack, kConsuming, Reach::kNone,
            "`{\"leases\": [...], \"delay\"?, \"reason\"?, \"dead\"?}`: failed."},
      Route{"POST", "/v1/extend", &C::extend, kConsuming, Reach::kNone,
            "`{\"leases\": [...], \"lease\"?}`: more time."},
      Route{"GET", "/v1/topics", &C::topics, kAnyScope, Reach::kNone,
            "A page of topics with their counts: `?cursor=`, `limit=`."},
      Route{"GET", "/v1/topics/{topic}", &C::topic, kAnyScope, Reach::kTopic,
            "Counts, rates, lateness and the settings in force."},
      Route{"PATCH", "/v1/topics/{topic}", &C::change_settings, kOperating, Reach::kTopic,
            "Changes settings: `attempts`, `backoff`, `lease`, `keep_done`, `keep_dead`, `rate`, "
            "`concurrency`, `paused`, `priority`."},
      Route{"DELETE", "/v1/topics/{topic}", &C::purge, kOperating, Reach::kTopic,
            "Removes all jobs of a topic, the running ones too."},
      Route{"POST", "/v1/topics/{topic}/pause", &C::pause, kOperating, Reach::kTopic,
            "Stops the hand-over, not pushing."},
      Route{"POST", "/v1/topics/{topic}/resume", &C::resume, kOperating, Reach::kTopic, "Goes on with it."},
      Route{"POST", "/v1/topics/{topic}/redrive", &C::redrive, kOperating, Reach::kTopic,
            "Makes dead jobs ready again: all, `{\"ids\"}` or `{\"error\"}`."},
      Route{"GET", "/v1/forecast", &C::forecast, kReading, Reach::kNone,
            "How many jobs fall due when: `?from=`, `to=`, `bins=`, `topic=`."},
      Route{"GET", "/v1/stats", &C::totals, kAnyScope, Reach::kAll, "The same as for a topic, of all."},
      Route{"GET", "/healthz", &C::health, kForEverybody, Reach::kNone,
            "The server's loop and its queue turn; also while it is stopping."},
      Route{"GET", "/readyz", &C::readiness, kForEverybody, Reach::kNone,
            "A push would be taken. Else the error that it would get: 503 `stopping` or `unavailable` (the "
            "engine has failed), 507 `disk_full`, 429 `overloaded`."},
  };
  return kRoutes;
}

}  // namespace delayq::http
