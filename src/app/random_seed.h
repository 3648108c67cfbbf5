#pragma once

#include <cstdint>
#include <random>

namespace delayq {

/// An unpredictable number, for what must differ from one start to the next.
inline uint64_t random_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32) ^ device();
}

}  // namespace delayq
