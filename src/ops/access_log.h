#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/result.h"
#include "core/served.h"
#include "ops/config.h"
#include "ops/log.h"

namespace delayq {

/// Appends the line of an access log, including its end. `time` is served.at as text, because a caller that
/// writes many lines already has it.
///
///   2026-11-14T10:00:00.000Z http 127.0.0.1:40312 shop POST /v1/topics/order/jobs 201 - 96 81 412us
///   {"time":"2026-11-14T10:00:00.000Z","protocol":"http","peer":...,"bytes_in":96,"bytes_out":81,"took_us":412}
///
/// The text has time, protocol, peer, token, verb, target, status, error code, bytes in, bytes out and time
/// taken, with "-" for a value that does not exist. A client cannot break out of its line.
void append_served(std::string& out, const Served& served, std::string_view time, Config::LogFormat format);

/// " http 127.0.0.1:40312 shop POST /v1/topics/order/jobs": the same words, for other log messages.
void append_who_and_what(std::string& out, const Served& served);

/// The log message for a request that took longer than `slow`; empty if it did not, or if `slow` is zero.
std::string slow_warning(const Served& served, Millis slow);

/// Logs a warning for each request that was refused because of its caller, without the secret. Only the first
/// few of each second get a line, and the next line has the number of the others: so a client cannot fill the
/// disk with refused requests.
class RefusalLog {
 public:
  static constexpr uint64_t kLinesPerSecond = 10;

  void note(const Served& served);

 private:
  Moment second_{};  ///< the one that is being counted
  uint64_t count_ = 0;
};

/// A line for each request, in log.access. note() only writes into memory; a thread writes that to the file
/// once a second, or when there is much of it, so requests do not wait for a slow disk. When the disk is so
/// slow that kMostPending is reached, lines are dropped, and the log says so.
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
  /// Makes the thread open the file by its name again.
  void reopen();

 private:
  /// Lines, and the positions at which another day begins.
  struct PendingLines {
    struct Day {
      Moment at;
      size_t begin;
    };
    std::string lines;
    std::vector<Day> days;
    uint64_t lost = 0;  ///< lines that were dropped
  };

  void work();
  void write(const PendingLines& batch);

  const Config::LogFormat format_;
  Moment last_at_ = kNever;  ///< of the last line; many lines have the same time, so its text is kept
  std::string last_time_;

  std::mutex mutex_;
  std::condition_variable changed_;
  PendingLines pending_;
  bool wants_reopen_ = false;
  bool is_over_ = false;

  // ---- the thread's own
  std::unique_ptr<DailyFile> file_;
  bool told_of_loss_ = false;
  std::thread thread_;
};

}  // namespace delayq
