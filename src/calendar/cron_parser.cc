#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "calendar/cron_rule.h"
#include "core/limits.h"
#include "core/text.h"

namespace delayq {

namespace {

struct Field {
  std::string_view name;
  int low;
  int high;                ///< the largest number that may be written
  int last;                ///< where `*` and `5/2` end; the day of the week ends with 6, since 7 is 0
  std::string_view names;  ///< of three letters each; the first is `low`
  std::string_view use;
};

constexpr Field kSecond{"second", 0, 59, 59, "", "use 0 to 59"};
constexpr Field kMinute{"minute", 0, 59, 59, "", "use 0 to 59"};
constexpr Field kHour{"hour", 0, 23, 23, "", "use 0 to 23"};
constexpr Field kDay{
    "day of the month", 1, 31, 31, "", "use 1 to 31, L for the last day, or L-3 for three days before it"};
constexpr Field kMonth{
    "month", 1, 12, 12, "janfebmaraprmayjunjulaugsepoctnovdec", "use 1 to 12, or JAN to DEC"};
constexpr Field kWeekday{
    "day of the week",
    0,
    7,
    6,
    "sunmontuewedthufrisat",
    "use 0 to 7 (0 and 7 are Sunday), SUN to SAT, FRI#2 for the second Friday, or FRIL for the last"};

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNicknames{{{"@yearly", "0 0 1 1 *"},
                                                                                   {"@annually", "0 0 1 1 *"},
                                                                                   {"@monthly", "0 0 1 * *"},
                                                                                   {"@weekly", "0 0 * * 0"},
                                                                                   {"@daily", "0 0 * * *"},
                                                                                   {"@midnight", "0 0 * * *"},
                                                                                   {"@hourly", "0 * * * *"}}};

std::optional<int> read_number(std::string_view text) {
  if (text.empty() || text.size() > 3) return std::nullopt;
  int number = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

/// A number or a name of the field, in its range.
std::optional<int> read_value(const Field& field, std::string_view text) {
  std::optional<int> value = read_number(text);
  if (!value && text.size() == 3 && !field.names.empty()) {
    const std::string word = lowered(text);
    for (size_t at = 0; at < field.names.size(); at += 3) {
      if (field.names.substr(at, 3) == word) value = field.low + static_cast<int>(at / 3);
    }
  }
  if (!value || *value < field.low || *value > field.high) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators, bool keep_empty) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find_first_of(separators);
    const std::string_view part = text.substr(0, end);
    if (keep_empty || !part.empty()) parts.push_back(part);
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

/// Reads one text into one rule. Each read_ function returns the error, or nothing.
class CronParser {
 public:
  explicit CronParser(std::string_view text) : text_(text) {}

  Result<CronRule> parse();

 private:
  using Failure = std::optional<Error>;

  Error refuse(std::string_view why) const {
    return invalid("cron", fmt::format("{} is not a cron rule: {}", quote(text_), why));
  }
  Error refuse(const Field& field, std::string_view item, std::string_view why) const {
    return refuse(fmt::format("{} {}: {}", field.name, quote(item), why));
  }

  Failure read_fields(const std::vector<std::string_view>& fields);
  /// A list of plain items, as bits.
  template <class Bits>
  Failure read_plain(const Field& field, std::string_view list, Bits& bits) const;
  Failure read_days(std::string_view list);
  Failure read_weekdays(std::string_view list);
  Failure read_weekday(std::string_view item);
  /// One item of a list; adds its values to `bits`, and sets `all` when it is `*`.
  Failure read_item(const Field& field, std::string_view item, uint64_t& bits, bool& all) const;
  Failure read_range(const Field& field, std::string_view item, std::string_view range, int& low,
                     int& high) const;

  std::string_view text_;
  CronRule rule_;
};

CronParser::Failure CronParser::read_range(const Field& field, std::string_view item, std::string_view range,
                                           int& low, int& high) const {
  const size_t dash = range.find('-');
  const std::string_view end = dash == std::string_view::npos ? std::string_view() : range.substr(dash + 1);
  const std::optional<int> first = read_value(field, range.substr(0, dash));
  std::optional<int> second = dash == std::string_view::npos ? first : read_value(field, end);
  if (!first || !second) return refuse(field, item, field.use);
  // The Sunday that ends a range comes after Saturday.
  if (&field == &kWeekday && *second == 0 && *first > 0 && lowered(end) == "sun") second = 7;
  if (*first > *second) {
    return refuse(
        field, item,
        fmt::format("a range does not wrap around: use {}-{},{}-{}", *first, field.last, field.low, *second));
  }
  low = *first;
  high = *second;
  return std::nullopt;
}

CronParser::Failure CronParser::read_item(const Field& field, std::string_view item, uint64_t& bits,
                                          bool& all) const {
  if (item.empty()) return refuse(field, item, "a value is missing");
  const size_t slash = item.find('/');
  const std::string_view range = item.substr(0, slash);
  int step = 1;
  if (slash != std::string_view::npos) {
    const std::optional<int> number = read_number(item.substr(slash + 1));
    if (!number || *number < 1 || *number > field.last) {
      return refuse(field, item, fmt::format("a step is a number from 1 to {}", field.last));
    }
    step = *number;
  }
  int low = field.low;
  int high = field.last;
  if (range != "*") {
    if (Failure failure = read_range(field, item, range, low, high)) return failure;
    const bool is_open = slash != std::string_view::npos && range.find('-') == std::string_view::npos;
    if (is_open) high = std::max(low, field.last);
  }
  all = all || (range == "*" && step == 1);
  for (int value = low; value <= high; value += step) bits |= uint64_t{1} << value;
  return std::nullopt;
}

template <class Bits>
CronParser::Failure CronParser::read_plain(const Field& field, std::string_view list, Bits& bits) const {
  uint64_t values = 0;
  bool all = false;
  for (std::string_view item : split(list, ",", true)) {
    if (item == "?") return refuse(field, item, "? is only for the day of the month and the day of the week");
    if (Failure failure = read_item(field, item, values, all)) return failure;
  }
  bits = static_cast<Bits>(values);
  return std::nullopt;
}

CronParser::Failure CronParser::read_days(std::string_view list) {
  if (list == "?") list = "*";
  uint64_t values = 0;
  for (std::string_view item : split(list, ",", true)) {
    if (item != "L" && item != "l" && !item.starts_with("L-") && !item.starts_with("l-")) {
      if (Failure failure = read_item(kDay, item, values, rule_.any_day_)) return failure;
      continue;
    }
    const std::optional<int> before = item.size() == 1 ? 0 : read_number(item.substr(2));
    if (!before || *before > 30) return refuse(kDay, item, "use L, or L-1 to L-30");
    rule_.days_from_end_ |= uint32_t{1} << *before;
  }
  rule_.days_ = static_cast<uint32_t>(values);
  return std::nullopt;
}

CronParser::Failure CronParser::read_weekday(std::string_view item) {
  const size_t hash = item.find('#');
  if (hash != std::string_view::npos) {
    const std::optional<int> weekday = read_value(kWeekday, item.substr(0, hash));
    const std::optional<int> number = read_number(item.substr(hash + 1));
    if (!weekday) return refuse(kWeekday, item, kWeekday.use);
    if (!number || *number < 1 || *number > 5) return refuse(kWeekday, item, "the number after # is 1 to 5");
    rule_.nth_weekdays_ |= uint64_t{1} << (7 * (*number - 1) + *weekday % 7);
    return std::nullopt;
  }
  if (item.ends_with('L') || item.ends_with('l')) {
    item.remove_suffix(1);
    if (item.empty()) return refuse(kWeekday, "L", "it does not say which day: use FRIL for the last Friday");
    const std::optional<int> weekday = read_value(kWeekday, item);
    if (!weekday) return refuse(kWeekday, item, kWeekday.use);
    rule_.last_weekdays_ |= static_cast<uint8_t>(1 << *weekday % 7);
    return std::nullopt;
  }
  uint64_t values = 0;
  if (Failure failure = read_item(kWeekday, item, values, rule_.any_weekday_)) return failure;
  rule_.weekdays_ |= static_cast<uint8_t>((values | values >> 7) & 0x7f);
  return std::nullopt;
}

CronParser::Failure CronParser::read_weekdays(std::string_view list) {
  if (list == "?") list = "*";
  for (std::string_view item : split(list, ",", true)) {
    if (Failure failure = read_weekday(item)) return failure;
  }
  return std::nullopt;
}

CronParser::Failure CronParser::read_fields(const std::vector<std::string_view>& fields) {
  const size_t minute = fields.size() - 5;
  rule_.seconds_ = 1;
  if (minute == 1) {
    if (Failure failure = read_plain(kSecond, fields[0], rule_.seconds_)) return failure;
  }
  if (Failure failure = read_plain(kMinute, fields[minute], rule_.minutes_)) return failure;
  if (Failure failure = read_plain(kHour, fields[minute + 1], rule_.hours_)) return failure;
  if (Failure failure = read_days(fields[minute + 2])) return failure;
  if (Failure failure = read_plain(kMonth, fields[minute + 3], rule_.months_)) return failure;
  return read_weekdays(fields[minute + 4]);
}

Result<CronRule> CronParser::parse() {
  if (text_.size() > Limits::kCronBytes) {
    return refuse(fmt::format("it has {} bytes, and may have {}", text_.size(), Limits::kCronBytes));
  }
  std::vector<std::string_view> fields = split(text_, " \t", false);
  if (fields.size() == 1 && fields[0].starts_with('@')) {
    const std::string word = lowered(fields[0]);
    std::vector<std::string_view> known;
    for (const auto& [name, meaning] : kNicknames) {
      if (name == word) fields = split(meaning, " ", false);
      known.push_back(name);
    }
    if (fields.size() == 1) {
      Error error = refuse(fmt::format("use one of {}", fmt::join(known, ", ")));
      error.known = std::move(known);
      return error;
    }
  }
  if (fields.size() != 5 && fields.size() != 6) {
    return refuse(fmt::format(
        "it has {} field{}: use 5 (minute, hour, day of the month, month, day of the week), or 6 with "
        "the second in front",
        fields.size(), fields.size() == 1 ? "" : "s"));
  }
  if (Failure failure = read_fields(fields)) return *failure;
  if (!rule_.ever_matches()) return refuse("no day ever matches it");
  return rule_;
}

Result<CronRule> CronRule::parse(std::string_view text) { return CronParser(text).parse(); }

}  // namespace delayq
