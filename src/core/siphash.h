#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/encoding.h"

namespace delayq {

/// A secret that makes hashes unpredictable to clients that choose the ids.
struct SipKey {
  uint64_t low = 0;
  uint64_t high = 0;
};

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;

  bool operator==(const Hash128&) const = default;
};

namespace siphash_internal {

struct State {
  uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }

  void absorb(uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }

  uint64_t squeeze() {
    for (int i = 0; i < 4; ++i) round();
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

/// The 0-7 bytes after the last full word, and the length in the top byte, as the algorithm wants them.
inline uint64_t last_word(const unsigned char* data, size_t size) {
  const uint64_t length = static_cast<uint64_t>(size) << 56;
  const size_t left = size % 8;
  if (size >= 8) {
    // One load that ends with the input and is shifted down beats seven single bytes.
    const uint64_t tail = load_le<uint64_t>(data + size - 8);
    return left == 0 ? length : length | (tail >> (8 * (8 - left)));
  }
  uint64_t tail = 0;
  for (size_t i = 0; i < left; ++i) tail |= static_cast<uint64_t>(data[i]) << (8 * i);
  return length | tail;
}

}  // namespace siphash_internal

/// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein). In the header because the hot path hashes
/// keys of about 20 bytes, where a call and its spills would cost a good part of the work.
inline Hash128 siphash128(const SipKey& key, const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  // The four start words are the ASCII of "somepseudorandomlygeneratedbytes"; 0xee marks the 128-bit variant.
  siphash_internal::State state{key.low ^ 0x736f6d6570736575U, key.high ^ 0x646f72616e646f6dU ^ 0xeeU,
                                key.low ^ 0x6c7967656e657261U, key.high ^ 0x7465646279746573U};
  const size_t full = size & ~size_t{7};
  for (size_t i = 0; i < full; i += 8) state.absorb(load_le<uint64_t>(bytes + i));
  state.absorb(siphash_internal::last_word(bytes, size));
  Hash128 hash;
  state.v2 ^= 0xee;
  hash.low = state.squeeze();
  state.v1 ^= 0xdd;
  hash.high = state.squeeze();
  return hash;
}

inline Hash128 siphash128(const SipKey& key, std::string_view text) {
  return siphash128(key, text.data(), text.size());
}

}  // namespace delayq
