#include "bench/micro/harness.h"
#include "bench/rivals/peers.h"

namespace delayq::bench {

Result<Measurement> measure_ours(uint64_t jobs) {
  const TempDirectory directory;
  EngineHost host(directory.path());
  JobMaker maker("order", kBodySize, std::chrono::hours(1), std::chrono::hours(1) + std::chrono::seconds(10));
  const uint64_t before = resident_bytes();
  const Stopwatch watch;
  fill(host, maker, 0, jobs);
  const double seconds = watch.seconds();
  const double grown = static_cast<double>(resident_bytes()) - static_cast<double>(before);
  host.close();
  return Measurement{jobs, static_cast<double>(jobs) / seconds, grown / static_cast<double>(jobs)};
}

}  // namespace delayq::bench
