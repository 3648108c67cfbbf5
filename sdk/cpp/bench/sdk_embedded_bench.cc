// Durable enqueues in this process, 8 threads, against the engine's own push benchmark in the same run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <delayq/delayq.h>

#include "sdk/cpp/bench/engine_alone.h"
#include "sdk/cpp/tests/support.h"

namespace sdk_bench {
namespace {

using namespace std::chrono_literals;

constexpr int kThreads = 8;
constexpr int kBatch = 512;
constexpr int kWindow = 1024;  ///< asynchronous enqueues of a thread that are on their way

delayq::NewJob make_job(std::uint64_t number) {
  // Ids in no order, as the engine's own benchmark has them, and delays over 30 days.
  const std::uint64_t mixed = number * 0x9E3779B97F4A7C15ULL;
  char id[32];
  std::snprintf(id, sizeof(id), "job:%016llx", static_cast<unsigned long long>(mixed));
  delayq::NewJob job;
  job.topic = "order";
  job.id = id;
  job.payload = std::string(128, 'b');
  job.options.process_in = 1min + std::chrono::milliseconds(mixed % (30ULL * 86'400'000));
  return job;
}

std::vector<delayq::NewJob> make_jobs(std::uint64_t first, std::uint64_t count) {
  std::vector<delayq::NewJob> jobs;
  jobs.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) jobs.push_back(make_job(first + i));
  return jobs;
}

using Fill = std::function<void(delayq::Client&, const std::vector<delayq::NewJob>&)>;

void in_batches(delayq::Client& client, const std::vector<delayq::NewJob>& jobs) {
  for (std::size_t at = 0; at < jobs.size(); at += kBatch) {
    const std::span part = std::span(jobs).subspan(at, std::min<std::size_t>(kBatch, jobs.size() - at));
    for (const delayq::EnqueueResult& result : client.enqueue_many(part)) {
      if (!result.ok()) throw delayq::Error(*result.error);
    }
  }
}

void with_callbacks(delayq::Client& client, const std::vector<delayq::NewJob>& jobs) {
  std::counting_semaphore<> window(kWindow);
  for (const delayq::NewJob& job : jobs) {
    window.acquire();
    client.enqueue_async(job, [&window](const delayq::EnqueueResult& result) {
      if (!result.ok()) std::abort();
      window.release();
    });
  }
  for (int i = 0; i < kWindow; ++i) window.acquire();
}

void one_by_one(delayq::Client& client, const std::vector<delayq::NewJob>& jobs) {
  for (const delayq::NewJob& job : jobs) client.enqueue(job.topic, job.id, job.payload, job.options);
}

/// Enqueues per second. The jobs are made before, as those of the engine's benchmark are.
double measure(std::uint64_t jobs, const Fill& fill) {
  const sdk_test::TempDirectory directory;
  delayq::Client client = delayq::Client::open(directory.path() + "/data");
  std::vector<std::vector<delayq::NewJob>> parts;
  for (int i = 0; i < kThreads; ++i) parts.push_back(make_jobs(i * (jobs / kThreads), jobs / kThreads));
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { fill(client, parts[i]); });
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(jobs / kThreads * kThreads) / took.count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run(bool smoke) {
  const std::uint64_t jobs = smoke ? 16'384 : 524'288;
  const int rounds = smoke ? 1 : 5;
  struct Way {
    const char* name;
    Fill fill;
    std::uint64_t jobs;
    std::vector<double> rates{}, ratios{};
  };
  std::vector<Way> ways{{"enqueue_many, 512 at once", in_batches, jobs},
                        {"enqueue_async with callbacks", with_callbacks, jobs},
                        {"enqueue, one by one", one_by_one, jobs / 64}};
  std::vector<double> engine;
  engine_alone(jobs / 8);
  for (int round = 0; round < rounds; ++round) {
    for (Way& way : ways) {
      engine.push_back(engine_alone(jobs));
      way.rates.push_back(measure(way.jobs, way.fill));
      way.ratios.push_back(way.rates.back() / engine.back());
    }
  }
  std::printf("commit %s, 128 B payloads, %d threads, durable, medians of %d rounds by turns\n",
              DELAYQ_COMMIT, kThreads, rounds);
  std::printf("%-32s %8.0f k/s\n", "engine alone, 2,048 a commit", median(engine) / 1000);
  for (const Way& way : ways)
    std::printf("%-32s %8.1f k/s   %.2fx\n", way.name, median(way.rates) / 1000, median(way.ratios));
  const double ratio = median(ways[0].ratios);
  std::printf("bar: enqueue_many at least 0.70x: %s\n", ratio >= 0.7 ? "met" : "NOT MET");
  return smoke || ratio >= 0.7 ? 0 : 1;
}

}  // namespace
}  // namespace sdk_bench

int main(int argc, char** argv) { return sdk_bench::run(argc > 1 && std::strcmp(argv[1], "--smoke") == 0); }
