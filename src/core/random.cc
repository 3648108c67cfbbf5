#include "core/random.h"

#include <algorithm>

namespace delayq {

namespace {

constexpr uint64_t kMaxMs = (uint64_t{1} << 48) - 1;
constexpr int kHighBits = 12;
constexpr int kLowBits = 62;
constexpr uint64_t kHighMask = (uint64_t{1} << kHighBits) - 1;
constexpr uint64_t kLowMask = (uint64_t{1} << kLowBits) - 1;

/// Large enough that the next id cannot be guessed by counting, small enough that the ids of one millisecond
/// are not used up.
constexpr int kStepBits = 32;

void store_big_endian(uint8_t* out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<uint8_t>(value >> (56 - 8 * i));
}

uint64_t load_big_endian(const uint8_t* from) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = (value << 8) | from[i];
  return value;
}

}  // namespace

UuidGenerator::UuidGenerator(Random random, const Uuid& last) : random_(random) {
  const uint64_t first_half = load_big_endian(last.data());
  last_ms_ = first_half >> 16;
  high_ = first_half & kHighMask;
  low_ = load_big_endian(last.data() + 8) & kLowMask;
}

void UuidGenerator::draw(uint64_t ms) {
  last_ms_ = ms;
  high_ = random_.next() >> (64 - kHighBits);
  low_ = random_.next() >> (64 - kLowBits);
}

/// Returns false when the 74 bits would overflow.
bool UuidGenerator::step() {
  low_ += 1 + (random_.next() >> (64 - kStepBits));
  if (low_ <= kLowMask) return true;
  low_ &= kLowMask;
  return ++high_ <= kHighMask;
}

Uuid UuidGenerator::next(Moment now) {
  const auto ms = std::min(static_cast<uint64_t>(std::max<int64_t>(to_unix_ms(now), 0)), kMaxMs);
  if (ms > last_ms_) {
    draw(ms);
  } else if (!step()) {
    draw(last_ms_ + 1);
  }
  Uuid uuid;
  store_big_endian(uuid.data(), (last_ms_ << 16) | (uint64_t{7} << 12) | high_);
  store_big_endian(uuid.data() + 8, (uint64_t{2} << kLowBits) | low_);
  return uuid;
}

void format_uuid(const Uuid& uuid, std::span<char, kUuidTextSize> out) {
  constexpr char kDigits[] = "0123456789abcdef";
  char* at = out.data();
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
    *at++ = kDigits[uuid[i] >> 4];
    *at++ = kDigits[uuid[i] & 15];
  }
}

}  // namespace delayq
