#include "net/redis/slot.h"

#include <array>

namespace delayq::net::redis {

namespace {

constexpr std::array<uint16_t, 256> make_table() {
  std::array<uint16_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t value = byte << 8;
    for (int bit = 0; bit < 8; ++bit) value = (value & 0x8000) != 0 ? (value << 1) ^ 0x1021 : value << 1;
    table[byte] = static_cast<uint16_t>(value);
  }
  return table;
}
constexpr std::array<uint16_t, 256> kTable = make_table();

std::string_view tag_of(std::string_view key) {
  const size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  const size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

}  // namespace

uint16_t slot_of(std::string_view key) {
  uint16_t value = 0;
  for (const char c : tag_of(key)) {
    const auto byte = static_cast<uint8_t>(c);
    value = static_cast<uint16_t>((value << 8) ^ kTable[((value >> 8) ^ byte) & 0xff]);
  }
  return value % kSlots;
}

}  // namespace delayq::net::redis
