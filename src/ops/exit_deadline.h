#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "core/time.h"

namespace delayq {

/// Ends the process, without any more cleaning up, when it is not destroyed in time. For the last steps of a
/// program, where a thread that hangs in the kernel would be joined for ever.
class [[nodiscard]] ExitDeadline {
 public:
  /// `late` is called on another thread right before the end, to say so. It may not depend on what is being
  /// destroyed meanwhile.
  ExitDeadline(Millis time, int exit_code, std::function<void()> late);
  ~ExitDeadline();
  ExitDeadline(const ExitDeadline&) = delete;
  ExitDeadline& operator=(const ExitDeadline&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace delayq
