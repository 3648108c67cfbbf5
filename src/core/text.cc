#include "core/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace delayq {

namespace {

/// What a lead byte means: how many bytes follow, the bits in it, and the smallest code point that needs this
/// many bytes.
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
  constexpr uint64_t kTopBits = 0x8080808080808080;
  size_t at = 0;
  for (uint64_t eight = 0; at + sizeof(eight) <= text.size(); at += sizeof(eight)) {
    std::memcpy(&eight, text.data() + at, sizeof(eight));
    if ((eight & kTopBits) != 0) break;
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

bool names_secret(std::string_view setting) {
  return setting.ends_with("password") || setting.ends_with("secret") || setting.ends_with(".pem") ||
         setting.ends_with("oauthbearer.config");
}

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

namespace {

/// Longer words are not compared: the work grows with the square of the length.
constexpr size_t kMaxBytes = 64;

/// The Damerau-Levenshtein distance, restricted: no letter is edited twice.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t other = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + other});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known) {
  if (word.size() > kMaxBytes) return {};
  std::string_view best;
  size_t fewest = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const size_t slips = distance(word, candidate);
    if (slips >= fewest || slips >= candidate.size()) continue;
    fewest = slips;
    best = candidate;
  }
  return best;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+,=-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

}  // namespace delayq
