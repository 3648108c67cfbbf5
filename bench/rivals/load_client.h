#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <sys/socket.h>

#include <netinet/in.h>

#include "bench/rivals/loopback.h"
#include "core/result.h"

/// The load that every peer is given: many connections, several requests under way on each, answers counted.
namespace delayq::bench {

struct Load {
  uint64_t requests = 0;
  size_t connections = 50;
  size_t pipeline = 32;  ///< requests under way on one connection
  /// Appends request `number` to `out`.
  std::function<void(uint64_t number, std::string& out)> append_request;
  /// How the one line of a good answer begins; any other answer ends the load with an error.
  std::string good_answer;
};

struct LoadResult {
  uint64_t answered = 0;  ///< less than asked for when the deadline came first
  double seconds = 0;
};

/// Runs the load from the calling thread, over non-blocking sockets.
Result<LoadResult> run_load(uint16_t port, const Load& load, Deadline deadline);

}  // namespace delayq::bench
