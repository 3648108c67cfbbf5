#include "ops/access_log.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "core/moment.h"
#include "core/text.h"
#include "json/writer.h"

namespace delayq {

namespace {

/// The longest path that is logged; paths with names of topics and ids are shorter.
constexpr size_t kMostOfTarget = 1'024;

bool is_plain(char c) { return c > ' ' && c < '\x7f' && c != '\\'; }

/// Whether a UTF-8 text has one of U+0080 to U+009F, which are control characters for some terminals.
bool has_late_control(std::string_view text) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\xc2' && static_cast<unsigned char>(text[i + 1]) < 0xa0) return true;
  }
  return false;
}

/// Bytes that would end a word, or control a terminal, are written as \xNN.
void append_escaped(std::string& out, std::string_view text) {
  const bool is_right = is_utf8(text) && !has_late_control(text);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(c) || (byte >= 0x80 && is_right)) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    }
  }
}

void append_word(std::string& out, std::string_view text) {
  if (text.empty()) {
    out += '-';
  } else if (std::all_of(text.begin(), text.end(), is_plain)) {
    out += text;
  } else {
    append_escaped(out, text);
  }
}

void append_number(std::string& out, uint64_t number) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

std::string_view shortened(std::string_view target) { return target.substr(0, kMostOfTarget); }

void append_text(std::string& out, const Served& served, std::string_view time) {
  out += time;
  append_who_and_what(out, served);
  out += ' ';
  append_number(out, static_cast<uint64_t>(served.status));
  out += ' ';
  append_word(out, served.code);
  for (const uint64_t number :
       {served.bytes_in, served.bytes_out, static_cast<uint64_t>(served.took.count())}) {
    out += ' ';
    append_number(out, number);
  }
  out += "us";
}

void append_json(std::string& out, const Served& served, std::string_view time) {
  json::Writer json(out);
  json.begin_object()
      .key("time")
      .text(time)
      .key("protocol")
      .text(served.protocol)
      .key("peer")
      .text(served.peer);
  if (!served.token.empty()) json.key("token").text(served.token);
  json.key("verb").text(served.verb).key("target").text(shortened(served.target));
  json.key("status").number(static_cast<uint64_t>(served.status));
  if (!served.code.empty()) json.key("code").text(served.code);
  json.key("bytes_in").number(served.bytes_in).key("bytes_out").number(served.bytes_out);
  json.key("took_us").number(static_cast<uint64_t>(served.took.count())).end_object();
}

}  // namespace

void append_who_and_what(std::string& out, const Served& served) {
  for (const std::string_view word :
       {served.protocol, served.peer, served.token, served.verb, shortened(served.target)}) {
    out += ' ';
    append_word(out, word);
  }
}

void append_served(std::string& out, const Served& served, std::string_view time, Config::LogFormat format) {
  if (format == Config::LogFormat::kJson) {
    append_json(out, served, time);
  } else {
    append_text(out, served, time);
  }
  out += '\n';
}

std::string slow_warning(const Served& served, Millis slow) {
  if (slow == Millis::zero() || served.may_wait || served.took <= slow) return {};
  std::string text = "slow request:";
  append_who_and_what(text, served);
  text += fmt::format(" took {}ms", std::chrono::duration_cast<Millis>(served.took).count());
  return text;
}

void RefusalLog::note(const Served& served) {
  const Moment second = std::chrono::floor<std::chrono::seconds>(served.at);
  if (second != second_) {
    if (count_ > kLinesPerSecond) spdlog::warn("turned away: {} more", count_ - kLinesPerSecond);
    second_ = second;
    count_ = 0;
  }
  if (++count_ > kLinesPerSecond) return;
  std::string text = "turned away:";
  append_who_and_what(text, served);
  spdlog::warn("{}: {}", text, served.code);
}

namespace {

/// How long a line may wait before it is written.
constexpr std::chrono::seconds kLongestWait{1};
/// This many bytes are written at once.
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
  PendingLines batch;
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

void AccessLog::write(const PendingLines& batch) {
  const uint64_t lost_before = file_->lost_bytes();
  for (size_t i = 0; i < batch.days.size(); ++i) {
    const size_t end = i + 1 < batch.days.size() ? batch.days[i + 1].begin : batch.lines.size();
    const size_t begin = batch.days[i].begin;
    file_->write(batch.days[i].at, std::string_view(batch.lines).substr(begin, end - begin));
  }
  // Logged once, until lines are written again without a loss.
  const bool is_losing = batch.lost > 0 || file_->lost_bytes() > lost_before;
  if (is_losing && !told_of_loss_) spdlog::warn("log.access: not all lines could be written; some are lost");
  told_of_loss_ = is_losing;
}

}  // namespace delayq
