#include "ops/daily_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

namespace delayq {

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
