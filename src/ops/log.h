#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <spdlog/sinks/stdout_color_sinks.h>

#include "core/result.h"
#include "core/time.h"
#include "ops/config.h"

namespace delayq {

/// A file that lines are appended to, with a new one for each day. With the first line of another day (UTC),
/// the file is renamed after the day of its lines, to "name.2026-11-14", and files older than the last
/// `keep_days` days are removed. The time of a line is an argument; the day of lines of an earlier run is the
/// day of the file's modification time.
///
/// Lines that cannot be written are lost, and counted: a server does not stop because of its log. Not
/// thread-safe.
class DailyFile {
 public:
  struct Options {
    std::string path;
    uint32_t keep_days = 0;  ///< 0: all of them
  };

  /// Creates the file and its folders if they do not exist. Fails with kUnavailable.
  static Result<std::unique_ptr<DailyFile>> open(Options options);
  ~DailyFile();
  DailyFile(const DailyFile&) = delete;
  DailyFile& operator=(const DailyFile&) = delete;

  /// Writes one line or several of the same day, each with its end. A day before that of the last lines does
  /// not start a new file.
  void write(Moment at, std::string_view lines);
  /// Opens the file by its name again, after another program has moved it. On an error the old one stays in
  /// use.
  Status reopen();
  uint64_t lost_bytes() const { return lost_bytes_; }

 private:
  explicit DailyFile(Options options) : options_(std::move(options)) {}
  void rotate(std::chrono::sys_days today);
  void remove_before(std::chrono::sys_days oldest);

  Options options_;
  int descriptor_ = -1;
  bool is_a_file_ = false;  ///< anything else, such as a terminal or a pipe, is never renamed
  std::optional<std::chrono::sys_days> day_;  ///< of its last lines; none while it is empty
  uint64_t lost_bytes_ = 0;
};

/// Standard error, with colours on a terminal. Its reader may stop reading: a pager, a stopped terminal, a
/// log collector that hangs. Jobs do not wait for it: lines that do not fit are dropped, and the next line
/// that fits comes after one with the number of dropped lines.
class ConsoleSink final : public spdlog::sinks::stderr_color_sink_mt {
 public:
  void log(const spdlog::details::log_msg& message) override;

 private:
  using Console = spdlog::sinks::stderr_color_sink_mt;
  std::mutex mutex_;
  uint64_t left_out_ = 0;
};

/// Configures spdlog's default logger as `log` says. It writes lines of UTC time, level and message:
/// "2030-01-31T08:00:00.000Z info listening on ..."; or objects of JSON with "time", "level" and "message".
/// There is a new file each day (DailyFile). A daemon has no standard error: without a file it logs to
/// syslog. Call it before other threads log. Fails with kUnavailable when the file cannot be opened; then the
/// logger is unchanged.
Status start_log(const Config::Log& log, bool is_daemon = false);

/// Opens the log's file by its name again, after another program has moved it. May be called from any thread.
Status reopen_log();

}  // namespace delayq
