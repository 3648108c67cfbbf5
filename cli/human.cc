#include "cli/human.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/columns.h"
#include "core/duration.h"
#include "core/utf8.h"

namespace delayq::cli {

namespace {

/// Half a second matters to a job that is due in two, not to one that is due next week.
Millis grain_at(Millis distance) {
  if (distance < std::chrono::seconds{1}) return Millis{1};
  if (distance < std::chrono::seconds{10}) return Millis{100};
  if (distance < std::chrono::hours{1}) return std::chrono::seconds{1};
  if (distance < std::chrono::days{2}) return std::chrono::minutes{1};
  return std::chrono::hours{1};
}

bool is_number(std::string_view cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789,") == std::string_view::npos;
}

/// Whether a terminal shows the character and does nothing else.
bool is_harmless(char32_t c) {
  // Those that turn the direction of what follows make one text look like another.
  const bool turns = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  return !is_control(c) && !turns;
}

}  // namespace

std::string relative(Moment now, Moment moment) {
  const Millis distance = moment > now ? moment - now : now - moment;
  const Millis shown = distance - distance % grain_at(distance);
  if (shown == Millis::zero()) return "now";
  const std::string text = format_duration(shown);
  return moment > now ? "in " + text : text + " ago";
}

std::string printable_json(std::string_view json) {
  std::string out;
  while (!json.empty()) {
    const std::string_view before = json;
    const std::optional<char32_t> code_point = take_code_point(json);
    if (!code_point) json.remove_prefix(1);
    // Only texts have such characters: JSON has none between them but spaces and line ends.
    if (code_point && *code_point >= 0x7f && !is_harmless(*code_point)) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(*code_point));
    } else {
      out += before.substr(0, before.size() - json.size());
    }
  }
  return out;
}

std::string printable(std::string_view text, size_t most) {
  std::string out;
  while (!text.empty()) {
    if (out.size() >= most) return out + "...";
    const std::string_view before = text;
    const std::optional<char32_t> code_point = take_code_point(text);
    if (!code_point) text.remove_prefix(1);
    const std::string_view bytes = before.substr(0, before.size() - text.size());
    if (code_point && is_harmless(*code_point)) {
      out += bytes;
    } else {
      for (const char byte : bytes)
        out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    }
  }
  return out;
}

std::string grouped(int64_t number) {
  std::string text = fmt::format("{}", number);
  const size_t first = number < 0 ? 1 : 0;
  for (size_t at = text.size(); at > first + 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

std::string rough_size(int64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  while (size >= 1'024 && unit + 1 < kUnits.size()) {
    size /= 1'024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", size, kUnits[unit]);
}

std::string Table::text() const {
  std::vector<size_t> widths;
  std::vector<bool> numbers;
  for (size_t r = 0; r < rows_.size(); ++r) {
    widths.resize(std::max(widths.size(), rows_[r].size()));
    numbers.resize(widths.size(), true);
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      widths[c] = std::max(widths[c], columns_of(rows_[r][c]));
      if (r > 0) numbers[c] = numbers[c] && is_number(rows_[r][c]);
    }
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - columns_of(row[c]), ' ');
      if (c > 0) line += "  ";
      line += numbers[c] ? padding + row[c] : row[c] + padding;
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace delayq::cli
