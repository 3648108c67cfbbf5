#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace delayq {

namespace crc32c_internal {

using Function = uint32_t (*)(uint32_t, const void*, size_t);

/// Slice-by-8, for machines without the instruction. Public for tests.
uint32_t portable(uint32_t seed, const void* data, size_t size);

/// SSE4.2 and PCLMULQDQ. REQUIRES: hardware_available().
uint32_t hardware(uint32_t seed, const void* data, size_t size);
bool hardware_available();

/// The implementation in use. It first points to a function that chooses the implementation, stores it here
/// and calls it, so crc32c() works during static initialisation too. Relaxed order is enough: every function
/// that it can point to computes the same.
extern std::atomic<Function> chosen;

}  // namespace crc32c_internal

/// CRC-32C (Castagnoli), the checksum of journal records. `seed` is 0, or the result for the bytes before
/// these: crc32c(crc32c(0, a), b) == crc32c(0, a + b). Thread-safe.
inline uint32_t crc32c(uint32_t seed, const void* data, size_t size) {
  return crc32c_internal::chosen.load(std::memory_order_relaxed)(seed, data, size);
}

inline uint32_t crc32c(uint32_t seed, std::span<const std::byte> bytes) {
  return crc32c(seed, bytes.data(), bytes.size());
}

}  // namespace delayq
