#pragma once

#include <cstdint>
#include <string>

#include "engine/journal/canary.h"

namespace delayq::simulation {

/// A bug planted on purpose.
struct Planted {
  journal::Canary inside = journal::Canary::kNone;
  bool syncs_lie = false;  ///< the disk says it has synced and has not
};

struct Outcome {
  std::string failure;  ///< empty: all was as it should be
  uint64_t operations = 0;
  uint64_t handed_over = 0;
  uint64_t occurrences = 0;  ///< of schedules, that became jobs
  uint64_t lives = 0;
  uint64_t crashes = 0;
  uint64_t faults = 0;

  void add(const Outcome& other);
};

/// Runs one seed from beginning to end. The same seed does exactly the same every time.
Outcome simulate(uint64_t seed, const Planted& planted, bool tracing);

}  // namespace delayq::simulation
