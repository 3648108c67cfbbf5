#include "bench/load/progress_bar.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

namespace delayq::bench {

ProgressBar::ProgressBar(std::string what, uint64_t total)
    : what_(std::move(what)),
      total_(total),
      is_terminal_(::isatty(STDERR_FILENO) == 1),
      begun_(std::chrono::steady_clock::now()),
      shown_(begun_) {}

ProgressBar::~ProgressBar() {
  if (is_terminal_) std::fputs("\r\x1b[K", stderr);
}

std::string ProgressBar::text(const std::string& what, uint64_t done, uint64_t total, double seconds) {
  constexpr size_t kCells = 24;
  const double share = total > 0 ? std::min(1.0, static_cast<double>(done) / static_cast<double>(total)) : 0;
  const auto full = static_cast<size_t>(share * static_cast<double>(kCells));
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  return fmt::format("{:<10} [{}{}] {:>3.0f} %  {:>8.0f}/s", what, std::string(full, '#'),
                     std::string(kCells - full, '.'), share * 100, rate);
}

void ProgressBar::show(uint64_t done) {
  if (!is_terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - shown_ < std::chrono::milliseconds(100)) return;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - begun_).count();
  fmt::print(stderr, "\r{}\x1b[K", text(what_, done, total_, seconds));
  std::fflush(stderr);
}

}  // namespace delayq::bench
