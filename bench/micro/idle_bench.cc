// A million jobs that wait for days: how often the engine wants to be woken, and what that costs.
#include <algorithm>

#include <fmt/format.h>

#include "bench/micro/harness.h"

namespace delayq::bench {
namespace {

/// Follows tick()'s own wishes over `hours` of simulated time; the CPU it takes is real.
void run(bool smoke) {
  const TempDirectory directory;
  EngineHost host(directory.path());
  JobMaker maker("order", 128, std::chrono::days(2), std::chrono::days(30));
  const uint64_t jobs = smoke ? 10'000 : 1'000'000;
  fill(host, maker, 0, jobs);
  host.flush();

  const Moment end = host.now + std::chrono::hours(smoke ? 1 : 24);
  const double simulated = std::chrono::duration<double>(end - host.now).count();
  uint64_t wakes = 0;
  uint64_t busiest = 0;  // in one second
  Moment second = host.now;
  uint64_t in_second = 0;
  const double cpu = cpu_seconds();
  while (host.now < end) {
    const Moment next = host->tick(host.now);
    host.poll();
    ++wakes;
    if (host.now >= second + std::chrono::seconds(1)) {
      second = host.now;
      in_second = 0;
    }
    busiest = std::max(busiest, ++in_second);
    host.now = std::min(end, std::max(next, host.now + Millis{1}));
  }
  const double used = (cpu_seconds() - cpu) / simulated * 100;
  report(fmt::format("wake-ups in {:.0f} h with {} far-future jobs", simulated / 3600, jobs),
         fmt::format("{} ({:.3f}/s)", wakes, static_cast<double>(wakes) / simulated), "<= 1/s",
         static_cast<double>(wakes) <= simulated);
  report("most in any one second", fmt::format("{}", busiest));
  report("CPU for it", fmt::format("{:.4f} % of a core", used), "< 0.5 %", used < 0.5);
}

}  // namespace
}  // namespace delayq::bench

int main(int argc, char** argv) { delayq::bench::run(delayq::bench::is_smoke(argc, argv)); }
