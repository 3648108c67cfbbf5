#include "core/moment.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include <fmt/format.h>

#include "core/duration.h"
#include "core/text.h"

namespace delayq {

namespace {

using std::chrono::day;
using std::chrono::days;
using std::chrono::floor;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::month;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::year;
using std::chrono::year_month_day;

constexpr Moment kFirst{};
constexpr Moment kEnd = sys_days{year{10000} / 1 / 1};

Error not_a_moment(std::string_view text, std::string_view advice) {
  return invalid(fmt::format("{} is not a moment: {}", quote(text), advice));
}

constexpr std::string_view kUseRfc3339 =
    R"(use RFC 3339 such as "2030-01-31T08:00:00Z", or a number of Unix seconds)";
constexpr std::string_view kOutOfYears = "it must be in the years 1970 to 9999 (UTC)";
constexpr std::string_view kTooManySeconds =
    "it is after the year 9999; a bare number counts seconds, not milliseconds";

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

/// Takes exactly `width` digits.
std::optional<int> take_number(std::string_view& text, size_t width) {
  if (text.size() < width) return std::nullopt;
  int value = 0;
  for (char c : text.substr(0, width)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(width);
  return value;
}

/// The numbers of an RFC 3339 date-time as written; not yet checked against calendar and clock.
struct Written {
  int year = 0, month = 0, day = 0;
  int hour = 0, minute = 0, second = 0;
  Millis fraction{0};  ///< rounded up, so it can be a whole second
  int offset_sign = 1, offset_hour = 0, offset_minute = 0;
};

bool take_into(std::string_view& text, size_t width, int& out) {
  const std::optional<int> number = take_number(text, width);
  out = number.value_or(0);
  return number.has_value();
}

bool take_fraction(std::string_view& text, Written& out) {
  if (!text.starts_with('.')) return true;
  const auto end = std::min(text.find_first_not_of("0123456789", 1), text.size());
  if (end == 1) return false;
  out.fraction = Millis{*scale_up(Decimal{"0", text.substr(1, end - 1)}, 1'000)};
  text.remove_prefix(end);
  return true;
}

bool take_offset(std::string_view& text, Written& out) {
  if (take(text, "Zz")) return true;
  out.offset_sign = text.starts_with('-') ? -1 : 1;
  return take(text, "+-") && take_into(text, 2, out.offset_hour) && take(text, ":") &&
         take_into(text, 2, out.offset_minute);
}

std::optional<Written> read_rfc3339(std::string_view text) {
  Written out;
  const bool well_formed =
      take_into(text, 4, out.year) && take(text, "-") && take_into(text, 2, out.month) && take(text, "-") &&
      take_into(text, 2, out.day) && take(text, "Tt ") && take_into(text, 2, out.hour) && take(text, ":") &&
      take_into(text, 2, out.minute) && take(text, ":") && take_into(text, 2, out.second) &&
      take_fraction(text, out) && take_offset(text, out) && text.empty();
  return well_formed ? std::optional{out} : std::nullopt;
}

/// Whether `moment` is the first one of a month: a leap second ends there.
bool starts_month(std::chrono::sys_seconds moment) {
  const sys_days date = floor<days>(moment);
  return moment == date && year_month_day{date}.day() == day{1};
}

Result<Moment> to_moment(std::string_view text, const Written& written) {
  const year_month_day date{year{written.year}, month{static_cast<unsigned>(written.month)},
                            day{static_cast<unsigned>(written.day)}};
  if (!date.ok()) return not_a_moment(text, "there is no such day in the calendar");
  if (written.hour > 23 || written.minute > 59 || written.second > 60) {
    return not_a_moment(text, "a time goes from 00:00:00 to 23:59:59");
  }
  if (written.offset_hour > 23 || written.offset_minute > 59) {
    return not_a_moment(text, "an offset goes from -23:59 to +23:59");
  }
  const auto offset = written.offset_sign * (hours{written.offset_hour} + minutes{written.offset_minute});
  const std::chrono::sys_seconds second =
      sys_days{date} + hours{written.hour} + minutes{written.minute} + seconds{written.second} - offset;
  if (written.second == 60 && !starts_month(second)) {
    return not_a_moment(text, "a leap second is only at 23:59:60 UTC at the end of a month");
  }
  const Moment moment = second + written.fraction;
  if (moment < kFirst || moment >= kEnd) return not_a_moment(text, kOutOfYears);
  return moment;
}

void put_digits(std::string& text, size_t at, size_t width, uint32_t number) {
  for (size_t i = at + width; i > at; --i, number /= 10) text[i - 1] = static_cast<char>('0' + number % 10);
}

}  // namespace

Result<Moment> parse_moment(std::string_view text) {
  std::string_view rest = text;
  const std::optional<Decimal> number = take_decimal(rest);
  if (number && rest.empty()) {
    const std::optional<int64_t> ms = scale_up(*number, 1'000);
    if (!ms || from_unix_ms(*ms) >= kEnd) return not_a_moment(text, kTooManySeconds);
    return from_unix_ms(*ms);
  }
  const std::optional<Written> written = read_rfc3339(text);
  if (!written) return not_a_moment(text, kUseRfc3339);
  return to_moment(text, *written);
}

std::string format_moment(Moment moment) {
  if (moment < kFirst || moment >= kEnd) {
    const int64_t ms = to_unix_ms(moment);
    const auto size = ms < 0 ? 0 - static_cast<uint64_t>(ms) : static_cast<uint64_t>(ms);
    return fmt::format("{}{}.{:03}", ms < 0 ? "-" : "", size / 1'000, size % 1'000);
  }
  const sys_days date = floor<days>(moment);
  const year_month_day calendar{date};
  const auto ms = static_cast<uint32_t>((moment - date).count());
  // Every answer to a push has a moment, so this is fast: digits are written by hand.
  std::string text = "0000-00-00T00:00:00.000Z";
  put_digits(text, 0, 4, static_cast<uint32_t>(static_cast<int>(calendar.year())));
  put_digits(text, 5, 2, static_cast<unsigned>(calendar.month()));
  put_digits(text, 8, 2, static_cast<unsigned>(calendar.day()));
  put_digits(text, 11, 2, ms / 3'600'000);
  put_digits(text, 14, 2, ms / 60'000 % 60);
  put_digits(text, 17, 2, ms / 1'000 % 60);
  put_digits(text, 20, 3, ms % 1'000);
  return text;
}

std::string occurrence_id(std::string_view name, Moment at) {
  constexpr std::string_view kZeroMillis = ".000Z";
  std::string time = format_moment(at);
  assert(!name.empty() && time.size() + 1 == kOccurrenceBytes);
  if (time.ends_with(kZeroMillis)) time.replace(time.size() - kZeroMillis.size(), kZeroMillis.size(), "Z");
  std::string id;
  id.reserve(name.size() + 1 + time.size());
  id.append(name).append(1, '@').append(time);
  return id;
}

bool is_occurrence_ending(std::string_view text) {
  // A digit stands for any digit, every other character for itself.
  constexpr std::string_view kSeconds = "@0000-00-00T00:00:00Z";
  constexpr std::string_view kMillis = "@0000-00-00T00:00:00.000Z";
  static_assert(kMillis.size() == kOccurrenceBytes && kSeconds.size() + 4 == kOccurrenceBytes);
  const std::string_view pattern = text.size() == kMillis.size() ? kMillis : kSeconds;
  if (text.size() != pattern.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool fits = pattern[i] == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == pattern[i];
    if (!fits) return false;
  }
  return true;
}

}  // namespace delayq
