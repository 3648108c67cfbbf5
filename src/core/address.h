#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace delayq {

/// Where to listen or connect: a host as written, not resolved yet, and a port.
struct Address {
  std::string host;   ///< a name or a numeric address, without brackets; empty: every interface
  uint16_t port = 0;  ///< 0, for listening: any free one

  bool operator==(const Address&) const = default;
};

/// Reads "host:port", ":port" and "[::1]:port". The error's detail says what was wrong and what would be
/// right; the caller puts the field's name in front and fills in `op`.
Result<Address> parse_address(std::string_view text);

/// Whether only this machine can reach it: 127.0.0.0/8, ::1, localhost.
bool is_loopback(const Address& address);

/// The text that parse_address() reads back to the same value.
std::string to_string(const Address& address);

/// OK for the patterns that HostNames accepts: a name ("delayq.example.com"), all names below one
/// ("*.example.com"), or any ("*").
Status check_host_pattern(std::string_view pattern);

/// The names that a server accepts in Host headers. A web page can make its own name resolve to any address
/// (DNS rebinding). For the browser the page is then the same site as the server at that address, and only
/// the name in the request shows the difference.
class HostNames {
 public:
  /// Accepts every name.
  HostNames() : HostNames(std::vector<std::string>{"*"}) {}
  explicit HostNames(const std::vector<std::string>& patterns);

  /// `host` is the value of a Host header: a name or an address, with or without a port. Besides the
  /// configured names, accepts localhost, which is always this machine, and every numeric address, which does
  /// not depend on the DNS of others.
  bool accepts(std::string_view host) const;

 private:
  std::vector<std::string> patterns_;  ///< in lower case
  bool accepts_all_ = false;           ///< "*" is one of them
};

}  // namespace delayq
