#pragma once

#include <cstdint>
#include <mutex>

#include <spdlog/sinks/stdout_color_sinks.h>

#include "core/result.h"
#include "ops/config.h"

namespace delayq {

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
/// There is a new file each day (ops/daily_file.h). A daemon has no standard error: without a file it logs to
/// syslog. Call it before other threads log. Fails with kUnavailable when the file cannot be opened; then the
/// logger is unchanged.
Status start_log(const Config::Log& log, bool is_daemon = false);

/// Opens the log's file by its name again, after another program has moved it. May be called from any thread.
Status reopen_log();

}  // namespace delayq
