#include "core/decimal.h"

#include <algorithm>

namespace delayq {

namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const std::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

/// 0.fraction * scale, rounded up. Works from the last digit to the first: each step divides what it has by
/// ten, and `inexact` remembers whether anything was ever cut off.
int64_t scale_up_fraction(std::string_view fraction, int64_t scale) {
  int64_t scaled = 0;
  bool inexact = false;
  for (auto digit = fraction.rbegin(); digit != fraction.rend(); ++digit) {
    scaled += (*digit - '0') * scale;
    inexact = inexact || scaled % 10 != 0;
    scaled /= 10;
  }
  return scaled + (inexact ? 1 : 0);
}

}  // namespace

std::optional<Decimal> take_decimal(std::string_view& text) {
  std::string_view rest = text;
  Decimal number;
  number.whole = take_digits(rest);
  if (number.whole.empty()) return std::nullopt;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    number.fraction = take_digits(rest);
    if (number.fraction.empty()) return std::nullopt;
  }
  text = rest;
  return number;
}

std::optional<int64_t> scale_up(const Decimal& number, int64_t scale) {
  int64_t result = 0;
  for (char digit : number.whole) {
    if (__builtin_mul_overflow(result, 10, &result)) return std::nullopt;
    if (__builtin_add_overflow(result, digit - '0', &result)) return std::nullopt;
  }
  if (__builtin_mul_overflow(result, scale, &result)) return std::nullopt;
  if (__builtin_add_overflow(result, scale_up_fraction(number.fraction, scale), &result)) return std::nullopt;
  return result;
}

}  // namespace delayq
