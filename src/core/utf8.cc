#include "core/utf8.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace delayq {

namespace {

/// What a lead byte announces: how many bytes follow, its own bits, and the smallest code point that needs so
/// many.
struct Lead {
  size_t following;
  char32_t bits;
  char32_t smallest;
};

std::optional<Lead> read_lead(unsigned char byte) {
  if ((byte & 0xe0) == 0xc0) return Lead{1, byte & 0x1fU, 0x80};
  if ((byte & 0xf0) == 0xe0) return Lead{2, byte & 0x0fU, 0x800};
  if ((byte & 0xf8) == 0xf0) return Lead{3, byte & 0x07U, 0x10000};
  return std::nullopt;
}

/// How many bytes at the front are ASCII, eight at a time.
size_t ascii_prefix(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t at = 0;
  for (uint64_t eight = 0; at + sizeof(eight) <= text.size(); at += sizeof(eight)) {
    std::memcpy(&eight, text.data() + at, sizeof(eight));
    if ((eight & kHighBits) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

}  // namespace

std::optional<char32_t> take_code_point(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) {
    text.remove_prefix(1);
    return first;
  }
  const std::optional<Lead> lead = read_lead(first);
  if (!lead || text.size() <= lead->following) return std::nullopt;
  char32_t code_point = lead->bits;
  for (size_t i = 1; i <= lead->following; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return std::nullopt;
    code_point = (code_point << 6) | (byte & 0x3fU);
  }
  const bool surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  if (code_point < lead->smallest || code_point > 0x10ffff || surrogate) return std::nullopt;
  text.remove_prefix(lead->following + 1);
  return code_point;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    if (const size_t plain = ascii_prefix(text); plain > 0) {
      text.remove_prefix(plain);
    } else if (!take_code_point(text)) {
      return false;
    }
  }
  return true;
}

}  // namespace delayq
