#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"

namespace delayq::http {

/// A request's target, taken apart: "/v1/topics/a%20b/jobs?limit=5" is {"v1", "topics", "a b", "jobs"} and
/// limit=5.
struct Target {
  std::vector<std::string> path;
  std::vector<std::pair<std::string, std::string>> query;

  /// The first value of that name.
  std::optional<std::string_view> find(std::string_view name) const;
};

/// kInvalid for broken %-escapes and for what is not a path.
Result<Target> parse_target(std::string_view text);

}  // namespace delayq::http
