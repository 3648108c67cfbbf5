#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/limits.h"
#include "core/result.h"
#include "engine/journal/backup.h"
#include "engine/journal/disk.h"

namespace delayq::journal {

/// A directory of the real file system. Thread-safe as Disk and File require.
class PosixDisk final : public Disk {
 public:
  /// Creates the directory (and its parents) if it is missing.
  static Result<std::unique_ptr<PosixDisk>> open(const std::string& directory);
  /// For read-only use (scratch_disk.h): opens files for reading only; the lock keeps writers out and leaves
  /// no file behind. Creates nothing.
  static Result<std::unique_ptr<PosixDisk>> open_to_read(const std::string& directory);
  ~PosixDisk() override;
  PosixDisk(const PosixDisk&) = delete;
  PosixDisk& operator=(const PosixDisk&) = delete;

  std::string name() const override { return path_; }
  Result<std::vector<std::string>> list() override;
  Result<std::shared_ptr<File>> create(std::string_view name) override;
  Result<std::shared_ptr<File>> open(std::string_view name) override;
  Status remove(std::string_view name) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status sync_directory() override;
  Result<uint64_t> free_bytes() override;
  Result<std::unique_ptr<Lock>> lock() override;

 private:
  PosixDisk(std::string path, int directory, bool only_reads)
      : path_(std::move(path)), directory_(directory), only_reads_(only_reads) {}
  static Result<std::unique_ptr<PosixDisk>> open_existing(const std::string& directory, bool only_reads);
  Result<std::unique_ptr<Lock>> lock_to_read();
  Error not_locked(int lock) const;
  Result<std::shared_ptr<File>> open_with(std::string_view name, int flags);

  std::string path_;
  int directory_;
  bool only_reads_;
};

/// A directory of the real file system with one directory for each backup. Created with the first backup.
class PosixShelf final : public Shelf {
 public:
  explicit PosixShelf(std::string directory) : directory_(std::move(directory)) {}

  std::string path_of(std::string_view name) const override;
  Result<std::unique_ptr<Disk>> begin(std::string_view name) override;
  Status finish(std::string_view name) override;
  void abandon(std::string_view name) override;

 private:
  std::string partial(std::string_view name) const { return path_of(name).append(kPartialEnding); }

  std::string directory_;
};

/// Io with one thread per lane.
class ThreadedIo final : public Io {
 public:
  /// Returns the current time. Without a Clock, all durations are measured as zero, because nothing here
  /// reads a clock itself.
  using Clock = std::function<std::chrono::microseconds()>;

  explicit ThreadedIo(Clock clock = {});
  /// Finishes all work passed so far. `done` steps that poll() has not run are dropped.
  ~ThreadedIo() override;
  ThreadedIo(const ThreadedIo&) = delete;
  ThreadedIo& operator=(const ThreadedIo&) = delete;

  void run(Lane lane, Step work, Step done) override;
  bool poll() override;
  void drain() override;
  void set_wakeup(std::function<void()> wakeup) override;
  std::chrono::microseconds clock() const override { return clock_ ? clock_() : std::chrono::microseconds{}; }

 private:
  struct Task {
    Step work;
    Step done;
  };
  struct Worker {
    std::deque<Task> tasks;
    std::condition_variable has_tasks;
    std::thread thread;
  };

  void serve(Worker& worker);

  const Clock clock_;
  std::mutex mutex_;  ///< guards everything below except the threads
  std::array<Worker, kLaneCount> workers_;
  std::vector<Step> done_;
  std::condition_variable has_done_;
  std::atomic<bool> any_done_ = false;  ///< lets poll() return without locking the mutex
  std::function<void()> wakeup_;
  size_t unfinished_ = 0;  ///< passed to run(), not yet finished by poll()
  bool stops_ = false;
};

}  // namespace delayq::journal
