#pragma once

#include <chrono>
#include <cstdint>

#include "bench/rivals/descriptor.h"
#include "core/result.h"

/// 127.0.0.1, the only address that the benchmarks talk to.
namespace delayq::bench {

using Deadline = std::chrono::steady_clock::time_point;

/// Time left until `deadline`, never negative.
Millis time_left(Deadline deadline);

/// A port that nobody listens on now. It lies below the range from which the kernel serves outgoing
/// connections, so that no client can be given it before the peer listens.
Result<uint16_t> free_loopback_port();

/// A blocking connection, without Nagle's delay.
Result<Descriptor> connect_to(uint16_t port);

}  // namespace delayq::bench
