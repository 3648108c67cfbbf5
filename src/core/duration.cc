#include "core/duration.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "core/text.h"

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

namespace {

struct Unit {
  std::string_view name;
  int64_t ms;
};

/// From large to small, the order in which they are written.
constexpr std::array kUnits{Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000}, Unit{"s", 1'000},
                            Unit{"ms", 1}};
constexpr int64_t kSecond = 1'000;

Error not_a_duration(std::string_view text, std::string_view advice) {
  return invalid(fmt::format("{} is not a duration: {}", quote(text), advice));
}

constexpr std::string_view kUseUnit = R"(use a number with a unit such as "250ms", "30s", "15m", "3h", "7d")";

/// Removes a unit's name from the front. "ms" is tried before "m".
const Unit* take_unit(std::string_view& text) {
  const Unit* found = nullptr;
  for (const Unit& unit : kUnits) {
    if (text.starts_with(unit.name) && (found == nullptr || unit.name.size() > found->name.size()))
      found = &unit;
  }
  if (found != nullptr) text.remove_prefix(found->name.size());
  return found;
}

}  // namespace

Result<Millis> parse_duration(std::string_view text) {
  if (text.size() > 1 && text[0] == '-' && (is_digit(text[1]) || text[1] == '.'))
    return invalid(fmt::format("{} is negative: {}", quote(text), kUseUnit));
  std::string_view rest = text;
  int64_t total = 0;
  const Unit* previous = nullptr;
  do {
    const std::optional<Decimal> number = take_decimal(rest);
    if (!number) return not_a_duration(text, kUseUnit);
    const bool bare = rest.empty() && previous == nullptr;
    const Unit* unit = take_unit(rest);
    if (unit == nullptr && !bare) return not_a_duration(text, kUseUnit);
    if (previous != nullptr && unit <= previous) {
      return not_a_duration(text, R"(larger units come first, and each once, as in "1h30m")");
    }
    if (!number->fraction.empty() && !rest.empty()) {
      return not_a_duration(text, R"(only the last number may have a fraction, as in "1m1.5s")");
    }
    const std::optional<int64_t> part = scale_up(*number, bare ? kSecond : unit->ms);
    if (!part || __builtin_add_overflow(total, *part, &total)) {
      return not_a_duration(text, "it is longer than can be counted in milliseconds");
    }
    previous = unit;
  } while (!rest.empty());
  return Millis{total};
}

std::string format_duration(Millis duration) {
  if (duration == Millis::zero()) return "0s";
  std::string text = duration < Millis::zero() ? "-" : "";
  // Unsigned, because the smallest Millis has no positive counterpart.
  auto left = static_cast<uint64_t>(duration.count());
  if (duration < Millis::zero()) left = 0 - left;
  if (left < kSecond) return text + fmt::format("{}ms", left);
  for (const Unit& unit : kUnits) {
    const auto size = static_cast<uint64_t>(unit.ms);
    const uint64_t count = left / size;
    left %= size;
    if (unit.ms == kSecond && left != 0) {
      std::string fraction = fmt::format("{:03}", left);
      fraction.erase(fraction.find_last_not_of('0') + 1);
      return text + fmt::format("{}.{}s", count, fraction);
    }
    if (count != 0) text += fmt::format("{}{}", count, unit.name);
  }
  return text;
}

}  // namespace delayq
