#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace delayq
