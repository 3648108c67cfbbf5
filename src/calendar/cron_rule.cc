#include "calendar/cron_rule.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/limits.h"
#include "core/text.h"

namespace delayq {

namespace {

constexpr int64_t kFirstYear = 1969;
constexpr int64_t kLastYear = 10'000;

/// The lowest bit from `from` on, or -1. REQUIRES: 0 <= from < 64.
int next_bit(uint64_t bits, int from) {
  bits >>= from;
  return bits == 0 ? -1 : from + std::countr_zero(bits);
}

/// The highest bit up to `until`, which may be -1; or -1.
int last_bit(uint64_t bits, int until) {
  bits &= (uint64_t{1} << (until + 1)) - 1;
  return static_cast<int>(std::bit_width(bits)) - 1;
}

int lowest(uint64_t bits) { return std::countr_zero(bits); }
int highest(uint64_t bits) { return static_cast<int>(std::bit_width(bits)) - 1; }
bool has(uint64_t bits, int bit) { return (bits >> bit & 1) != 0; }
uint64_t how_many(uint64_t bits) { return static_cast<uint64_t>(std::popcount(bits)); }
/// Of the bits below `end`. REQUIRES: 0 <= end < 64.
uint64_t how_many_below(uint64_t bits, int end) { return how_many(bits & ((uint64_t{1} << end) - 1)); }

/// Bits 1 to `days`.
constexpr uint32_t all_days(int days) { return static_cast<uint32_t>((uint64_t{2} << days) - 2); }

}  // namespace

uint32_t CronRule::days_by_weekday(int first_weekday, int days) const {
  // Bit n of `week`: whether the day 1 + n matches. Multiplied, it repeats for five weeks.
  const auto doubled = static_cast<uint32_t>(weekdays_) << 7 | weekdays_;
  const uint64_t week = doubled >> first_weekday & 0x7f;
  uint64_t matching = (week * 0x1020'4081) << 1;
  for (uint64_t rest = nth_weekdays_; rest != 0; rest &= rest - 1) {
    const int bit = lowest(rest);
    matching |= uint64_t{1} << (1 + (bit % 7 - first_weekday + 7) % 7 + bit / 7 * 7);
  }
  for (uint32_t rest = last_weekdays_; rest != 0; rest &= rest - 1) {
    const int day = 1 + (lowest(rest) - first_weekday + 7) % 7 + 28;
    matching |= uint64_t{1} << (day <= days ? day : day - 7);
  }
  return static_cast<uint32_t>(matching) & all_days(days);
}

uint32_t CronRule::days_of(int64_t year, int month) const {
  namespace chrono = std::chrono;
  const chrono::year_month in{chrono::year{static_cast<int>(year)},
                              chrono::month{static_cast<unsigned>(month)}};
  const int days = static_cast<int>(static_cast<unsigned>((in / chrono::last).day()));
  if (any_day_ && any_weekday_) return all_days(days);
  uint32_t matching = 0;
  if (!any_day_) {
    matching = days_ & all_days(days);
    for (uint32_t rest = days_from_end_; rest != 0; rest &= rest - 1) {
      const int day = days - lowest(rest);
      if (day >= 1) matching |= uint32_t{1} << day;
    }
  }
  if (!any_weekday_) {
    const chrono::weekday first{chrono::sys_days{in / 1}};
    matching |= days_by_weekday(static_cast<int>(first.c_encoding()), days);
  }
  return matching;
}

std::optional<absl::CivilDay> CronRule::next_day(absl::CivilDay from, int64_t last_year) const {
  int64_t year = from.year();
  int month = from.month();
  int day = from.day();
  while (year <= last_year) {
    if (has(months_, month)) {
      const int found = next_bit(days_of(year, month), day);
      if (found >= 0) return absl::CivilDay(year, month, found);
    }
    day = 1;
    month = next_bit(months_, month + 1);
    if (month < 0) {
      ++year;
      month = lowest(months_);
    }
  }
  return std::nullopt;
}

std::optional<absl::CivilDay> CronRule::last_day(absl::CivilDay until) const {
  int64_t year = until.year();
  int month = until.month();
  int day = until.day();
  while (year >= kFirstYear) {
    if (has(months_, month)) {
      const int found = last_bit(days_of(year, month), day);
      if (found >= 0) return absl::CivilDay(year, month, found);
    }
    day = 31;
    month = last_bit(months_, month - 1);
    if (month < 0) {
      --year;
      month = highest(months_);
    }
  }
  return std::nullopt;
}

bool CronRule::ever_matches() const {
  // The calendar repeats after 400 years, weekdays included.
  return next_day(absl::CivilDay(2000, 1, 1), 2399).has_value();
}

std::optional<absl::CivilSecond> CronRule::next(absl::CivilSecond from) const {
  const std::optional<absl::CivilDay> today = next_day(absl::CivilDay(from), kLastYear);
  if (!today) return std::nullopt;
  const int first_minute = lowest(minutes_);
  const int first_second = lowest(seconds_);
  const auto at = [](absl::CivilDay day, int hour, int minute, int second) {
    return absl::CivilSecond(day.year(), day.month(), day.day(), hour, minute, second);
  };
  if (*today != absl::CivilDay(from)) return at(*today, lowest(hours_), first_minute, first_second);
  if (has(hours_, from.hour())) {
    if (has(minutes_, from.minute())) {
      const int second = next_bit(seconds_, from.second());
      if (second >= 0) return at(*today, from.hour(), from.minute(), second);
    }
    const int minute = next_bit(minutes_, from.minute() + 1);
    if (minute >= 0) return at(*today, from.hour(), minute, first_second);
  }
  const int hour = next_bit(hours_, from.hour() + 1);
  if (hour >= 0) return at(*today, hour, first_minute, first_second);
  const std::optional<absl::CivilDay> later = next_day(*today + 1, kLastYear);
  if (!later) return std::nullopt;
  return at(*later, lowest(hours_), first_minute, first_second);
}

std::optional<absl::CivilSecond> CronRule::last(absl::CivilSecond until) const {
  const std::optional<absl::CivilDay> today = last_day(absl::CivilDay(until));
  if (!today) return std::nullopt;
  const int last_minute = highest(minutes_);
  const int last_second = highest(seconds_);
  const auto at = [](absl::CivilDay day, int hour, int minute, int second) {
    return absl::CivilSecond(day.year(), day.month(), day.day(), hour, minute, second);
  };
  if (*today != absl::CivilDay(until)) return at(*today, highest(hours_), last_minute, last_second);
  if (has(hours_, until.hour())) {
    if (has(minutes_, until.minute())) {
      const int second = last_bit(seconds_, until.second());
      if (second >= 0) return at(*today, until.hour(), until.minute(), second);
    }
    const int minute = last_bit(minutes_, until.minute() - 1);
    if (minute >= 0) return at(*today, until.hour(), minute, last_second);
  }
  const int hour = last_bit(hours_, until.hour() - 1);
  if (hour >= 0) return at(*today, hour, last_minute, last_second);
  const std::optional<absl::CivilDay> earlier = last_day(*today - 1);
  if (!earlier) return std::nullopt;
  return at(*earlier, highest(hours_), last_minute, last_second);
}

// ---- counting

bool CronRule::matches_day(absl::CivilDay day) const {
  return has(months_, day.month()) && has(days_of(day.year(), day.month()), day.day());
}

uint64_t CronRule::times_of_day() const { return how_many(hours_) * how_many(minutes_) * how_many(seconds_); }

/// How many matching times of a day are before that one.
uint64_t CronRule::times_before(absl::CivilSecond time) const {
  const uint64_t each_minute = how_many(seconds_);
  const uint64_t each_hour = how_many(minutes_) * each_minute;
  uint64_t before = how_many_below(hours_, time.hour()) * each_hour;
  if (!has(hours_, time.hour())) return before;
  before += how_many_below(minutes_, time.minute()) * each_minute;
  if (has(minutes_, time.minute())) before += how_many_below(seconds_, time.second());
  return before;
}

uint64_t CronRule::count(absl::CivilSecond from, absl::CivilSecond until, uint64_t most) const {
  if (until < from) return 0;
  const absl::CivilDay first(from);
  const absl::CivilDay last(until);
  const uint64_t each_day = times_of_day();
  // Of whole days, less what is before `from` and after `until`.
  uint64_t outside = matches_day(first) ? times_before(from) : 0;
  if (matches_day(last)) {
    const absl::CivilSecond next = until + 1;
    outside += absl::CivilDay(next) == last ? each_day - times_before(next) : 0;
  }
  uint64_t total = 0;
  for (absl::CivilMonth month(first); month <= absl::CivilMonth(last); ++month) {
    if (!has(months_, month.month())) continue;
    uint64_t days = days_of(month.year(), month.month());
    if (month == absl::CivilMonth(first)) days &= ~((uint64_t{1} << first.day()) - 1);
    if (month == absl::CivilMonth(last)) days &= (uint64_t{2} << last.day()) - 1;
    total += how_many(days) * each_day;
    if (total >= most + outside) return most;
  }
  return total - outside;
}

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
