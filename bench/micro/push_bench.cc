// Durable pushes against the raw limit: the same bytes, in the same commits, appended and synced with nothing
// else.
#include <fcntl.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "bench/micro/harness.h"

namespace delayq::bench {
namespace {

constexpr size_t kBatch = 2048;
constexpr size_t kBody = 128;

/// Pushes per second when a commit is one write and one fdatasync of the bytes that the engine writes for it.
double raw_append(const std::string& directory, size_t bytes_per_commit, int commits) {
  const std::vector<char> bytes(bytes_per_commit, 'x');
  const std::string path = directory + "/raw";
  const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  const Stopwatch watch;
  for (int i = 0; i < commits; ++i) {
    if (::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
        ::fdatasync(file) != 0) {
      std::abort();
    }
  }
  const double seconds = watch.seconds();
  ::close(file);
  ::unlink(path.c_str());
  return static_cast<double>(kBatch) * commits / seconds;
}

/// One round on a fresh directory.
double engine_pushes(int commits, uint64_t& bytes_per_commit) {
  const TempDirectory directory;
  EngineHost host(directory.path());
  JobMaker maker("order", kBody, std::chrono::minutes(1), std::chrono::days(30));
  const uint64_t commits_before = host->usage().commits;
  const Stopwatch watch;
  fill(host, maker, 0, kBatch * static_cast<uint64_t>(commits));
  const double seconds = watch.seconds();
  const EngineUsage usage = host->usage();
  bytes_per_commit = usage.live_bytes / static_cast<uint64_t>(commits);
  if (usage.commits - commits_before != static_cast<uint64_t>(commits)) {
    fmt::print("  ({} commits instead of {})\n", usage.commits - commits_before, commits);
  }
  return static_cast<double>(kBatch) * commits / seconds;
}

void run(bool smoke) {
  const int commits = smoke ? 4 : 250;
  const int rounds = smoke ? 1 : 7;
  const TempDirectory directory;
  uint64_t bytes = 0;
  engine_pushes(smoke ? 1 : 50, bytes);  // warm up, and learn how many bytes a commit has
  std::vector<double> ratios;
  std::vector<double> raws;
  std::vector<double> ours;
  for (int i = 0; i < rounds; ++i) {
    raws.push_back(raw_append(directory.path(), bytes, commits));
    ours.push_back(engine_pushes(commits, bytes));
    ratios.push_back(ours.back() / raws.back());
  }
  report("bare append + fdatasync, 2,048 records a commit", fmt::format("{:.0f} k/s", median(raws) / 1000));
  report("durable push, 128 B bodies, 2,048 a commit", fmt::format("{:.0f} k/s", median(ours) / 1000));
  const double ratio = median(ratios);
  report("ratio, median of rounds", fmt::format("{:.2f}x", ratio), ">= 0.6x", ratio >= 0.6);
}

}  // namespace
}  // namespace delayq::bench

int main(int argc, char** argv) { delayq::bench::run(delayq::bench::is_smoke(argc, argv)); }
