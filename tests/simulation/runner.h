#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/simulation.h"

namespace delayq::simulation {

struct Failure {
  uint64_t seed = 0;
  std::string what;
};

struct Campaign {
  uint64_t first = 1;
  uint64_t last = 1;
  Planted planted;
  unsigned threads = 1;
  size_t most_failures = 1;  ///< when so many seeds have failed, the rest is not run
  bool shows_progress = false;
};

struct Report {
  uint64_t seeds = 0;
  Outcome total;
  std::vector<Failure> failures;  ///< by seed
  double seconds = 0;
};

/// Runs all seeds of the campaign, several at a time.
Report run(const Campaign& campaign);

}  // namespace delayq::simulation
