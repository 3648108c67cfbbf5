#include "core/topic_patterns.h"

#include <algorithm>

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

}  // namespace delayq
