#pragma once

#include <optional>
#include <string_view>

namespace delayq {

/// Takes the first code point off `text`, which must not be empty. Answers nullopt and leaves `text` alone
/// when its first bytes are not well-formed UTF-8: cut short, overlong, a surrogate, or above U+10FFFF.
std::optional<char32_t> take_code_point(std::string_view& text);

/// Whether all of it is well-formed.
bool is_utf8(std::string_view text);

/// Control characters: U+0000-001F, U+007F-009F.
constexpr bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

/// Space, line and paragraph separators of Unicode, and U+FEFF, which is a space of no width.
constexpr bool is_space(char32_t c) {
  return c == 0x20 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000 || c == 0xfeff;
}

/// Code points without an agreed meaning: private use, and the noncharacters.
constexpr bool is_private_or_noncharacter(char32_t c) {
  return (c >= 0xe000 && c <= 0xf8ff) || c >= 0xf0000 || (c >= 0xfdd0 && c <= 0xfdef) ||
         (c & 0xfffe) == 0xfffe;
}

}  // namespace delayq
