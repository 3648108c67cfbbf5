#include "ops/size.h"

#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "core/quote.h"

namespace delayq {

namespace {

struct Unit {
  std::string_view name;
  uint64_t bytes;
};

/// Those of format_size() come last, from small to large.
constexpr std::array kUnits{
    Unit{"", 1},
    Unit{"KB", 1'000},
    Unit{"MB", 1'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"TB", 1'000'000'000'000},
    Unit{"B", 1},
    Unit{"KiB", uint64_t{1} << 10},
    Unit{"MiB", uint64_t{1} << 20},
    Unit{"GiB", uint64_t{1} << 30},
    Unit{"TiB", uint64_t{1} << 40},
};
constexpr size_t kFirstWritten = 5;

Error not_a_size(std::string_view text, std::string_view advice) {
  return invalid(fmt::format("{} is not a size: {}", quote(text), advice));
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUse =
      R"(use a whole number of bytes, or one with a unit such as "64KB", "32MiB")";
  constexpr std::string_view kTooLarge = "it does not fit into 64 bits";
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) return not_a_size(text, kTooLarge);
  if (error != std::errc{}) return not_a_size(text, kUse);
  const std::string_view name(stop, static_cast<size_t>(end - stop));
  for (const Unit& unit : kUnits) {
    if (unit.name != name) continue;
    if (number > std::numeric_limits<uint64_t>::max() / unit.bytes) return not_a_size(text, kTooLarge);
    return number * unit.bytes;
  }
  return not_a_size(text, kUse);
}

std::string format_size(uint64_t bytes) {
  const Unit* best = &kUnits[kFirstWritten];
  for (size_t i = kFirstWritten; i < kUnits.size(); ++i) {
    if (bytes != 0 && bytes % kUnits[i].bytes == 0) best = &kUnits[i];
  }
  return fmt::format("{}{}", bytes / best->bytes, best->name);
}

}  // namespace delayq
