#include "ops/access_log.h"

#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "core/moment.h"
#include "ops/served_text.h"

namespace delayq {

namespace {

/// How long a line may wait for others.
constexpr std::chrono::seconds kLongestWait{1};
/// And how many bytes do not wait any longer.
constexpr size_t kEnough = size_t{256} << 10;

auto day_of(Moment at) { return std::chrono::floor<std::chrono::days>(at); }

}  // namespace

Result<std::unique_ptr<AccessLog>> AccessLog::open(const Config::Log& log) {
  auto file = DailyFile::open({.path = log.access, .keep_days = log.keep_days});
  if (!file.ok()) {
    return Error{ErrorCode::kUnavailable, "log", fmt::format("log.access: {}", file.error().detail), {}};
  }
  return std::make_unique<AccessLog>(std::move(*file), log.format);
}

AccessLog::AccessLog(std::unique_ptr<DailyFile> file, Config::LogFormat format)
    : format_(format), file_(std::move(file)), thread_([this] { work(); }) {}

AccessLog::~AccessLog() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void AccessLog::note(const Served& served) {
  if (served.at != last_at_) {
    last_at_ = served.at;
    last_time_ = format_moment(served.at);
  }
  bool is_news = false;
  {
    const std::lock_guard lock(mutex_);
    const size_t before = pending_.lines.size();
    if (before >= kMostPending) {
      ++pending_.lost;
      return;
    }
    if (pending_.days.empty() || day_of(pending_.days.back().at) != day_of(served.at)) {
      pending_.days.push_back({served.at, before});
    }
    append_served(pending_.lines, served, last_time_, format_);
    is_news = before == 0 || (before < kEnough && pending_.lines.size() >= kEnough);
  }
  if (is_news) changed_.notify_one();
}

void AccessLog::reopen() {
  {
    const std::lock_guard lock(mutex_);
    wants_reopen_ = true;
  }
  changed_.notify_one();
}

void AccessLog::work() {
  Batch batch;
  std::unique_lock lock(mutex_);
  while (true) {
    const auto is_called = [this] { return is_over_ || wants_reopen_; };
    changed_.wait(lock, [&] { return is_called() || !pending_.lines.empty(); });
    changed_.wait_for(lock, kLongestWait, [&] { return is_called() || pending_.lines.size() >= kEnough; });
    std::swap(batch, pending_);
    const bool reopens = std::exchange(wants_reopen_, false);
    const bool is_last = is_over_;
    lock.unlock();
    write(batch);
    batch.lines.clear();
    batch.days.clear();
    batch.lost = 0;
    if (reopens) {
      if (const Status status = file_->reopen(); !status)
        spdlog::error("log.access: {}", status.error().detail);
    }
    if (is_last) return;
    lock.lock();
  }
}

void AccessLog::write(const Batch& batch) {
  const uint64_t lost_before = file_->lost_bytes();
  for (size_t i = 0; i < batch.days.size(); ++i) {
    const size_t end = i + 1 < batch.days.size() ? batch.days[i + 1].begin : batch.lines.size();
    const size_t begin = batch.days[i].begin;
    file_->write(batch.days[i].at, std::string_view(batch.lines).substr(begin, end - begin));
  }
  // Said once, until all goes well again.
  const bool is_losing = batch.lost > 0 || file_->lost_bytes() > lost_before;
  if (is_losing && !told_of_loss_)
    spdlog::warn("log.access: the disk does not take all lines; some are lost");
  told_of_loss_ = is_losing;
}

}  // namespace delayq
