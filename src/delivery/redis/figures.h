#pragma once

#include <cstdint>

namespace delayq::redis_delivery {

/// What was written to Redis since the start, and is being written.
struct Figures {
  uint64_t delivered = 0;   ///< jobs that Redis has
  uint64_t failed = 0;      ///< refused by Redis: to be tried again, or dead, as the queue decides
  uint64_t given_back = 0;  ///< taken and not known to be written: Redis was away, or a stop
  uint64_t in_flight = 0;   ///< now
  bool connected = false;   ///< now
};

}  // namespace delayq::redis_delivery
