// Five million pending jobs: what they cost in RAM, how fast they are cancelled, moved and recovered.
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "bench/micro/harness.h"
#include "core/random.h"

namespace delayq::bench {
namespace {

constexpr size_t kBatch = 512;

struct Size {
  uint64_t jobs;
  uint64_t operations;
};

/// Runs verb(ids of a batch) over random jobs, one batch under way while the next is made; answers the rate.
template <class Verb>
double rate(EngineHost& host, const Size& size, uint64_t seed, Verb&& verb) {
  std::vector<std::string> ids;
  for (uint64_t i = 0; i < size.operations; ++i) {
    // A walk over the jobs in no order that memory would like, and each only once.
    ids.push_back(JobMaker::id((i * 2'654'435'761 + seed) % size.jobs));
  }
  uint64_t answered = 0;
  uint64_t asked = 0;
  const Stopwatch watch;
  for (size_t at = 0; at < ids.size(); at += kBatch) {
    const size_t count = std::min(kBatch, ids.size() - at);
    verb(std::span(ids).subspan(at, count), answered);
    asked += count;
    host.until([&] { return answered + kBatch >= asked; });
  }
  host.until([&] { return answered == asked; });
  return static_cast<double>(size.operations) / watch.seconds();
}

double reschedules(EngineHost& host, const Size& size) {
  std::vector<RescheduleRequest> requests;
  return rate(host, size, 7, [&](std::span<const std::string> ids, uint64_t& answered) {
    requests.clear();
    for (const std::string& id : ids) {
      requests.push_back({{"order", id}, host.now + std::chrono::hours(1 + mix64(requests.size()) % 700)});
    }
    host->reschedule(host.now, requests, [&answered](Result<std::vector<RescheduleOutcome>> outcomes) {
      for (const RescheduleOutcome outcome : *outcomes) answered += outcome == RescheduleOutcome::kMoved;
    });
  });
}

double cancels(EngineHost& host, const Size& size) {
  std::vector<JobRef> requests;
  return rate(host, size, 7, [&](std::span<const std::string> ids, uint64_t& answered) {
    requests.clear();
    for (const std::string& id : ids) requests.push_back({"order", id});
    host->cancel(host.now, requests, [&answered](Result<std::vector<CancelOutcome>> outcomes) {
      for (const CancelOutcome outcome : *outcomes) answered += outcome == CancelOutcome::kCancelled;
    });
  });
}

/// RAM per job is measured in a process of its own, so that nothing else has touched the memory before.
double ram_per_job(size_t body, uint64_t jobs) {
  std::array<int, 2> pipe_ends{};
  if (::pipe(pipe_ends.data()) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    const TempDirectory directory;
    EngineHost host(directory.path());
    JobMaker maker("order", body, std::chrono::minutes(30), std::chrono::days(30));
    const uint64_t before = resident_bytes();
    fill(host, maker, 0, jobs);
    const double per_job = static_cast<double>(resident_bytes() - before) / static_cast<double>(jobs);
    const bool sent = ::write(pipe_ends[1], &per_job, sizeof per_job) == sizeof per_job;
    host.close();
    ::_exit(sent ? 0 : 1);
  }
  double per_job = 0;
  if (::read(pipe_ends[0], &per_job, sizeof per_job) != sizeof per_job) std::abort();
  int status = 0;
  ::waitpid(child, &status, 0);
  return per_job;
}

void run(bool smoke) {
  const Size size = smoke ? Size{20'000, 5'000} : Size{5'000'000, 1'000'000};
  const double small = ram_per_job(128, size.jobs);
  const double large = ram_per_job(1024, size.jobs);
  report(fmt::format("RAM per pending job at {} jobs, 128 B bodies", size.jobs),
         fmt::format("{:.1f} B", small), "<= 100 B", small <= 100);
  report("the same with 1 KiB bodies", fmt::format("{:.1f} B ({:+.1f} %)", large, (large / small - 1) * 100),
         "<= 100 B, +-10 %", large <= 100 && large / small < 1.1 && small / large < 1.1);

  const TempDirectory directory;
  EngineHost host(directory.path());
  JobMaker maker("order", 128, std::chrono::minutes(30), std::chrono::days(30));
  fill(host, maker, 0, size.jobs);
  host.close();
  const Stopwatch watch;
  host.open();
  const double recovered = static_cast<double>(size.jobs) / watch.seconds();
  report("recovery, files in the page cache", fmt::format("{:.2f} M jobs/s", recovered / 1e6),
         ">= 1 M jobs/s", recovered >= 1e6);
  if (host->usage().jobs != size.jobs) std::abort();
  const double moved = reschedules(host, size);
  report("reschedule by id, batches of 512", fmt::format("{:.0f} k/s", moved / 1000), ">= 500 k/s",
         moved >= 500e3);
  const double cancelled = cancels(host, size);
  report("cancel by id, batches of 512", fmt::format("{:.0f} k/s", cancelled / 1000), ">= 500 k/s",
         cancelled >= 500e3);
}

}  // namespace
}  // namespace delayq::bench

int main(int argc, char** argv) { delayq::bench::run(delayq::bench::is_smoke(argc, argv)); }
