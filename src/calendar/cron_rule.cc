#include "calendar/cron_rule.h"

#include <bit>
#include <chrono>

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

}  // namespace delayq
