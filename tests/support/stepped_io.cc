#include "tests/support/stepped_io.h"

#include <algorithm>
#include <utility>

namespace delayq::support {

using journal::Lane;

void SteppedIo::run(Lane lane, Step work, Step done) {
  lanes_[static_cast<size_t>(lane)].push_back({std::move(work), std::move(done)});
}

bool SteppedIo::poll() {
  if (finished_.empty()) return false;
  // A `done` may start new work, and a step run then may finish it: those wait for the next poll.
  std::vector<Step> finished = std::exchange(finished_, {});
  for (Step& done : finished) {
    if (done) done();
  }
  return true;
}

void SteppedIo::drain() {
  while (!idle()) {
    while (step(Lane::kWrite) || step(Lane::kRead) || step(Lane::kCopy)) {
    }
    poll();
  }
}

bool SteppedIo::step(Lane lane) {
  std::deque<Item>& items = lanes_[static_cast<size_t>(lane)];
  if (items.empty()) return false;
  Item item = std::move(items.front());
  items.pop_front();
  item.work();
  finished_.push_back(std::move(item.done));
  if (wakeup_) wakeup_();
  return true;
}

bool SteppedIo::idle() const {
  return finished_.empty() &&
         std::all_of(lanes_.begin(), lanes_.end(), [](const auto& items) { return items.empty(); });
}

void SteppedIo::abandon() {
  for (std::deque<Item>& items : lanes_) items.clear();
  finished_.clear();
}

}  // namespace delayq::support
