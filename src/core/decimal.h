#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace delayq {

/// An unsigned decimal number as written, of any length: no sign, no exponent, a digit on either side of the
/// point.
struct Decimal {
  std::string_view whole;     ///< at least one digit
  std::string_view fraction;  ///< the digits after the point; empty when there is no point
};

/// Takes the longest decimal number off the front of `text`. Answers nullopt, and leaves `text` alone, when
/// there is none or when its point has no digit after it.
std::optional<Decimal> take_decimal(std::string_view& text);

/// `number * scale`, rounded up to a whole number. Exact for any number of digits. Answers nullopt when the
/// result does not fit. REQUIRES: 0 < scale <= 10^17.
std::optional<int64_t> scale_up(const Decimal& number, int64_t scale);

}  // namespace delayq
