#include "api/http/target.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/encoding.h"
#include "core/text.h"

namespace delayq::http {

namespace {

Result<std::string> unescape(std::string_view text, bool plus_is_space) {
  const auto has = [text](char c) { return text.find(c) != std::string_view::npos; };
  if (!has('%') && !(plus_is_space && has('+'))) return std::string(text);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return invalid(fmt::format("a broken %-escape in {}", quote(text)));
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

/// Takes what stands before `separator`, or all, off the front of `text`.
std::string_view take_until(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view front = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return front;
}

}  // namespace

std::optional<std::string_view> Target::find(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

Result<Target> parse_target(std::string_view text) {
  if (!text.starts_with('/')) return invalid("the target is not a path");
  constexpr size_t kUsual = 6;
  Target target;
  target.path.reserve(kUsual);
  std::string_view query = text;
  std::string_view path = take_until(query, '?').substr(1);
  while (!path.empty()) {
    Result<std::string> segment = unescape(take_until(path, '/'), false);
    if (!segment.ok()) return segment.error();
    target.path.push_back(std::move(*segment));
  }
  while (!query.empty()) {
    std::string_view pair = take_until(query, '&');
    if (pair.empty()) continue;
    Result<std::string> key = unescape(take_until(pair, '='), true);
    Result<std::string> value = unescape(pair, true);
    if (!key.ok()) return key.error();
    if (!value.ok()) return value.error();
    target.query.emplace_back(std::move(*key), std::move(*value));
  }
  return target;
}

}  // namespace delayq::http
