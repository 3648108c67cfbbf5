#include "ops/refusal_log.h"

#include <chrono>

#include <spdlog/spdlog.h>

#include "ops/served_text.h"

namespace delayq {

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

}  // namespace delayq
