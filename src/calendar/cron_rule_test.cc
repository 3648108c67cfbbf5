#include "calendar/cron_rule.h"

#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "core/limits.h"

namespace delayq {
namespace {

static_assert(std::is_trivially_copyable_v<CronRule>);
static_assert(sizeof(CronRule) == 48);

CronRule rule(std::string_view text) {
  const Result<CronRule> parsed = CronRule::parse(text);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().detail);
  return *parsed;
}

/// What follows "... is not a cron rule: ".
std::string cron_error(std::string_view text) {
  const Result<CronRule> parsed = CronRule::parse(text);
  if (parsed) return "accepted";
  EXPECT_EQ(parsed.error().field, "cron");
  EXPECT_EQ(parsed.error().code, ErrorCode::kInvalid);
  const std::string& detail = parsed.error().detail;
  const std::string_view start = "\" is not a cron rule: ";
  const size_t at = detail.find(start);
  EXPECT_NE(at, std::string::npos) << detail;
  return detail.substr(at + start.size());
}

/// The first `count` times from the start of 2026 on (a Thursday), as "MM-DD hh:mm:ss".
std::vector<std::string> first_times(std::string_view text, size_t count) {
  const CronRule parsed = rule(text);
  std::vector<std::string> times;
  absl::CivilSecond from(2026, 1, 1);
  while (times.size() < count) {
    const std::optional<absl::CivilSecond> found = parsed.next(from);
    if (!found) break;
    times.push_back(absl::FormatCivilTime(*found).substr(5));
    times.back()[5] = ' ';
    from = *found + 1;
  }
  return times;
}

/// The days of 2026 up to `count` on which the rule matches, as "MM-DD".
std::vector<std::string> days(std::string_view fields, size_t count) {
  std::vector<std::string> found = first_times("0 0 " + std::string(fields), count);
  for (std::string& day : found) day.resize(5);
  return found;
}

using Texts = std::vector<std::string>;

TEST(CronRule, five_fields_and_six) {
  EXPECT_EQ(first_times("0 2 * * *", 2), (Texts{"01-01 02:00:00", "01-02 02:00:00"}));
  EXPECT_EQ(first_times("30 5 4 3 *", 1), (Texts{"03-04 05:30:00"}));
  EXPECT_EQ(first_times("15 30 5 4 3 *", 1), (Texts{"03-04 05:30:15"}));
  EXPECT_EQ(first_times("*/20 * * * * *", 4),
            (Texts{"01-01 00:00:00", "01-01 00:00:20", "01-01 00:00:40", "01-01 00:01:00"}));
  EXPECT_EQ(rule(" \t0   2\t* * *  "), rule("0 2 * * *"));
  EXPECT_EQ(rule("0 0 2 * * *"), rule("0 2 * * *"));
}

TEST(CronRule, lists_ranges_and_steps) {
  EXPECT_EQ(rule("*/15 * * * *"), rule("0,15,30,45 * * * *"));
  EXPECT_EQ(rule("5/10 * * * *"), rule("5,15,25,35,45,55 * * * *"));
  EXPECT_EQ(rule("59/10 * * * *"), rule("59 * * * *"));
  EXPECT_EQ(rule("1-30/5 * * * *"), rule("1,6,11,16,21,26 * * * *"));
  EXPECT_EQ(rule("0 9-17 * * *"), rule("0 9,10,11,12,13,14,15,16,17 * * *"));
  EXPECT_EQ(rule("0 22-23,0-2 * * *"), rule("0 0,1,2,22,23 * * *"));
  EXPECT_EQ(rule("5-5 * * * *"), rule("5 * * * *"));
  EXPECT_EQ(rule("05,005 * * * *"), rule("5 * * * *"));
  EXPECT_EQ(rule("0-59 * * * *"), rule("* * * * *"));
}

TEST(CronRule, months_and_weekdays_have_names) {
  EXPECT_EQ(rule("0 0 1 JAN,mar-May *"), rule("0 0 1 1,3-5 *"));
  EXPECT_EQ(rule("0 0 * * MON-fri"), rule("0 0 * * 1-5"));
  EXPECT_EQ(rule("0 0 * * 7"), rule("0 0 * * 0"));
  EXPECT_EQ(rule("0 0 * * 5-7"), rule("0 0 * * 0,5,6"));
  EXPECT_EQ(rule("0 0 * * FRI-SUN"), rule("0 0 * * 0,5,6"));
  EXPECT_EQ(rule("0 0 * * SUN-TUE"), rule("0 0 * * 0-2"));
  EXPECT_EQ(rule("0 0 * * SUN-SUN"), rule("0 0 * * 0"));
  EXPECT_EQ(rule("0 0 * * */2"), rule("0 0 * * 0,2,4,6"));
  EXPECT_EQ(rule("0 0 * * 1/2"), rule("0 0 * * 1,3,5"));
  EXPECT_EQ(rule("0 0 * * 1-7/2"), rule("0 0 * * 0,1,3,5"));
  EXPECT_EQ(rule("0 0 * FEB/3 *"), rule("0 0 * 2,5,8,11 *"));
}

TEST(CronRule, nicknames) {
  EXPECT_EQ(rule("@yearly"), rule("0 0 1 1 *"));
  EXPECT_EQ(rule("@annually"), rule("@yearly"));
  EXPECT_EQ(rule("@monthly"), rule("0 0 1 * *"));
  EXPECT_EQ(rule("@weekly"), rule("0 0 * * 0"));
  EXPECT_EQ(rule("@daily"), rule("0 0 * * *"));
  EXPECT_EQ(rule("@Midnight"), rule("@daily"));
  EXPECT_EQ(rule(" @hourly "), rule("0 * * * *"));
}

TEST(CronRule, last_days) {
  EXPECT_EQ(days("L * *", 3), (Texts{"01-31", "02-28", "03-31"}));
  EXPECT_EQ(days("l-3 * *", 3), (Texts{"01-28", "02-25", "03-28"}));
  EXPECT_EQ(days("1,L-1,L 2 *", 3), (Texts{"02-01", "02-27", "02-28"}));
  EXPECT_EQ(days("L-30 * *", 3), (Texts{"01-01", "03-01", "05-01"}));
  EXPECT_EQ(rule("0 0 L-0 * *"), rule("0 0 L * *"));
}

TEST(CronRule, weekdays_of_a_month) {
  EXPECT_EQ(days("* * 5L", 3), (Texts{"01-30", "02-27", "03-27"}));
  EXPECT_EQ(days("* * FRIL,monl", 4), (Texts{"01-26", "01-30", "02-23", "02-27"}));
  EXPECT_EQ(days("* * 5#2", 3), (Texts{"01-09", "02-13", "03-13"}));
  EXPECT_EQ(days("* * FRI#5", 3), (Texts{"01-30", "05-29", "07-31"}));
  EXPECT_EQ(days("* * TUE,FRI#1", 4), (Texts{"01-02", "01-06", "01-13", "01-20"}));
  EXPECT_EQ(days("* * 4#1", 2), (Texts{"01-01", "02-05"})) << "the month begins with that day";
  EXPECT_EQ(rule("0 0 * * 7#1,7L"), rule("0 0 * * SUN#1,0L"));
}

TEST(CronRule, either_day_field_is_enough_when_both_are_restricted) {
  EXPECT_EQ(days("13 * FRI", 4), (Texts{"01-02", "01-09", "01-13", "01-16"}));
  EXPECT_EQ(days("13 * *", 2), (Texts{"01-13", "02-13"}));
  EXPECT_EQ(days("* * FRI", 2), (Texts{"01-02", "01-09"}));
  EXPECT_EQ(days("? * FRI", 2), (Texts{"01-02", "01-09"}));
  EXPECT_EQ(days("13 * ?", 2), (Texts{"01-13", "02-13"}));
  EXPECT_EQ(days("*/1 * FRI", 2), (Texts{"01-02", "01-09"}));
  EXPECT_EQ(days("*/10 * FRI", 4), (Texts{"01-01", "01-02", "01-09", "01-11"})) << "a step restricts";
  EXPECT_EQ(days("1-31 * FRI", 3), (Texts{"01-01", "01-02", "01-03"})) << "so does a range of all days";
  EXPECT_EQ(days("30 2 FRI", 2), (Texts{"02-06", "02-13"})) << "one that never matches does no harm";
}

TEST(CronRule, knows_whether_it_names_hours) {
  for (std::string_view text : {"0 * * * *", "*/15 */1 * * *", "0 0-23 * * MON", "* 0/1 1 1 *", "@hourly"}) {
    EXPECT_FALSE(rule(text).is_tied_to_hours()) << text;
  }
  for (std::string_view text : {"0 2 * * *", "0 */2 * * *", "* 1-23 * * *", "@daily"}) {
    EXPECT_TRUE(rule(text).is_tied_to_hours()) << text;
  }
}

TEST(CronRule, a_rule_that_never_matches_is_refused) {
  for (std::string_view text :
       {"0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 feb ?", "0 0 L-30 4 *", "0 0 L-29 2 *"}) {
    EXPECT_EQ(cron_error(text), "no day ever matches it") << text;
  }
  EXPECT_EQ(CronRule::parse("0 0 30 2 *").error().detail,
            R"("0 0 30 2 *" is not a cron rule: no day ever matches it)");
  EXPECT_EQ(rule("0 0 29 2 *").next(absl::CivilSecond(2097)), absl::CivilSecond(2104, 2, 29));
  EXPECT_EQ(rule("0 0 * 2 MON#5").next(absl::CivilSecond(2081)), absl::CivilSecond(2112, 2, 29));
  EXPECT_EQ(rule("0 0 L-28 2 *").next(absl::CivilSecond(2026)), absl::CivilSecond(2028, 2, 1));
}

TEST(CronRule, an_error_says_where_and_what_is_right) {
  EXPECT_EQ(cron_error("60 * * * *"), R"(minute "60": use 0 to 59)");
  EXPECT_EQ(cron_error("0 24 * * *"), R"(hour "24": use 0 to 23)");
  EXPECT_EQ(cron_error("x 0 0 * * *"), R"(second "x": use 0 to 59)");
  EXPECT_EQ(cron_error("0 0 0 * *"),
            R"(day of the month "0": use 1 to 31, L for the last day, or L-3 for three days before it)");
  EXPECT_EQ(cron_error("0 0 * 13 *"), R"(month "13": use 1 to 12, or JAN to DEC)");
  EXPECT_EQ(
      cron_error("0 0 * * 8"),
      R"(day of the week "8": use 0 to 7 (0 and 7 are Sunday), SUN to SAT, FRI#2 for the second Friday, or FRIL for the last)");
  EXPECT_EQ(cron_error("0 22-2 * * *"), R"(hour "22-2": a range does not wrap around: use 22-23,0-2)");
  EXPECT_EQ(cron_error("0 0 * * FRI-MON"),
            R"(day of the week "FRI-MON": a range does not wrap around: use 5-6,0-1)");
  EXPECT_EQ(cron_error("*/0 * * * *"), R"(minute "*/0": a step is a number from 1 to 59)");
  EXPECT_EQ(cron_error("*/90 * * * *"), R"(minute "*/90": a step is a number from 1 to 59)");
  EXPECT_EQ(cron_error("1,,2 * * * *"), R"(minute "": a value is missing)");
  EXPECT_EQ(cron_error("? * * * *"),
            R"(minute "?": ? is only for the day of the month and the day of the week)");
  EXPECT_EQ(cron_error("0 0 * * L"),
            R"(day of the week "L": it does not say which day: use FRIL for the last Friday)");
  EXPECT_EQ(cron_error("0 0 * * 5#6"), R"(day of the week "5#6": the number after # is 1 to 5)");
  EXPECT_EQ(cron_error("0 0 L-31 * *"), R"(day of the month "L-31": use L, or L-1 to L-30)");
  EXPECT_EQ(cron_error("@reboot"),
            "use one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly");
  EXPECT_EQ(CronRule::parse("@reboot").error().known->size(), 7);
  const std::string fields =
      ": use 5 (minute, hour, day of the month, month, day of the week), or 6 with the second in front";
  EXPECT_EQ(cron_error(""), "it has 0 fields" + fields);
  EXPECT_EQ(cron_error("hourly"), "it has 1 field" + fields);
  EXPECT_EQ(cron_error("0 0 * * * * 2026"), "it has 7 fields" + fields);
  EXPECT_EQ(cron_error(std::string(Limits::kCronBytes + 1, '*')), "it has 256 bytes, and may have 255");
}

TEST(CronRule, refuses_what_is_no_item) {
  for (std::string_view item :
       {"",   "-",   "/",   "/5",  "-5", "5-", "5/", "1-2-3", "1/2/3", "*-5",    "**",    "*5",
        "+5", "1.5", "0x1", "JAN", "L",  "5L", "W",  "#",     "1000",  "*/1000", "1-1000"}) {
    EXPECT_FALSE(CronRule::parse(std::string(item) + " * * * *")) << item;
  }
  for (std::string_view item : {"LW", "15W", "L-", "L--1", "L3", "3L", "?,1", "0", "32", "MON", "5#1"}) {
    EXPECT_FALSE(CronRule::parse("0 0 " + std::string(item) + " * *")) << item;
  }
  for (std::string_view item :
       {"#1", "5#", "5#x", "5#0", "8#1", "1-5#2", "*#1", "1-5L", "*L", "LL", "L5", "?,1", "MO", "MOND"}) {
    EXPECT_FALSE(CronRule::parse("0 0 * * " + std::string(item))) << item;
  }
  EXPECT_FALSE(CronRule::parse("0 0 * *\n*"));
  EXPECT_FALSE(CronRule::parse(std::string("0 0 * * *\0", 10)));
}

TEST(CronRule, next_and_last_include_the_time_itself) {
  const CronRule daily = rule("30 2 * * *");
  const absl::CivilSecond at(2026, 3, 1, 2, 30);
  EXPECT_EQ(daily.next(at), at);
  EXPECT_EQ(daily.next(at + 1), absl::CivilSecond(2026, 3, 2, 2, 30));
  EXPECT_EQ(daily.last(at), at);
  EXPECT_EQ(daily.last(at - 1), absl::CivilSecond(2026, 2, 28, 2, 30));
}

TEST(CronRule, crosses_years_and_ends_somewhere) {
  const CronRule leap = rule("59 59 23 29 2 *");
  EXPECT_EQ(leap.next(absl::CivilSecond(2096, 3, 1)), absl::CivilSecond(2104, 2, 29, 23, 59, 59));
  EXPECT_EQ(leap.last(absl::CivilSecond(2104, 2, 29)), absl::CivilSecond(2096, 2, 29, 23, 59, 59));
  EXPECT_EQ(leap.next(absl::CivilSecond(10'000, 3, 1)), std::nullopt);
  EXPECT_EQ(leap.last(absl::CivilSecond(1972)), std::nullopt);
  const CronRule always = rule("* * * * * *");
  EXPECT_EQ(always.next(absl::CivilSecond(10'001)), std::nullopt);
  EXPECT_EQ(always.last(absl::CivilSecond(1968, 12, 31, 23, 59, 59)), std::nullopt);
}

}  // namespace
}  // namespace delayq
