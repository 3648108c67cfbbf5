#include "tests/simulation/runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace delayq::simulation {
namespace {

/// One line that is written over on a terminal, and a line for every quarter elsewhere.
class Progress {
 public:
  Progress(uint64_t seeds, bool shown)
      : seeds_(seeds), shown_(shown), overwrites_(isatty(STDERR_FILENO) == 1) {}

  void done(uint64_t count, size_t failures) {
    const uint64_t step = std::max<uint64_t>(1, overwrites_ ? seeds_ / 200 : seeds_ / 4);
    if (!shown_ || (count % step != 0 && count != seeds_)) return;
    std::fprintf(stderr, "%s%llu of %llu seeds, %zu failures%s", overwrites_ ? "\r" : "",
                 static_cast<unsigned long long>(count), static_cast<unsigned long long>(seeds_), failures,
                 overwrites_ && count != seeds_ ? "" : "\n");
  }

 private:
  uint64_t seeds_;
  bool shown_;
  bool overwrites_;
};

}  // namespace

Report run(const Campaign& campaign) {
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<uint64_t> next = campaign.first;
  std::mutex mutex;  // of what follows
  Report report;
  Progress progress(campaign.last - campaign.first + 1, campaign.shows_progress);

  const auto work = [&] {
    for (;;) {
      const uint64_t seed = next.fetch_add(1);
      if (seed > campaign.last) return;
      const Outcome outcome = simulate(seed, campaign.planted, false);
      const std::lock_guard<std::mutex> guard(mutex);
      ++report.seeds;
      report.total.add(outcome);
      if (!outcome.failure.empty()) report.failures.push_back({seed, outcome.failure});
      if (report.failures.size() >= campaign.most_failures) next = campaign.last + 1;
      progress.done(report.seeds, report.failures.size());
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < campaign.threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();

  std::sort(report.failures.begin(), report.failures.end(),
            [](const Failure& a, const Failure& b) { return a.seed < b.seed; });
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

}  // namespace delayq::simulation
