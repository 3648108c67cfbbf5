#include "core/token.h"

#include <algorithm>

#include "core/hex.h"
#include "core/limits.h"

namespace delayq {

std::optional<Scope> parse_scope(std::string_view name) {
  const auto* const found = std::find(kScopeNames.begin(), kScopeNames.end(), name);
  if (found == kScopeNames.end()) return std::nullopt;
  return static_cast<Scope>(found - kScopeNames.begin());
}

std::optional<Sha256> parse_sha256(std::string_view hex) {
  Sha256 bytes{};
  if (hex.size() != 2 * bytes.size()) return std::nullopt;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int high = hex_digit(hex[2 * i]);
    const int low = hex_digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return bytes;
}

bool Token::covers(std::string_view topic) const {
  return std::any_of(topics.begin(), topics.end(), [&](std::string_view pattern) {
    if (!pattern.ends_with('*')) return topic == pattern;
    pattern.remove_suffix(1);
    return topic.starts_with(pattern);
  });
}

bool Token::covers_all() const { return std::find(topics.begin(), topics.end(), "*") != topics.end(); }

Status check_topic_pattern(std::string_view pattern) {
  if (pattern == "*") return {};
  if (pattern.ends_with('*')) pattern.remove_suffix(1);
  return check_topic(pattern);
}

}  // namespace delayq
