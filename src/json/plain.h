#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace delayq::json {

/// Whether a byte may be between JSON tokens.
constexpr bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Whether a byte is not escaped within a JSON string: not a quote, a backslash or a control character.
constexpr bool is_plain(unsigned char byte) { return byte >= 0x20 && byte != '"' && byte != '\\'; }

/// How many bytes at the front of `text` are plain. Looks at eight at a time, since most texts are plain to
/// their end.
inline size_t plain_prefix(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighBits = kOnes << 7;
  // The high bit of a byte is set where that byte of `eight` is zero; bytes above the first such byte may be
  // wrong.
  const auto zeros = [](uint64_t eight) { return (eight - kOnes) & ~eight & kHighBits; };
  size_t at = 0;
  if constexpr (std::endian::native == std::endian::little) {
    for (uint64_t eight = 0; at + sizeof(eight) <= text.size(); at += sizeof(eight)) {
      std::memcpy(&eight, text.data() + at, sizeof(eight));
      const uint64_t controls = (eight - kOnes * 0x20) & ~eight & kHighBits;
      const uint64_t special = controls | zeros(eight ^ kOnes * '"') | zeros(eight ^ kOnes * '\\');
      if (special != 0) return at + static_cast<size_t>(std::countr_zero(special)) / 8;
    }
  }
  while (at < text.size() && is_plain(static_cast<unsigned char>(text[at]))) ++at;
  return at;
}

}  // namespace delayq::json
