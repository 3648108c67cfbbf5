#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/time.h"

namespace delayq {

/// An unsigned decimal number as written, of any length: no sign, no exponent, a digit on either side of the
/// point.
struct Decimal {
  std::string_view whole;     ///< at least one digit
  std::string_view fraction;  ///< the digits after the point; empty when there is no point
};

/// Removes the longest decimal number from the front of `text`. Returns nullopt, and does not change `text`,
/// when there is none or when its point has no digit after it.
std::optional<Decimal> take_decimal(std::string_view& text);

/// `number * scale`, rounded up to a whole number. Exact for any number of digits. Returns nullopt when the
/// result does not fit. REQUIRES: 0 < scale <= 10^17.
std::optional<int64_t> scale_up(const Decimal& number, int64_t scale);

/// Reads a duration, the same everywhere (HTTP, RESP, CLI, config):
///
///   "250ms" "30s" "15m" "3h" "7d" "1.5h"    a number with a unit
///   "1h30m" "1m1.5s"                        several, larger units first, a fraction only in the last
///   "90" "0.25"                             a bare number of seconds
///
/// Not negative, no signs, spaces, exponents or upper case. A fraction may have any number of digits; the
/// result is rounded up to whole milliseconds, so that nothing is early. What does not fit into Millis is an
/// error, never clamped; that a delay or a lease is within its own limits is checked by core/limits.h.
///
/// The error's detail says what was wrong and what would be right; the caller puts the field's name in front
/// and fills in `op`.
Result<Millis> parse_duration(std::string_view text);

/// The form that parse_duration() reads back to the same value, as a person would write it: "1h30m", "1.5s",
/// "250ms", "0s". A negative duration, which only subtraction can make, gets a minus in front and cannot be
/// read back.
std::string format_duration(Millis duration);

}  // namespace delayq
