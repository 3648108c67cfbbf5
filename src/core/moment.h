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

}  // namespace delayq
