#include "ops/door_log.h"

#include <utility>

#include <spdlog/spdlog.h>

#include "core/quote.h"

namespace delayq {

void DoorLog::note(const Served& served) {
  if (served.at - began_ >= kWhile || served.at < began_) {
    if (untold_ > 0) spdlog::warn("{} more requests were turned away", std::exchange(untold_, 0));
    began_ = served.at;
    lines_ = 0;
  }
  if (lines_ == kLines) {
    ++untold_;
    return;
  }
  ++lines_;
  spdlog::warn("turned away: {} from {} {} {} {}: {}", served.protocol, served.peer,
               served.token.empty() ? "(no token)" : quote(served.token), quote(served.verb),
               quote(served.target), served.code);
}

}  // namespace delayq
