#include "ops/log.h"

#include <memory>

#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace delayq {

namespace {

spdlog::level::level_enum level_of(Config::LogLevel level) {
  switch (level) {
    case Config::LogLevel::kDebug:
      return spdlog::level::debug;
    case Config::LogLevel::kInfo:
      return spdlog::level::info;
    case Config::LogLevel::kWarn:
      return spdlog::level::warn;
    case Config::LogLevel::kError:
      return spdlog::level::err;
    case Config::LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

/// Colours only when a terminal reads.
spdlog::sink_ptr sink_of(const Config::Log& log) {
  if (log.file.empty()) return std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  return std::make_shared<spdlog::sinks::basic_file_sink_mt>(log.file);
}

}  // namespace

Status start_log(const Config::Log& log) {
  try {
    auto logger = std::make_shared<spdlog::logger>("delayq", sink_of(log));
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
    logger->set_level(level_of(log.level));
    // Only debug lines are many enough to be worth a buffer.
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(std::move(logger));
  } catch (const spdlog::spdlog_ex& error) {
    return Error{ErrorCode::kUnavailable, "log", fmt::format("log.file: {}", error.what())};
  }
  return {};
}

}  // namespace delayq
