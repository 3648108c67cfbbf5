#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

namespace delayq {

/// A well-mixed value of every bit of `value`. Also the step function that fills a Random from one seed.
constexpr uint64_t mix64(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

/// A small, fast, deterministic generator (xoshiro256**): the same seed gives the same numbers on every
/// machine, so a failure is a seed. Not for secrets: who sees a few outputs can compute the rest. Not
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

}  // namespace delayq
