#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "ops/address.h"

namespace delayq {

/// Where a Redis is, as users write it:
///   redis://[[USER]:PASSWORD@]HOST[:PORT][,...][/DATABASE]
///   redis-sentinel://[[USER]:PASSWORD@]HOST[:PORT],...[/MASTER[/DATABASE]]
///   redis-cluster://[[USER]:PASSWORD@]HOST[:PORT],...
/// and the same with rediss for TLS. User and password may have %XX in them.
struct RedisUrl {
  enum class Mode : uint8_t { kOne, kSentinel, kCluster };

  Mode mode = Mode::kOne;
  bool has_tls = false;
  /// Of Sentinels, or of some members of the Cluster, or of Redises of which one is the master.
  std::vector<Address> hosts;
  std::string user;
  std::string password;
  std::string master;  ///< the name that the Sentinels know it by; "mymaster" when there is none
  std::optional<uint32_t> database;

  bool operator==(const RedisUrl&) const = default;
};

/// The error's detail says what would be right, and never repeats a password.
Result<RedisUrl> parse_redis_url(std::string_view text);

/// The same as a check of a field of the configuration.
Status check_redis_url(std::string_view text);
/// A prefix of keys: without braces, which would decide where a Cluster keeps them.
Status check_redis_prefix(std::string_view text);

/// For those who look at it: with stars for the password.
std::string without_password(std::string_view url);

/// For the log: "redis at 127.0.0.1:6379", "redis by Sentinel a:26379, b:26379 (mymaster)".
std::string describe(const RedisUrl& url);

}  // namespace delayq
