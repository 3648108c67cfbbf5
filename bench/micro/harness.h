#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load/temp_directory.h"
#include "engine/journal/journal_engine.h"
#include "engine/journal/posix_disk.h"

/// What the benchmarks share: a journal engine on a real directory, a clock for measuring, and a table of
/// results.
namespace delayq::bench {

/// A journal engine with real files and threads, driven from the calling thread as a server would.
class EngineHost final : public EngineListener {
 public:
  explicit EngineHost(const std::string& directory, journal::JournalOptions options = default_options());

  static journal::JournalOptions default_options();

  journal::JournalEngine& operator*() { return *engine_; }
  journal::JournalEngine* operator->() { return engine_.get(); }

  /// Polls until `done` holds, sleeping while there is nothing to do.
  void until(const std::function<bool()>& done);
  /// Polls what is there, without waiting.
  void poll();
  void flush();
  void close();
  void open();

  void on_ready(std::string_view, Outlet) override {}
  void on_expired(std::vector<LeaseInfo>) override {}
  void on_schedules_due(std::vector<StoredSchedule>) override {}

  Moment now = from_unix_ms(1'800'000'000'000);

 private:
  std::string directory_;
  journal::JournalOptions options_;
  std::unique_ptr<journal::PosixDisk> disk_;
  std::unique_ptr<journal::ThreadedIo> io_;
  std::unique_ptr<journal::JournalEngine> engine_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_woken_ = false;
};

/// Jobs with ids of 20 bytes, made without cost worth speaking of while they are pushed.
class JobMaker {
 public:
  JobMaker(std::string topic, size_t body_size, Millis first_delay, Millis last_delay, uint64_t seed = 1);

  /// `count` jobs numbered from `first`, valid until the next call.
  const std::vector<NewJob>& make(uint64_t first, size_t count, Moment now);
  /// The id of job `number`.
  static std::string id(uint64_t number);
  const std::string& topic() const { return topic_; }

 private:
  std::string topic_;
  std::string body_;
  uint64_t first_delay_;
  uint64_t last_delay_;
  uint64_t seed_;
  std::string ids_;
  std::vector<NewJob> jobs_;
};

/// Pushes jobs [first, first + count) in batches of 2,048, each batch one commit.
void fill(EngineHost& host, JobMaker& maker, uint64_t first, uint64_t count);

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Resident memory of this process.
uint64_t resident_bytes();
/// CPU time of this process.
double cpu_seconds();

/// Prints a measured figure beside its bar.
void report(std::string_view what, const std::string& measured, std::string_view bar = {}, bool met = true);

/// `--smoke`: sizes at which the benchmark only proves that it works.
bool is_smoke(int argc, char** argv);

/// The middle of several measurements.
double median(std::vector<double> values);

}  // namespace delayq::bench
