#include "cli/columns.h"

#include <algorithm>
#include <array>

#include "core/utf8.h"

namespace delayq::cli {

namespace {

struct Range {
  char32_t first, last;
};

/// The wide ones as std::format counts them (C++20, [format.string.std]).
constexpr std::array kWide{
    Range{0x1100, 0x115f},   Range{0x2329, 0x232a},   Range{0x2e80, 0x303e},   Range{0x3040, 0xa4cf},
    Range{0xac00, 0xd7a3},   Range{0xf900, 0xfaff},   Range{0xfe10, 0xfe19},   Range{0xfe30, 0xfe6f},
    Range{0xff00, 0xff60},   Range{0xffe0, 0xffe6},   Range{0x1f300, 0x1f64f}, Range{0x1f900, 0x1f9ff},
    Range{0x20000, 0x2fffd}, Range{0x30000, 0x3fffd},
};

/// Combining marks, joiners and variation selectors.
constexpr std::array kNarrowest{
    Range{0x0300, 0x036f}, Range{0x1ab0, 0x1aff}, Range{0x1dc0, 0x1dff}, Range{0x200b, 0x200f},
    Range{0x20d0, 0x20ff}, Range{0xfe00, 0xfe0f}, Range{0xfe20, 0xfe2f},
};

template <size_t kCount>
bool is_in(const std::array<Range, kCount>& ranges, char32_t code_point) {
  return std::any_of(ranges.begin(), ranges.end(), [code_point](const Range& range) {
    return range.first <= code_point && code_point <= range.last;
  });
}

/// Takes the first character off the text, and returns its columns.
size_t take_columns(std::string_view& text) {
  const std::optional<char32_t> code_point = take_code_point(text);
  if (!code_point) {
    text.remove_prefix(1);
    return 1;
  }
  if (*code_point < 0x300) return 1;
  if (is_in(kNarrowest, *code_point)) return 0;
  return is_in(kWide, *code_point) ? 2 : 1;
}

}  // namespace

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) columns += take_columns(text);
  return columns;
}

std::string cut_to_columns(std::string_view text, size_t most) {
  std::string_view rest = text;
  size_t columns = 0;
  while (!rest.empty()) {
    std::string_view behind = rest;
    columns += take_columns(behind);
    if (columns > most) break;
    rest = behind;
  }
  return std::string(text.substr(0, text.size() - rest.size()));
}

}  // namespace delayq::cli
