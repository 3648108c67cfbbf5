#include "tests/simulation/runner.h"

#include <cstdio>
#include <unistd.h>

namespace delayq::simulation {

Progress::Progress(uint64_t seeds, bool shown)
    : seeds_(seeds), shown_(shown), overwrites_(isatty(STDERR_FILENO) == 1) {}

void Progress::done(uint64_t count, size_t failures) const {
  const uint64_t step = std::max<uint64_t>(1, overwrites_ ? seeds_ / 200 : seeds_ / 4);
  if (!shown_ || (count % step != 0 && count != seeds_)) return;
  std::fprintf(stderr, "%s%llu of %llu seeds, %zu failures%s", overwrites_ ? "\r" : "",
               static_cast<unsigned long long>(count), static_cast<unsigned long long>(seeds_), failures,
               overwrites_ && count != seeds_ ? "" : "\n");
}

}  // namespace delayq::simulation
