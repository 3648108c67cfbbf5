#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace delayq::simulation {

struct Failure {
  uint64_t seed = 0;
  std::string what;
};

struct Campaign {
  uint64_t first = 1;
  uint64_t last = 1;
  unsigned threads = 1;
  size_t most_failures = 1;  ///< when so many seeds have failed, the rest is not run
  bool shows_progress = false;
};

template <class Outcome>
struct Report {
  uint64_t seeds = 0;
  Outcome total;
  std::vector<Failure> failures;  ///< by seed
  double seconds = 0;
};

/// One line that is written over on a terminal, and a line for every quarter elsewhere.
class Progress {
 public:
  Progress(uint64_t seeds, bool shown);
  void done(uint64_t count, size_t failures) const;

 private:
  uint64_t seeds_;
  bool shown_;
  bool overwrites_;
};

/// Plays all seeds of the campaign, several at a time: `play(seed)` returns an Outcome with its failure.
template <class Outcome, class Play>
Report<Outcome> run(const Campaign& campaign, Play play) {
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<uint64_t> next = campaign.first;
  std::mutex mutex;  // of what follows
  Report<Outcome> report;
  const Progress progress(campaign.last - campaign.first + 1, campaign.shows_progress);

  const auto work = [&] {
    for (;;) {
      const uint64_t seed = next.fetch_add(1);
      if (seed > campaign.last) return;
      const Outcome outcome = play(seed);
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
