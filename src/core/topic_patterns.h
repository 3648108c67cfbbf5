#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace delayq {

/// Which topics are meant: those that match one of these patterns, so none at all when there is none. A
/// pattern is a topic's name, "order.*" (whatever begins so) or "*".
using TopicPatterns = std::span<const std::string>;

inline const std::array<std::string, 1> kAllTopics{"*"};

bool covers(TopicPatterns patterns, std::string_view topic);
bool covers_all(TopicPatterns patterns);

/// OK for a topic's name, a beginning of names with a star at its end, or the star alone.
Status check_topic_pattern(std::string_view pattern);

}  // namespace delayq
