#pragma once

#include <cstdint>
#include <mutex>

#include <spdlog/sinks/stdout_color_sinks.h>

namespace delayq {

/// Standard error, with colours when a terminal reads. Whoever reads it may stop doing so: a pager, a stopped
/// terminal, a collector of logs that hangs. The jobs do not wait for it: lines that find no room are left
/// out, and the next that finds some comes after one that tells how many they were.
class ConsoleSink final : public spdlog::sinks::stderr_color_sink_mt {
 public:
  void log(const spdlog::details::log_msg& message) override;

 private:
  using Console = spdlog::sinks::stderr_color_sink_mt;
  std::mutex mutex_;
  uint64_t left_out_ = 0;
};

}  // namespace delayq
