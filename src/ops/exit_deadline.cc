#include "ops/exit_deadline.h"

#include <cstdlib>
#include <utility>

namespace delayq {

ExitDeadline::ExitDeadline(Millis time, int exit_code, std::function<void()> late)
    : thread_([this, time, exit_code, late = std::move(late)] {
        std::unique_lock lock(mutex_);
        if (changed_.wait_for(lock, time, [this] { return is_over_; })) return;
        late();
        std::_Exit(exit_code);
      }) {}

ExitDeadline::~ExitDeadline() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

}  // namespace delayq
