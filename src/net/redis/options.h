#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace delayq::net::redis {

/// Where a server listens.
struct Address {
  std::string host{};
  uint16_t port = 6379;

  bool operator==(const Address&) const = default;
  bool operator<(const Address& other) const {
    return std::tie(host, port) < std::tie(other.host, other.port);
  }
};

/// "host:port", with brackets round an IPv6 address.
std::string to_string(const Address& address);

enum class Mode : uint8_t {
  kStandalone,  ///< one server; where several addresses are given, the one of them that is a master
  kSentinel,    ///< the addresses are sentinels; they know the master
  kCluster,     ///< the addresses are some of the cluster's nodes
};

struct Tls {
  bool is_on = false;
  std::string ca_file{};      ///< PEM; empty: the system's authorities
  std::string certificate{};  ///< PEM: the client's own, empty: none
  std::string key{};          ///< PEM
  std::string server_name{};  ///< the name in the server's certificate; empty: the host
  bool skips_check = false;   ///< believes everybody

  bool operator==(const Tls&) const = default;
};

/// Of Redis: major and minor.
struct Version {
  uint32_t major = 0;
  uint32_t minor = 0;

  auto operator<=>(const Version&) const = default;  // NOLINT(modernize-use-nullptr): it is none
};

/// How to reach a deployment of Redis.
///
/// There is no pool of connections (max idle, max active, idle timeout): commands are pipelined, so one
/// connection per node carries all of them at once. `connections` is what is left of it. For the same reason
/// there is one timeout where others have two, for reading and for writing: what cannot be sent is not
/// answered.
struct ClientOptions {
  Mode mode = Mode::kStandalone;
  std::vector<Address> addresses{};  ///< at least one
  std::string master_name{};         ///< of a group under Sentinel
  std::string user{};                ///< of an ACL; empty: the default user
  std::string password{};            ///< empty: no AUTH
  std::string sentinel_user{};
  std::string sentinel_password{};
  uint32_t database = 0;  ///< 0 in a cluster
  Tls tls{};              ///< also to sentinels
  Version oldest{};       ///< nodes with an earlier one are refused; 0.0: any will do
  /// Per node. A hash tag always uses the same one, so that its commands stay in order.
  size_t connections = 1;

  Millis connect_timeout = std::chrono::seconds{5};  ///< until the server said that it is ready
  /// A server that owes replies and says nothing for this long is given up, with all that was sent to it.
  Millis reply_timeout = std::chrono::seconds{5};
  Millis keep_alive = std::chrono::seconds{15};  ///< a connection that is silent for this long is asked PING
  /// How long a command waits for a connection when there is none. Zero: it fails at once.
  Millis wait{0};
  /// Between two attempts to connect: evenly from zero to a bound that doubles from the first to the second.
  Millis backoff = std::chrono::milliseconds{50};
  Millis backoff_cap = std::chrono::seconds{2};
  uint64_t seed = 0;  ///< of that randomness

  size_t max_outstanding_commands = 1u << 20;
  size_t max_outstanding_bytes = 256u << 20;  ///< commands that are not answered yet

  bool operator==(const ClientOptions&) const = default;
};

/// Reads where a deployment is:
///
///   redis://[[user]:password@]host[:port][,host[:port]...][/database]
///   redis-sentinel://[[user]:password@]host[:port][,...]/master[/database]      port 26379 by default
///   redis-cluster://[[user]:password@]host[:port][,...]
///
/// `rediss`, `rediss-sentinel` and `rediss-cluster` are the same over TLS. User and password may have
/// %-encoded bytes; an IPv6 address stands in brackets. A password for the sentinels is not part of this.
///
/// An error names the part that is wrong: scheme, user, password, host, port, master, database. It never has
/// the password in it.
Result<ClientOptions> parse_url(std::string_view text);

}  // namespace delayq::net::redis
