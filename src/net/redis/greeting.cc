#include "net/redis/greeting.h"

#include <charconv>

#include <fmt/format.h>

#include "resp/value.h"

namespace delayq::net::redis {

namespace {

Version version_of(std::string_view text) {
  Version version;
  const char* const end = text.data() + text.size();
  const auto [dot, problem] = std::from_chars(text.data(), end, version.major);
  if (problem == std::errc{} && dot != end) std::from_chars(dot + 1, end, version.minor);
  return version;
}

}  // namespace

Greeting::Greeting(const GreetingSettings& settings) : oldest_(settings.oldest) {
  if (!settings.password.empty()) {
    if (settings.user.empty()) {
      commands_.push_back({"AUTH", settings.password});
    } else {
      commands_.push_back({"AUTH", settings.user, settings.password});
    }
  }
  commands_.push_back({"PING"});  // refused while data is loaded, without a password, with too many clients
  if (settings.database != 0) commands_.push_back({"SELECT", std::to_string(settings.database)});
  if (settings.needs_master) commands_.push_back({"ROLE"});
  if (oldest_ != Version{}) commands_.push_back({"INFO", "server"});
  commands_.push_back({"CLIENT", "SETNAME", "delayq"});
}

Status Greeting::hear(const resp::Value& reply) {
  const std::string& command = commands_[heard_++].front();
  if (command == "CLIENT") return {};  // a nicety, which an ACL may forbid
  if (command == "INFO") return hear_version(reply);
  if (command == "ROLE") {
    // An ACL may forbid this too; then a write to a replica is refused by READONLY.
    if (reply.is_error() || reply.items.empty() || reply.items[0].text == "master") return {};
    const std::string& role = reply.items[0].text;
    return Error{ErrorCode::kUnavailable,
                 "redis",
                 fmt::format("it is no master but a {}", role == "slave" ? "replica" : role),
                 {}};
  }
  if (!reply.is_error()) return {};
  return Error{ErrorCode::kUnavailable, "redis", fmt::format("{}: {}", command, reply.text), {}};
}

Status Greeting::hear_version(const resp::Value& reply) const {
  const std::string_view version = resp::info_line(reply.text, "redis_version");
  // Who may not ask is told so by the commands that need it.
  if (reply.is_error() || version_of(version) >= oldest_) return {};
  return Error{
      ErrorCode::kUnavailable,
      "redis",
      fmt::format("it is version {}: {}.{} or later is needed", version, oldest_.major, oldest_.minor),
      {}};
}

}  // namespace delayq::net::redis
