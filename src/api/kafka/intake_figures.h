#pragma once

#include <cstdint>
#include <string>

namespace delayq::intake {

/// What an intake has done since the start, and has now.
struct IntakeFigures {
  std::string name{};
  uint64_t read = 0;           ///< records
  uint64_t pushed = 0;         ///< of them: became a job
  uint64_t kept = 0;           ///< of them: their job was there already
  uint64_t dead_lettered = 0;  ///< of them: written to the dead-letter topic
  uint64_t refused = 0;        ///< pushes that the queue refused; they are repeated
  uint64_t partitions = 0;     ///< assigned now
  uint64_t paused = 0;         ///< of them: not read now, because their records cannot be stored or written
  uint64_t held = 0;           ///< records in memory now
  uint64_t lag = 0;            ///< records behind the position of the assigned partitions, as last heard
  bool is_connected = false;   ///< nothing is known that keeps it from reading
};

}  // namespace delayq::intake
