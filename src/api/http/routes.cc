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
bool matches(const std::vector<std::string_view>& route, const std::vector<std::string>& path,
             std::vector<std::string_view>& names) {
  if (route.size() != path.size()) return false;
  names.clear();
  for (size_t i = 0; i < route.size(); ++i) {
    if (route[i].starts_with('{')) {
      names.emplace_back(path[i]);
    } else if (route[i] != path[i]) {
      return false;
    }
  }
  return true;
}

/// Whether the parts are those of a path that leaves none open.
bool is_path(std::string_view path, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (!path.starts_with('/') || !path.substr(1).starts_with(part)) return false;
    path.remove_prefix(part.size() + 1);
  }
  return path.empty();
}

/// Whether a request's method is the route's; else that one is added to those which are.
bool takes(std::string_view routes_method, std::string_view method, std::string& allowed) {
  const bool is_get = routes_method == "GET";
  if (routes_method == method || (is_get && method == "HEAD")) return true;
  allowed += fmt::format("{}{}{}", allowed.empty() ? "" : ", ", routes_method, is_get ? ", HEAD" : "");
  return false;
}

}  // namespace

const Dialect::Route* Conversation::find_dialect_route(const Dialect& dialect, std::string_view method,
                                                       const Target& target, std::string& allowed) {
  for (const Dialect::Route& route : dialect.routes) {
    if (is_path(route.path, target.path) && takes(route.method, method, allowed)) return &route;
  }
  return nullptr;
}

const Conversation::Route* Conversation::find_route(std::string_view method, const Target& target,
                                                    std::vector<std::string_view>& names,
                                                    std::string& allowed) {
  static const std::vector<std::vector<std::string_view>> kPaths = [] {
    std::vector<std::vector<std::string_view>> paths;
    for (const Route& route : routes()) paths.push_back(split(route.path));
    return paths;
  }();
  for (size_t i = 0; i < kPaths.size(); ++i) {
    if (!matches(kPaths[i], target.path, names)) continue;
    if (takes(routes()[i].method, method, allowed)) return &routes()[i];
  }
  return nullptr;
}

std::span<const Conversation::Route> Conversation::routes() {
  using C = Conversation;
  static constexpr std::array kRoutes{
      Route{"POST", "/v1/topics/{topic}/jobs", &C::push, kPushing, Reach::kTopic},
      Route{"GET", "/v1/topics/{topic}/jobs", &C::list, kReading, Reach::kTopic},
      Route{"PUT", "/v1/topics/{topic}/jobs/{id}", &C::push_as, kPushing, Reach::kTopic},
      Route{"GET", "/v1/topics/{topic}/jobs/{id}", &C::get, kAnyScope, Reach::kTopic},
      Route{"DELETE", "/v1/topics/{topic}/jobs/{id}", &C::cancel, kPushing, Reach::kTopic},
      Route{"PATCH", "/v1/topics/{topic}/jobs/{id}", &C::reschedule, kPushing, Reach::kTopic},
      Route{"POST", "/v1/jobs", &C::push_many, kPushing, Reach::kNone},
      Route{"DELETE", "/v1/groups/{group}", &C::cancel_group, kPushing, Reach::kNone},
      Route{"POST", "/v1/topics/{topic}/pop", &C::pop_topic, kConsuming, Reach::kTopic},
      Route{"POST", "/v1/pop", &C::pop, kConsuming, Reach::kNone},
      Route{"POST", "/v1/ack", &C::ack, kConsuming, Reach::kNone},
      Route{"POST", "/v1/nack", &C::nack, kConsuming, Reach::kNone},
      Route{"POST", "/v1/extend", &C::extend, kConsuming, Reach::kNone},
      Route{"GET", "/v1/topics", &C::topics, kAnyScope, Reach::kNone},
      Route{"GET", "/v1/topics/{topic}", &C::topic, kAnyScope, Reach::kTopic},
      Route{"PATCH", "/v1/topics/{topic}", &C::change_settings, kOperating, Reach::kTopic},
      Route{"DELETE", "/v1/topics/{topic}", &C::purge, kOperating, Reach::kTopic},
      Route{"POST", "/v1/topics/{topic}/pause", &C::pause, kOperating, Reach::kTopic},
      Route{"POST", "/v1/topics/{topic}/resume", &C::resume, kOperating, Reach::kTopic},
      Route{"POST", "/v1/topics/{topic}/forget", &C::forget, kOperating, Reach::kTopic},
      Route{"POST", "/v1/topics/{topic}/redrive", &C::redrive, kOperating, Reach::kTopic},
      Route{"GET", "/v1/forecast", &C::forecast, kReading, Reach::kNone},
      Route{"GET", "/v1/stats", &C::totals, kAnyScope, Reach::kAll},
      Route{"GET", "/v1/export", &C::export_page, kOperating, Reach::kAll},
      Route{"POST", "/v1/import", &C::import_lines, kOperating, Reach::kAll},
      Route{"POST", "/v1/backups", &C::backup, kOperating, Reach::kAll},
      Route{"GET", "/healthz", &C::health, kForEverybody, Reach::kNone},
      Route{"GET", "/readyz", &C::readiness, kForEverybody, Reach::kNone},
      Route{"GET", "/v1/events", &C::events, kReading, Reach::kAll},
      Route{"GET", "/metrics", &C::metrics, kReading, Reach::kAll},
      Route{"GET", "/openapi.yaml", &C::openapi, kAnyScope, Reach::kNone},
  };
  return kRoutes;
}

}  // namespace delayq::http
