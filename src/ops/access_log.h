#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/result.h"
#include "core/served.h"
#include "ops/config.h"
#include "ops/daily_file.h"

namespace delayq {

/// A line for each request, in log.access. note() only writes into memory; a thread of its own takes that to
/// the file once a second, or when there is much of it, so a slow disk holds up nobody. When the disk falls
/// so far behind that kMostPending is reached, lines are lost, and the log says so.
class AccessLog {
 public:
  static constexpr size_t kMostPending = size_t{8} << 20;

  /// REQUIRES: log.access is not empty. Starts a thread: not to be called before a fork().
  static Result<std::unique_ptr<AccessLog>> open(const Config::Log& log);
  AccessLog(std::unique_ptr<DailyFile> file, Config::LogFormat format);
  /// Writes what is left.
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void note(const Served& served);
  /// Opens the file by its name again, soon.
  void reopen();

 private:
  /// Lines, and where in them another day begins.
  struct Batch {
    struct Day {
      Moment at;
      size_t begin;
    };
    std::string lines;
    std::vector<Day> days;
    uint64_t lost = 0;  ///< lines that there was no room for
  };

  void work();
  void write(const Batch& batch);

  const Config::LogFormat format_;
  Moment last_at_ = kNever;  ///< the time of the last line, and its text: lines come in crowds
  std::string last_time_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Batch pending_;
  bool wants_reopen_ = false;
  bool is_over_ = false;

  // ---- the thread's own
  std::unique_ptr<DailyFile> file_;
  bool told_of_loss_ = false;
  std::thread thread_;
};

}  // namespace delayq
