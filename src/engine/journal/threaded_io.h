#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/journal/disk.h"

namespace delayq::journal {

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
