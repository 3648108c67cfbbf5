#include "api/http/events.h"

#include <algorithm>

namespace delayq::http {

Moment Events::tick(Moment now) {
  Moment next = kNever;
  std::erase_if(watchers_, [&](const std::weak_ptr<Watcher>& each) {
    const std::shared_ptr<Watcher> watcher = each.lock();
    if (watcher == nullptr) return true;
    const Moment wanted = watcher->watch(now);
    next = std::min(next, wanted);
    return wanted == kNever;
  });
  return next;
}

}  // namespace delayq::http
