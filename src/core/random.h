#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>

#include "core/time.h"

namespace delayq {

/// A well-mixed value of every bit of `value`. Also the step function that fills a Random from one seed.
constexpr uint64_t mix64(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

/// A small, fast, deterministic generator (xoshiro256**): the same seed gives the same numbers on every
/// machine, so a failure is a seed. Not for secrets: the rest can be computed from a few outputs. Not
/// thread-safe. Meets UniformRandomBitGenerator.
class Random {
 public:
  using result_type = uint64_t;

  explicit constexpr Random(uint64_t seed) {
    // Weyl steps through mix64 (splitmix64): never all zero, and near seeds give unrelated states.
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15U;
      word = mix64(seed);
    }
  }

  constexpr uint64_t next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Evenly from [0, bound). REQUIRES: bound > 0.
  constexpr uint64_t below(uint64_t bound) {
    // Values under 2^64 mod bound would make the first remainders more likely; draw again.
    const uint64_t uneven = (0 - bound) % bound;
    uint64_t value = next();
    while (value < uneven) value = next();
    return value % bound;
  }

  /// Evenly from [low, high], both included. REQUIRES: low <= high.
  constexpr uint64_t between(uint64_t low, uint64_t high) {
    const uint64_t width = high - low + 1;  // 0 when the range is all of uint64_t
    return width == 0 ? next() : low + below(width);
  }

  /// True in `numerator` of `denominator` cases.
  constexpr bool chance(uint64_t numerator, uint64_t denominator) { return below(denominator) < numerator; }

  /// Evenly from [0, 1), in steps of 2^-53.
  constexpr double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  constexpr uint64_t operator()() { return next(); }
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return std::numeric_limits<uint64_t>::max(); }

 private:
  std::array<uint64_t, 4> state_{};
};

inline constexpr size_t kUuidTextSize = 36;

/// 128 bits, most significant byte first, as RFC 9562 draws them.
using Uuid = std::array<uint8_t, 16>;

/// "01890a5d-ac96-774b-bcce-b302099a8057", lower case, without a final zero.
void format_uuid(const Uuid& uuid, std::span<char, kUuidTextSize> out);

/// Makes UUIDs of version 7: 48 bits of Unix milliseconds, then 74 random bits. Each is greater than all
/// before it, so ids made by one server sort in the order they were made, as bytes and as text. Within one
/// millisecond, or when the clock went back, the random part grows by a random step instead of being drawn
/// again. Unique across servers as far as their seeds differ; not a secret. Not thread-safe.
class UuidGenerator {
 public:
  explicit UuidGenerator(Random random) : random_(random) { draw(0); }

  /// Goes on after `last`, the latest one of another generator.
  UuidGenerator(Random random, const Uuid& last);

  Uuid next(Moment now);

 private:
  void draw(uint64_t ms);
  bool step();

  Random random_;
  uint64_t last_ms_ = 0;
  // The 74 random bits of the last UUID: 12 bits beside the version, 62 beside the variant.
  uint64_t high_ = 0;
  uint64_t low_ = 0;
};

}  // namespace delayq
