#include "engine/redis/doubt.h"

namespace delayq::redis {

bool Doubt::wants_look(Moment now, bool is_connected) {
  // A clock that was set back makes nothing last longer.
  const auto has_passed = [&](Millis period) { return now < looked_ || now - period >= looked_; };
  if (is_lost_) {
    if (!is_connected || !has_passed(kLookPeriod)) return false;
    is_lost_ = false;
    looked_ = now;
    return true;
  }
  if (is_listening_ && has_passed(kListen)) is_listening_ = false;
  return false;
}

}  // namespace delayq::redis
