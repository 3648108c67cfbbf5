#pragma once

#include <string>
#include <string_view>

#include "core/time.h"

namespace delayq {

/// The id of the job that the schedule `name` makes for the occurrence at `at`:
///
///   "nightly@2026-11-16T09:00:00Z"  "nightly@2026-11-16T09:00:00.250Z"    milliseconds only when there are
///   any
///
/// REQUIRES: `at` is in the years 1970 to 9999 (UTC), and `name` is not empty.
std::string occurrence_id(std::string_view name, Moment at);

/// The ending that occurrence_id() adds is this long with milliseconds, and four bytes shorter without.
inline constexpr size_t kOccurrenceBytes = std::string_view("@2026-11-16T09:00:00.250Z").size();

/// Whether all of `text` is written like the ending that occurrence_id() adds: digits where they must be. The
/// date itself is not checked.
bool is_occurrence_ending(std::string_view text);

/// The name of the schedule whose occurrence `id` is: `id` without its ending "@YYYY-MM-DDTHH:MM:SS[.mmm]Z".
/// The whole `id` when it has no such ending, or nothing before it. A view into `id`.
///
/// It is called for every id that is placed on a shard: an id that does not end with 'Z' costs one compare.
inline std::string_view occurrence_owner(std::string_view id) {
  if (id.empty() || id.back() != 'Z') return id;
  for (size_t bytes : {kOccurrenceBytes - 4, kOccurrenceBytes}) {
    if (id.size() <= bytes) break;
    const std::string_view ending = id.substr(id.size() - bytes);
    if (ending.front() == '@' && is_occurrence_ending(ending)) return id.substr(0, id.size() - bytes);
  }
  return id;
}

}  // namespace delayq
