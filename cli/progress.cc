#include "cli/progress.h"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <system_error>

#include <fmt/format.h>

#include "cli/human.h"

namespace delayq::cli {

namespace {

constexpr Millis kEvery{100};

}  // namespace

Progress::Progress(const Surroundings& world, std::string what, uint64_t total)
    : world_(world), what_(std::move(what)), total_(total) {}

Progress::~Progress() {
  if (world_.err_is_terminal && shown_ != Moment{}) world_.err << "\r\x1b[K" << std::flush;
}

void Progress::show(uint64_t done, uint64_t count) {
  if (!world_.err_is_terminal) return;
  const Moment now = world_.now();
  if (now - shown_ < kEvery && now >= shown_) return;
  shown_ = now;
  world_.err << "\r" << text(what_, done, total_, count) << "\x1b[K" << std::flush;
}

std::string Progress::text(const std::string& what, uint64_t done, uint64_t total, uint64_t count) {
  constexpr uint64_t kCells = 24;
  const std::string number = grouped(static_cast<int64_t>(count));
  if (total == 0) return fmt::format("{}  {}", what, number);
  const uint64_t share = std::min(done, total);
  const uint64_t full = kCells * share / total;
  return fmt::format("{} [{}{}] {:>3} %  {}", what, std::string(full, '#'), std::string(kCells - full, '.'),
                     100 * share / total, number);
}

uint64_t total_bytes(const std::vector<std::string>& files) {
  uint64_t total = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const uintmax_t size = std::filesystem::file_size(file, error);
    if (error) return 0;
    total += size;
  }
  return total;
}

}  // namespace delayq::cli
