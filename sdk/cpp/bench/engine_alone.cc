#include "sdk/cpp/bench/engine_alone.h"

#include "bench/micro/harness.h"

namespace sdk_bench {

double engine_alone(std::uint64_t jobs) {
  const delayq::bench::TempDirectory directory;
  delayq::bench::EngineHost host(directory.path());
  delayq::bench::JobMaker maker("order", 128, std::chrono::minutes(1), std::chrono::days(30));
  const delayq::bench::Stopwatch watch;
  delayq::bench::fill(host, maker, 0, jobs);
  return static_cast<double>(jobs) / watch.seconds();
}

}  // namespace sdk_bench
