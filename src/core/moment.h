#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "core/time.h"

namespace delayq {

/// Reads a moment from the year 1970 to the year 9999 (UTC), the same everywhere (HTTP, RESP, CLI, config):
///
///   "2030-01-31T08:00:00Z"  "2030-01-31 09:00:00.25+01:00"    RFC 3339, with the offset that it demands
///   "1896076800"  "1896076800.25"                             a bare number of Unix seconds
///
/// A fraction may have any number of digits; the result is rounded up to whole milliseconds, so that nothing
/// is early. Days that are not in the calendar are errors. A leap second (":60", only where one can be: at
/// the end of a month, UTC) is the second after it, since Unix time does not count it.
///
/// The error's detail says what was wrong and what would be right; the caller puts the field's name in front
/// and fills in `op`.
Result<Moment> parse_moment(std::string_view text);

/// RFC 3339 in UTC with milliseconds: "2030-01-31T08:00:00.000Z". parse_moment() reads it back to the same
/// value. A moment outside of the years that can be read is written as Unix seconds.
std::string format_moment(Moment moment);

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
