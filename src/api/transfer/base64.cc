#include "api/transfer/base64.h"

#include <cstdint>

namespace delayq::transfer {

namespace {

/// 64: not a digit.
uint32_t digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<uint32_t>(c - 'A');
  if (c >= 'a' && c <= 'z') return static_cast<uint32_t>(c - 'a') + 26;
  if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0') + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : 64;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const bool is_last = i + 4 == text.size();
    size_t digits = 4;
    while (is_last && digits > 2 && text[i + digits - 1] == '=') --digits;
    uint32_t three = 0;
    for (size_t k = 0; k < 4; ++k) {
      const uint32_t digit = k < digits ? digit_of(text[i + k]) : 0;
      if (digit == 64) return std::nullopt;
      three = three << 6 | digit;
    }
    // Bits that no byte gets must be zero.
    if ((digits == 2 && (three & 0xffff) != 0) || (digits == 3 && (three & 0xff) != 0)) return std::nullopt;
    for (size_t k = 0; k + 1 < digits; ++k) bytes += static_cast<char>(three >> (16 - 8 * k) & 0xff);
  }
  return bytes;
}

}  // namespace delayq::transfer
