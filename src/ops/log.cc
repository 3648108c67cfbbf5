#include "ops/log.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <mutex>
#include <poll.h>
#include <sys/stat.h>
#include <syslog.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>
#include <spdlog/formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>

#include "core/moment.h"
#include "json/writer.h"

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

namespace {

using std::chrono::days;
using std::chrono::sys_days;

std::string name_of(sys_days day) {
  const std::chrono::year_month_day date{day};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

bool looks_like_a_day(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-dd";
  if (text.size() < kShape.size()) return false;
  return std::equal(kShape.begin(), kShape.end(), text.begin(),
                    [](char shape, char c) { return shape == 'd' ? c >= '0' && c <= '9' : c == shape; });
}

/// Finds a name that no file has: if the clock was set back, there may be a file of that day already.
std::string free_name(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; ::access(name.c_str(), F_OK) == 0; ++i) name = fmt::format("{}.{}", wanted, i);
  return name;
}

}  // namespace

Result<std::unique_ptr<DailyFile>> DailyFile::open(Options options) {
  // If the directory cannot be created, opening the file fails and reports it.
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(options.path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  auto file = std::unique_ptr<DailyFile>(new DailyFile(std::move(options)));
  if (Status status = file->reopen(); !status) return status.error();
  return file;
}

DailyFile::~DailyFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status DailyFile::reopen() {
  constexpr mode_t kMode = 0640;
  const int descriptor = ::open(options_.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kMode);
  struct stat info {};
  if (descriptor < 0 || ::fstat(descriptor, &info) != 0) {
    Error error{ErrorCode::kUnavailable,
                "log",
                fmt::format("{}: {}", options_.path, std::generic_category().message(errno)),
                {}};
    if (descriptor >= 0) ::close(descriptor);
    return error;
  }
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = descriptor;
  is_a_file_ = S_ISREG(info.st_mode);
  day_.reset();
  if (info.st_size > 0) {
    day_ = std::chrono::floor<days>(std::chrono::sys_seconds{std::chrono::seconds{info.st_mtime}});
  }
  return {};
}

void DailyFile::write(Moment at, std::string_view lines) {
  const sys_days day = std::chrono::floor<days>(at);
  if (is_a_file_ && day_ && day > *day_) rotate(day);
  day_ = day_ ? std::max(day, *day_) : day;
  while (!lines.empty()) {
    const ssize_t written = ::write(descriptor_, lines.data(), lines.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    lines.remove_prefix(static_cast<size_t>(written));
  }
  lost_bytes_ += lines.size();
}

void DailyFile::rotate(sys_days today) {
  // If it cannot be renamed, or a new one cannot be opened, lines are written to the old one.
  const std::string kept = free_name(fmt::format("{}.{}", options_.path, name_of(*day_)));
  if (std::rename(options_.path.c_str(), kept.c_str()) != 0 || !reopen().ok()) return;
  if (options_.keep_days > 0) remove_before(today - days{options_.keep_days});
}

void DailyFile::remove_before(sys_days oldest) {
  namespace fs = std::filesystem;
  const fs::path path(options_.path);
  const std::string prefix = path.filename().string() + ".";
  const std::string oldest_name = name_of(oldest);
  std::error_code problem;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const std::string_view day = std::string_view(name).substr(prefix.size());
    std::error_code ignored;
    if (looks_like_a_day(day) && day.substr(0, oldest_name.size()) < oldest_name)
      fs::remove(entry->path(), ignored);
  }
}

}  // namespace delayq
