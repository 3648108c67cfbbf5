#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/random.h"
#include "core/time.h"

namespace delayq {

inline constexpr size_t kUuidTextSize = 36;

/// 128 bits, most significant byte first, as RFC 9562 draws them.
using Uuid = std::array<uint8_t, 16>;

/// "01890a5d-ac96-774b-bcce-b302099a8057", lower case, without a final zero.
void format_uuid(const Uuid& uuid, std::span<char, kUuidTextSize> out);

/// Makes UUIDs of version 7: 48 bits of Unix milliseconds, then 74 random bits. Each is greater than all
/// before it, so ids made by one server sort in the order they were made, as bytes and as text. Within one
/// millisecond, or when the clock went back, the random part grows by a random step instead of being drawn
/// anew. Unique across servers as far as their seeds differ; not a secret. Not thread-safe.
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
