// The peers from Debian and our engine, in one run on one machine: durable pushes of delayed jobs.
//   rivals_bench [--smoke] [--json]
#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "bench/micro/harness.h"
#include "bench/rivals/peer_process.h"
#include "bench/rivals/peers.h"

namespace delayq::bench {
namespace {

struct Contestant {
  std::string_view key;      // in JSON
  std::string_view what;     // in the table
  std::string_view program;  // that must be installed; empty: none
  std::function<Result<Measurement>(uint64_t jobs)> measure;
  bool is_missing = false;
  std::optional<Measurement> measured;
};

std::vector<Contestant> contestants() {
  return {
      // First, while this process has used no memory yet; see measure_ours.
      {"delayq-journal", "delayq journal engine, in process, synced at reply", "", measure_ours, false, {}},
      {"beanstalkd", "beanstalkd, binlog, synced within 50 ms", "beanstalkd", measure_beanstalkd, false, {}},
      {"redis-always",
       "redis script (HSET + ZADD), AOF synced at reply",
       "redis-server",
       [](uint64_t jobs) { return measure_redis(jobs, "always"); },
       false,
       {}},
      {"redis-everysec",
       "redis script (HSET + ZADD), AOF synced every second",
       "redis-server",
       [](uint64_t jobs) { return measure_redis(jobs, "everysec"); },
       false,
       {}},
  };
}

/// False when one that is there could not be measured.
bool measure(std::vector<Contestant>& all, uint64_t jobs) {
  bool good = true;
  for (Contestant& one : all) {
    one.is_missing = !one.program.empty() && !is_installed(std::string(one.program));
    if (one.is_missing) continue;
    Result<Measurement> measured = one.measure(jobs);
    if (measured.ok()) {
      one.measured = *measured;
    } else {
      fmt::print(stderr, "{}: {}\n", one.key, to_string(measured.error()));
      good = false;
    }
  }
  return good;
}

/// How many times the rate of beanstalkd, where both are known.
std::optional<double> ratio(const std::vector<Contestant>& all, const Contestant& one) {
  const auto base =
      std::find_if(all.begin(), all.end(), [](const Contestant& c) { return c.key == "beanstalkd"; });
  if (!one.measured || base == all.end() || !base->measured) return std::nullopt;
  return one.measured->per_second / base->measured->per_second;
}

void print_table(const std::vector<Contestant>& all, uint64_t jobs) {
  fmt::print(
      "{} pushes of {} B bodies, due in an hour; peers over TCP, 50 connections x 32 requests under way\n",
      jobs, kBodySize);
  report("", fmt::format("{:>10} {:>9} {:>13}", "pushes", "RAM/job", "to beanstalkd"));
  for (const Contestant& one : all) {
    if (!one.measured) {
      report(one.what, fmt::format("{:>34}", one.is_missing ? "not installed" : "failed"));
      continue;
    }
    const std::optional<double> times = ratio(all, one);
    report(one.what, fmt::format("{:>6.0f} k/s {:>7.0f} B {:>13}", one.measured->per_second / 1000,
                                 one.measured->bytes_per_job, times ? fmt::format("{:.2f}x", *times) : "-"));
    if (one.measured->jobs < jobs) {
      fmt::print("  (stopped after {} s with {} jobs answered)\n", kPeerLimit.count(), one.measured->jobs);
    }
  }
  fmt::print(
      "Ours is called in process, 2,048 jobs a commit, with no wire between: the ratio is one of engines,\n");
  fmt::print("not of servers. RAM is with the body for the peers; ours keeps bodies on disk.\n");
}

void print_json(const std::vector<Contestant>& all, uint64_t jobs) {
  fmt::print("{{\"jobs\": {}, \"body_bytes\": {}, \"results\": [", jobs, kBodySize);
  std::string_view separator;
  for (const Contestant& one : all) {
    fmt::print("{}\n  {{\"name\": \"{}\", \"in_process\": {}, ", separator, one.key, one.program.empty());
    if (one.measured) {
      const std::optional<double> times = ratio(all, one);
      fmt::print("\"state\": \"measured\", \"answered\": {}, ", one.measured->jobs);
      fmt::print("\"per_second\": {:.0f}, \"bytes_per_job\": {:.1f}, ", one.measured->per_second,
                 one.measured->bytes_per_job);
      fmt::print("\"to_beanstalkd\": {}}}", times ? fmt::format("{:.3f}", *times) : "null");
    } else {
      fmt::print("\"state\": \"{}\"}}", one.is_missing ? "not installed" : "failed");
    }
    separator = ",";
  }
  fmt::print("\n]}}\n");
}

int run(bool smoke, bool json) {
  const uint64_t jobs = smoke ? 2'000 : 400'000;
  std::vector<Contestant> all = contestants();
  const bool good = measure(all, jobs);
  if (json) {
    print_json(all, jobs);
  } else {
    print_table(all, jobs);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace delayq::bench

int main(int argc, char** argv) {
  const bool smoke = delayq::bench::is_smoke(argc, argv);
  const bool json =
      std::any_of(argv + 1, argv + argc, [](const char* arg) { return std::string_view(arg) == "--json"; });
  return delayq::bench::run(smoke, json);
}
