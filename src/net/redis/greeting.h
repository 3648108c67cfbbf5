#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "net/redis/options.h"
#include "resp/value.h"

namespace delayq::net::redis {

/// Who is greeted, and as whom.
struct GreetingSettings {
  std::string user;
  std::string password;  ///< empty: no AUTH
  uint32_t database = 0;
  bool needs_master = false;
  Version oldest{};  ///< 0.0: any will do
};

/// What a client says first on a connection, and whether the answers let it go on. All of it is sent at once.
class Greeting {
 public:
  explicit Greeting(const GreetingSettings& settings);

  /// The commands, to be sent in this order.
  const std::vector<std::vector<std::string>>& commands() const { return commands_; }
  /// Looks at the next reply. An error says why this connection is of no use.
  Status hear(const resp::Value& reply);
  bool is_over() const { return heard_ == commands_.size(); }

 private:
  Status hear_version(const resp::Value& reply) const;

  Version oldest_;
  std::vector<std::vector<std::string>> commands_;
  size_t heard_ = 0;
};

}  // namespace delayq::net::redis
