#include "net/redis/greeting.h"

#include <fmt/format.h>

namespace delayq::net::redis {

Greeting::Greeting(const GreetingSettings& settings) {
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
  commands_.push_back({"CLIENT", "SETNAME", "delayq"});
}

Status Greeting::hear(const resp::Value& reply) {
  const std::string& command = commands_[heard_++].front();
  if (command == "CLIENT") return {};  // a nicety, which an ACL may forbid
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

}  // namespace delayq::net::redis
