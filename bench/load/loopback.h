#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/socket.h>

#include "bench/load/descriptor.h"
#include "core/result.h"

/// Where a load goes, and how to get there.
namespace delayq::bench {

using Deadline = std::chrono::steady_clock::time_point;

/// Time left until `deadline`, never negative.
Millis time_left(Deadline deadline);

/// An address that was looked up.
struct Address {
  sockaddr_storage socket{};
  socklen_t size = 0;
};

/// 127.0.0.1.
Address loopback(uint16_t port);

/// "127.0.0.1:9278", "localhost:9278", "[::1]:9278".
Result<Address> resolve(std::string_view text);

/// A port that nobody listens on now. It lies below the range from which the kernel serves outgoing
/// connections, so that no client can be given it before the server listens.
Result<uint16_t> free_loopback_port();

/// A blocking connection, without Nagle's delay.
Result<Descriptor> connect_to(const Address& address);

/// Lets this process, and those it starts, have as many open connections as the system allows it.
void raise_descriptor_limit();

}  // namespace delayq::bench
