#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <absl/time/civil_time.h>

#include "core/result.h"

namespace delayq {

/// A cron rule: the local times that match it. It knows no zone and no clock change: see recurrence.h.
///
///   second (optional)   0-59           "0 2 * * *"         at 02:00 every day
///   minute              0-59           "*/15 * * * *"      every quarter of an hour
///   hour                0-23           "0 9-17 * * 1-5"    on the hour from 9 to 17, Monday to Friday
///   day of the month    1-31           "30 6 1,15 * *"     at 06:30 on the 1st and on the 15th
///   month               1-12           "0 0 L * *"         at midnight of the last day of each month
///   day of the week     0-7            "0 8 * * MON#1"     at 08:00 on the first Monday of each month
///                                      "*/10 * * * * *"    six fields: every ten seconds
///
/// A field is a list of these, separated by commas:
///
///   *          all               */15     every 15th value, from the smallest
///   5          one               5/10      every 10th value, from 5
///   1-5        a range           1-30/5    every 5th value of the range
///
/// Months and days of the week have names (JAN, MON; in any case). Sunday is 0 and 7; SUN ends a range as 7
/// (FRI-SUN). A range does not wrap around: "22-2" is an error, "22-23,0-2" is right. Besides:
///
///   day of the month   L      the last day        L-3                     three days before it
///   day of the week    5L     the last Friday     5#2, FRI#2, FRIL too    the second Friday
///   both               ?      the same as *, alone
///
/// `@yearly` (`@annually`), `@monthly`, `@weekly` (Sunday), `@daily` (`@midnight`) and `@hourly` are short
/// for the first moment of each.
///
/// **Days.** When both day fields are restricted, a day matches if either does, as in classic cron: "0 0 13 *
/// FRI" is every 13th and every Friday. A field is restricted unless it is `*`, `*/1` or `?`.
///
/// A value of 48 bytes without pointers. Comparing two tells whether they match the same times, as long as
/// the same times are also written by the same kinds of items (FRI#1 and "1-7" are different).
class CronRule {
 public:
  /// Refuses (kInvalid, field `cron`, with the place of the mistake) what is not a rule, and a rule that no
  /// day ever matches, such as "0 0 30 2 *".
  static Result<CronRule> parse(std::string_view text);

  /// The first matching second that is not before `from`. Nothing after the year 10000: moments
  /// end with 9999 in UTC, which is already 10000 in some zones.
  std::optional<absl::CivilSecond> next(absl::CivilSecond from) const;

  /// The last matching second that is not after `until`. Nothing before the year 1969: moments begin with
  /// 1970 in UTC, which is still 1969 in some zones.
  std::optional<absl::CivilSecond> last(absl::CivilSecond until) const;

  /// How many seconds from `from` to `until`, both included, match; counts up to `most`. Whole days are
  /// counted by arithmetic, a month at a time.
  uint64_t count(absl::CivilSecond from, absl::CivilSecond until, uint64_t most) const;

  /// Whether the hour field names hours, rather than all 24 of them.
  bool is_tied_to_hours() const { return hours_ != kAllHours; }

  bool operator==(const CronRule&) const = default;

 private:
  friend class CronParser;

  static constexpr uint32_t kAllHours = (uint32_t{1} << 24) - 1;

  CronRule() = default;

  bool ever_matches() const;
  /// The matching days of a month, as bits.
  uint32_t days_of(int64_t year, int month) const;
  uint32_t days_by_weekday(int first_weekday, int days) const;
  uint64_t times_of_day() const;
  uint64_t times_before(absl::CivilSecond time) const;
  bool matches_day(absl::CivilDay day) const;
  std::optional<absl::CivilDay> next_day(absl::CivilDay from, int64_t last_year) const;
  std::optional<absl::CivilDay> last_day(absl::CivilDay until) const;

  // Bit n is the value n.
  uint64_t seconds_ = 0;
  uint64_t minutes_ = 0;
  uint64_t nth_weekdays_ = 0;  ///< bit 7 * (n - 1) + weekday: the n-th (1 to 5) such day of the month
  uint32_t hours_ = 0;
  uint32_t days_ = 0;
  uint32_t days_from_end_ = 0;  ///< bit 0 is the last day of the month, bit 3 is L-3
  uint16_t months_ = 0;
  uint8_t weekdays_ = 0;  ///< bit 0 is Sunday
  uint8_t last_weekdays_ = 0;
  bool any_day_ = false;      ///< the day of the month is not restricted
  bool any_weekday_ = false;  ///< the day of the week is not restricted
};

static_assert(sizeof(CronRule) <= 64);

}  // namespace delayq
