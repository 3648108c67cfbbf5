#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>

namespace delayq {

/// Fixed byte order for everything that is stored or hashed. Compilers turn both into one plain move on x86
/// and ARM. No alignment is needed.
template <std::unsigned_integral T>
inline T load_le(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::little) {
    return value;
  } else {
    T swapped = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      swapped = static_cast<T>((swapped << 8) | ((value >> (8 * i)) & 0xff));
    }
    return swapped;
  }
}

template <std::unsigned_integral T>
inline void store_le(void* to, T value) {
  // Reading the value's own bytes as little endian reorders them exactly when the machine is big endian.
  const T ordered = load_le<T>(&value);
  std::memcpy(to, &ordered, sizeof ordered);
}

}  // namespace delayq
