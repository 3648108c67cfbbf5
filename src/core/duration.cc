#include "core/duration.h"

#include <array>
#include <optional>

#include <fmt/format.h>

#include "core/decimal.h"
#include "core/quote.h"

namespace delayq {

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

/// Takes a unit's name off the front. "ms" is tried before "m".
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
