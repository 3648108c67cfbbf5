#pragma once

#include <cstdint>

#include "core/served.h"

namespace delayq {

/// Warns of requests that were turned away for want of the right token. Somebody who tries many does not fill
/// the log: above a few in a while they are only counted.
class DoorLog {
 public:
  static constexpr uint32_t kLines = 10;                      ///< at most,
  static constexpr Millis kWhile = std::chrono::seconds{10};  ///< in this time

  void note(const Served& served);

 private:
  Moment began_{};
  uint32_t lines_ = 0;
  uint64_t untold_ = 0;
};

}  // namespace delayq
