#include "core/token.h"

#include <algorithm>

#include "core/encoding.h"
#include "core/limits.h"

namespace delayq {

bool covers(TopicPatterns patterns, std::string_view topic) {
  return std::any_of(patterns.begin(), patterns.end(), [&](std::string_view pattern) {
    if (!pattern.ends_with('*')) return topic == pattern;
    pattern.remove_suffix(1);
    return topic.starts_with(pattern);
  });
}

bool covers_all(TopicPatterns patterns) {
  return std::find(patterns.begin(), patterns.end(), "*") != patterns.end();
}

Status check_topic_pattern(std::string_view pattern) {
  if (pattern == "*") return {};
  if (pattern.ends_with('*')) pattern.remove_suffix(1);
  return check_topic(pattern);
}

std::optional<Scope> parse_scope(std::string_view name) {
  const auto* const found = std::find(kScopeNames.begin(), kScopeNames.end(), name);
  if (found == kScopeNames.end()) return std::nullopt;
  return static_cast<Scope>(found - kScopeNames.begin());
}

std::optional<Sha256> parse_sha256(std::string_view hex) {
  Sha256 hash{};
  const std::optional<std::string> bytes = from_hex(hex);
  if (!bytes || bytes->size() != hash.size()) return std::nullopt;
  std::copy(bytes->begin(), bytes->end(), hash.begin());
  return hash;
}

}  // namespace delayq
