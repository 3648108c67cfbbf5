#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// For text of protocols and files: only ASCII has upper case and blanks, whatever the locale is.

namespace delayq {

constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = to_lower(c);
  return out;
}

/// Without the blanks around it.
constexpr std::string_view trimmed(std::string_view text, std::string_view blanks = " \t") {
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Removes the first code point of `text`, which must not be empty. Returns nullopt and does not change
/// `text` when its first bytes are not well-formed UTF-8: cut short, overlong, a surrogate, or above
/// U+10FFFF.
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

/// The caller's own text for an error message: in double quotes, cut to about 60 bytes, and safe to print
/// anywhere whatever it held: quotes, backslashes, control characters and broken UTF-8 are escaped.
std::string quote(std::string_view text);

/// Whether a setting of this name has a secret for its value, which is never shown: "kafka.password",
/// "ssl.key.pem".
bool names_secret(std::string_view setting);

/// The known word that `word` was probably meant to be: the one with the fewest typing mistakes between them
/// (a letter added, missing, replaced, or two swapped). Empty when no word is similar enough.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known);

/// A text as one word of a command line that can be copied: in single quotes where a shell needs them.
std::string shell_word(std::string_view text);

}  // namespace delayq
