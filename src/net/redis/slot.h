#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace delayq::net::redis {

inline constexpr uint16_t kSlots = 16384;

/// CRC16 as XMODEM has it, a byte at a time.
inline constexpr std::array<uint16_t, 256> kCrcOfByte = [] {
  std::array<uint16_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t value = byte << 8;
    for (int bit = 0; bit < 8; ++bit) value = (value & 0x8000) != 0 ? (value << 1) ^ 0x1021 : value << 1;
    table[byte] = static_cast<uint16_t>(value);
  }
  return table;
}();

/// Returns the text between the first `{` and the next `}`; the whole key if there is no such text.
constexpr std::string_view hash_tag_of(std::string_view key) {
  const size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  const size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

/// The slot in which a cluster keeps a key: CRC16 of its hash tag.
constexpr uint16_t slot_of(std::string_view key) {
  uint16_t value = 0;
  for (const char c : hash_tag_of(key)) {
    const auto byte = static_cast<uint8_t>(c);
    value = static_cast<uint16_t>((value << 8) ^ kCrcOfByte[((value >> 8) ^ byte) & 0xff]);
  }
  return value % kSlots;
}

}  // namespace delayq::net::redis
