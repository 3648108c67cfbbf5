#include "ops/log.h"

#include <memory>
#include <mutex>
#include <poll.h>
#include <syslog.h>
#include <unistd.h>

#include <fmt/format.h>
#include <spdlog/formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>

#include "core/moment.h"
#include "json/writer.h"
#include "ops/daily_file.h"

namespace delayq {

namespace {

/// A pipe that is writable has room for 4,096 bytes, which is more than a line has. A pipe without a reader
/// is writable too, and the write fails at once.
bool has_room() {
  pollfd console{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&console, 1, 0) != 0;
}

}  // namespace

void ConsoleSink::log(const spdlog::details::log_msg& message) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) {
    ++left_out_;
    return;
  }
  if (left_out_ > 0) {
    const std::string told =
        fmt::format("log: lines dropped because standard error was not read: {}", left_out_);
    left_out_ = 0;
    Console::log({message.time, message.source, message.logger_name, spdlog::level::warn, told});
    if (!has_room()) {
      ++left_out_;
      return;
    }
  }
  Console::log(message);
}

namespace {

std::string_view view_of(spdlog::string_view_t text) { return {text.data(), text.size()}; }
Moment moment_of(const spdlog::details::log_msg& message) { return std::chrono::floor<Millis>(message.time); }

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    std::string line;
    json::Writer json(line);
    json.begin_object().key("time").text(format_moment(moment_of(message)));
    json.key("level").text(view_of(spdlog::level::to_string_view(message.level)));
    json.key("message").text(view_of(message.payload)).end_object();
    line += '\n';
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

/// Files are rotated by the time of the lines. Nothing is buffered, so that the last lines of a process that
/// crashes are there.
class DailySink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit DailySink(std::unique_ptr<DailyFile> file) : file_(std::move(file)) {}

  Status reopen() {
    const std::lock_guard lock(mutex_);
    return file_->reopen();
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    file_->write(moment_of(message), {line.data(), line.size()});
  }
  void flush_() override {}

  std::unique_ptr<DailyFile> file_;
};

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

Result<spdlog::sink_ptr> sink_of(const Config::Log& log, bool is_daemon) {
  if (!log.file.empty()) {
    auto file = DailyFile::open({.path = log.file, .keep_days = log.keep_days});
    if (!file.ok()) return file.error();
    return spdlog::sink_ptr(std::make_shared<DailySink>(std::move(*file)));
  }
  if (is_daemon) {
    return spdlog::sink_ptr(
        std::make_shared<spdlog::sinks::syslog_sink_mt>("delayq", LOG_PID, LOG_DAEMON, false));
  }
  return spdlog::sink_ptr(std::make_shared<ConsoleSink>());
}

}  // namespace

Status start_log(const Config::Log& log, bool is_daemon) {
  const auto sink = sink_of(log, is_daemon);
  if (!sink.ok()) {
    return Error{ErrorCode::kUnavailable, "log", fmt::format("log.file: {}", sink.error().detail), {}};
  }
  auto logger = std::make_shared<spdlog::logger>("delayq", *sink);
  if (log.format == Config::LogFormat::kJson) {
    logger->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
  }
  logger->set_level(level_of(log.level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

Status reopen_log() {
  for (const spdlog::sink_ptr& sink : spdlog::default_logger()->sinks()) {
    auto* const daily = dynamic_cast<DailySink*>(sink.get());
    if (daily == nullptr) continue;
    if (const Status status = daily->reopen(); !status) {
      return Error{ErrorCode::kUnavailable, "log", fmt::format("log.file: {}", status.error().detail), {}};
    }
  }
  return {};
}

}  // namespace delayq
