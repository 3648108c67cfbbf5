#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace delayq {

/// The value of a hexadecimal digit in upper or lower case; -1 for other characters.
constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Two digits in lower case for each byte.
inline std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

/// The reverse. Returns nothing for any other text.
inline std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]);
    const int low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

/// RFC 4648, with padding.
std::string to_base64(std::string_view bytes);

/// The reverse. Returns nothing for any other text (other characters, wrong padding, leftover bits that are
/// not zero), so that the same bytes always have the same text.
std::optional<std::string> from_base64(std::string_view text);

/// Fixed byte order for everything that is stored or hashed. Compilers turn both into one plain move on x86
/// and ARM. No alignment is needed.
template <std::unsigned_integral T>
inline T load_le(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::little) {
    return value;
  } else {
    T swapped = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      swapped = static_cast<T>((swapped << 8) | ((value >> (8 * i)) & 0xff));
    }
    return swapped;
  }
}

template <std::unsigned_integral T>
inline void store_le(void* to, T value) {
  // Reading the value's own bytes as little endian reorders them exactly when the machine is big endian.
  const T ordered = load_le<T>(&value);
  std::memcpy(to, &ordered, sizeof ordered);
}

}  // namespace delayq
