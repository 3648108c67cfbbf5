#pragma once

#include <cstdint>

#include "core/served.h"

namespace delayq {

/// Warns in the log of requests that were turned away for who asked, without the secret that they showed. Of
/// many within a second only the first few get a line, and how many more there were is told with the next:
/// nobody fills a disk by knocking.
class RefusalLog {
 public:
  static constexpr uint64_t kLinesPerSecond = 10;

  void note(const Served& served);

 private:
  Moment second_{};  ///< the one that is being counted
  uint64_t count_ = 0;
};

}  // namespace delayq
