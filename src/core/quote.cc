#include "core/quote.h"

#include <optional>

#include "core/utf8.h"

namespace delayq {

namespace {

constexpr size_t kShown = 60;

void append_escaped_byte(std::string& out, char byte) {
  constexpr char kHexDigits[] = "0123456789abcdef";
  const auto value = static_cast<unsigned char>(byte);
  out += "\\x";
  out += kHexDigits[value >> 4];
  out += kHexDigits[value & 15];
}

}  // namespace

std::string quote(std::string_view text) {
  std::string out = "\"";
  const size_t size = text.size();
  while (!text.empty() && size - text.size() < kShown) {
    const std::string_view before = text;
    const std::optional<char32_t> code_point = take_code_point(text);
    if (!code_point) {
      append_escaped_byte(out, text.front());
      text.remove_prefix(1);
    } else if (is_control(*code_point)) {
      for (char byte : before.substr(0, before.size() - text.size())) append_escaped_byte(out, byte);
    } else {
      if (*code_point == '"' || *code_point == '\\') out += '\\';
      out += before.substr(0, before.size() - text.size());
    }
  }
  out += text.empty() ? "\"" : "...\"";
  return out;
}

}  // namespace delayq
