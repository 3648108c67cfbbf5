#include "core/moment.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/evenly.h"

namespace delayq {
namespace {

constexpr int64_t kSecondsUntil10000 = 253'402'300'800;

/// The parsed Unix milliseconds; -1 when refused.
int64_t moment_ms(std::string_view text) {
  const Result<Moment> moment = parse_moment(text);
  return moment ? to_unix_ms(*moment) : -1;
}

std::string moment_error(std::string_view text) {
  const Result<Moment> moment = parse_moment(text);
  return moment ? "accepted" : moment.error().detail;
}

TEST(Moment, reads_rfc3339) {
  EXPECT_EQ(moment_ms("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(moment_ms("2001-09-09T01:46:40Z"), 1'000'000'000'000);
  EXPECT_EQ(moment_ms("2001-09-09t01:46:40z"), 1'000'000'000'000);
  EXPECT_EQ(moment_ms("2001-09-09 01:46:40Z"), 1'000'000'000'000);
  EXPECT_EQ(moment_ms("2001-09-09T03:46:40+02:00"), 1'000'000'000'000);
  EXPECT_EQ(moment_ms("2001-09-08T20:16:40-05:30"), 1'000'000'000'000);
  EXPECT_EQ(moment_ms("2001-09-09T01:46:40-00:00"), 1'000'000'000'000);
  EXPECT_EQ(moment_ms("2001-09-10T01:45:40+23:59"), 1'000'000'000'000);
  EXPECT_EQ(moment_ms("2038-01-19T03:14:08Z"), 2'147'483'648'000);
  EXPECT_EQ(moment_ms("9999-12-31T23:59:59.999Z"), kSecondsUntil10000 * 1'000 - 1);
}

// The examples of RFC 3339, section 5.8, as `date -u +%s` gives them.
TEST(Moment, reads_the_examples_of_the_rfc) {
  EXPECT_EQ(moment_ms("1985-04-12T23:20:50.52Z"), 482'196'050'520);
  EXPECT_EQ(moment_ms("1996-12-19T16:39:57-08:00"), 851'042'397'000);
  EXPECT_EQ(moment_ms("1990-12-31T23:59:60Z"), 662'688'000'000);
  EXPECT_EQ(moment_ms("1990-12-31T15:59:60-08:00"), 662'688'000'000);
  EXPECT_EQ(moment_error("1937-01-01T12:00:27.87+00:20"),
            R"("1937-01-01T12:00:27.87+00:20" is not a moment: it must be in the years 1970 to 9999 (UTC))");
}

TEST(Moment, reads_unix_seconds) {
  EXPECT_EQ(moment_ms("0"), 0);
  EXPECT_EQ(moment_ms("1700000000"), 1'700'000'000'000);
  EXPECT_EQ(moment_ms("1700000000.25"), 1'700'000'000'250);
  EXPECT_EQ(moment_ms("1700000000.0001"), 1'700'000'000'001);
  EXPECT_EQ(moment_ms("253402300799.999"), kSecondsUntil10000 * 1'000 - 1);
  EXPECT_EQ(moment_ms("253402300799.9991"), -1);
  EXPECT_EQ(moment_ms("253402300800"), -1);
  EXPECT_EQ(moment_ms(std::string(100, '9')), -1);
}

TEST(Moment, rounds_up_so_that_nothing_is_early) {
  EXPECT_EQ(moment_ms("1970-01-01T00:00:00.001Z"), 1);
  EXPECT_EQ(moment_ms("1970-01-01T00:00:00.0010Z"), 1);
  EXPECT_EQ(moment_ms("1970-01-01T00:00:00.00100000000000000000000001Z"), 2);
  EXPECT_EQ(moment_ms("1970-01-01T00:00:00.9991Z"), 1'000);
  EXPECT_EQ(moment_ms("1970-12-31T23:59:59.9999+00:00"), 31'536'000'000);
  EXPECT_EQ(moment_ms("9999-12-31T23:59:59.9991Z"), -1) << "the year 10000, then";
}

TEST(Moment, keeps_to_the_calendar) {
  EXPECT_EQ(moment_ms("2024-02-29T00:00:00Z"), 1'709'164'800'000);
  EXPECT_EQ(moment_ms("2000-02-29T00:00:00Z"), 951'782'400'000);
  for (std::string_view text :
       {"2023-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2024-02-30T00:00:00Z", "2024-04-31T00:00:00Z",
        "2024-00-01T00:00:00Z", "2024-13-01T00:00:00Z", "2024-01-00T00:00:00Z", "2024-01-32T00:00:00Z"}) {
    EXPECT_EQ(moment_error(text),
              "\"" + std::string(text) + "\" is not a moment: there is no such day in the calendar");
  }
}

TEST(Moment, keeps_to_the_clock) {
  for (std::string_view text : {"2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01T00:00:61Z"}) {
    EXPECT_EQ(moment_error(text),
              "\"" + std::string(text) + "\" is not a moment: a time goes from 00:00:00 to 23:59:59");
  }
  for (std::string_view text : {"2024-01-01T00:00:00+24:00", "2024-01-01T00:00:00-00:60"}) {
    EXPECT_EQ(moment_error(text),
              "\"" + std::string(text) + "\" is not a moment: an offset goes from -23:59 to +23:59");
  }
}

TEST(Moment, a_leap_second_is_the_second_after_it) {
  EXPECT_EQ(moment_ms("2016-12-31T23:59:60Z"), moment_ms("2017-01-01T00:00:00Z"));
  EXPECT_EQ(moment_ms("2016-12-31T23:59:60.5Z"), moment_ms("2017-01-01T00:00:00.5Z"));
  EXPECT_EQ(moment_ms("2015-07-01T01:59:60+02:00"), moment_ms("2015-07-01T00:00:00Z"));
  EXPECT_EQ(moment_ms("9999-12-31T23:59:60Z"), -1);
  for (std::string_view text : {"2016-12-30T23:59:60Z", "2016-12-31T22:59:60Z", "2016-12-31T23:58:60Z",
                                "2016-12-31T23:59:60+01:00"}) {
    EXPECT_EQ(moment_error(text),
              "\"" + std::string(text) +
                  "\" is not a moment: a leap second is only at 23:59:60 UTC at the end of a month");
  }
}

TEST(Moment, the_offset_decides_about_the_year) {
  EXPECT_EQ(moment_ms("1969-12-31T23:30:00-01:00"), 1'800'000);
  EXPECT_EQ(moment_ms("1970-01-01T00:30:00+01:00"), -1);
  EXPECT_EQ(moment_ms("9999-12-31T23:30:00-01:00"), -1);
  EXPECT_EQ(moment_ms("0000-01-01T00:00:00Z"), -1);
}

TEST(Moment, refuses_what_is_not_a_moment) {
  for (std::string_view text : {"",
                                " ",
                                "now",
                                "-1",
                                "+1",
                                "1e9",
                                "0x10",
                                "1.",
                                ".5",
                                "nan",
                                "inf",
                                "30s",
                                "2024-01-01",
                                "2024-01-01T00:00:00",
                                "2024-01-01T00:00Z",
                                "2024-1-1T00:00:00Z",
                                "24-01-01T00:00:00Z",
                                "2024-01-01_00:00:00Z",
                                "2024-01-01T00:00:00.Z",
                                "2024-01-01T00:00:00,5Z",
                                "2024-01-01T00:00:00+0100",
                                "2024-01-01T00:00:00+01",
                                "2024-01-01T00:00:00 Z",
                                "2024-01-01T00:00:00ZZ",
                                " 2024-01-01T00:00:00Z",
                                "2024-01-01T00:00:00Z ",
                                "2024-01-01T00:00:00Z+01:00",
                                "+2024-01-01T00:00:00Z",
                                "02024-01-01T00:00:00Z",
                                "2024/01/01T00:00:00Z",
                                "2024-01-01T-1:00:00Z",
                                "20240101T000000Z"}) {
    EXPECT_EQ(moment_ms(text), -1) << text;
  }
  EXPECT_EQ(moment_ms(std::string_view("2024-01-01T00:00:00Z\0", 21)), -1);
}

TEST(Moment, says_what_was_wrong_and_what_would_be_right) {
  EXPECT_EQ(
      moment_error("tomorrow"),
      R"("tomorrow" is not a moment: use RFC 3339 such as "2030-01-31T08:00:00Z", or a number of Unix seconds)");
  EXPECT_EQ(moment_error("1700000000000"), R"("1700000000000" is not a moment: it is after the year 9999; )"
                                           "a bare number counts seconds, not milliseconds");
  EXPECT_EQ(parse_moment("tomorrow").error().code, ErrorCode::kInvalid);
}

TEST(Moment, is_written_as_rfc3339_in_utc) {
  EXPECT_EQ(format_moment(from_unix_ms(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_moment(from_unix_ms(1'709'210'096'007)), "2024-02-29T12:34:56.007Z");
  EXPECT_EQ(format_moment(from_unix_ms(kSecondsUntil10000 * 1'000 - 1)), "9999-12-31T23:59:59.999Z");
}

TEST(Moment, outside_of_the_calendar_it_is_written_as_a_number) {
  EXPECT_EQ(format_moment(from_unix_ms(kSecondsUntil10000 * 1'000)), "253402300800.000");
  EXPECT_EQ(format_moment(from_unix_ms(-1)), "-0.001");
  EXPECT_EQ(format_moment(kNever), "9223372036854775.807");
  EXPECT_EQ(format_moment(Moment::min()), "-9223372036854775.808");
}

// Counts the days by the rules a person knows, and compares every day of 140 years, both ways.
TEST(Moment, agrees_with_a_calendar_on_the_wall) {
  constexpr int kMonthDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int64_t day_number = 0;
  for (int year = 1970; year < 2110; ++year) {
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    for (int month = 1; month <= 12; ++month) {
      const int days = kMonthDays[month - 1] + (month == 2 && leap ? 1 : 0);
      for (int day = 1; day <= days; ++day, ++day_number) {
        const std::string text = fmt::format("{:04}-{:02}-{:02}T00:00:00.000Z", year, month, day);
        ASSERT_EQ(moment_ms(text), day_number * 86'400'000) << text;
        ASSERT_EQ(format_moment(from_unix_ms(day_number * 86'400'000)), text);
      }
    }
  }
}

RC_GTEST_PROP(Moment, what_is_written_is_read_back, ()) {
  const auto unix_ms = *evenly<int64_t>(0, kSecondsUntil10000 * 1'000);
  RC_ASSERT(moment_ms(format_moment(from_unix_ms(unix_ms))) == unix_ms);
}

RC_GTEST_PROP(Moment, an_offset_shifts_and_nothing_else, ()) {
  const auto unix_ms = *evenly<int64_t>(86'400'000, (kSecondsUntil10000 - 86'400) * 1'000);
  const auto hours = *evenly(0, 24);
  const auto minutes = *evenly(0, 60);
  const auto east = *rc::gen::arbitrary<bool>();
  const int64_t offset_ms = (hours * 60 + minutes) * 60'000LL;
  // The local clock of a place east of Greenwich is ahead.
  std::string local = format_moment(from_unix_ms(unix_ms + (east ? offset_ms : -offset_ms)));
  local.pop_back();
  RC_ASSERT(moment_ms(local + fmt::format("{}{:02}:{:02}", east ? '+' : '-', hours, minutes)) == unix_ms);
}

RC_GTEST_PROP(Moment, both_forms_agree, ()) {
  const auto seconds = *evenly<int64_t>(0, kSecondsUntil10000 - 1);
  const auto digits =
      *rc::gen::nonEmpty(rc::gen::container<std::string>(evenly<char>('0', static_cast<char>('9' + 1))));
  std::string rfc3339 = format_moment(from_unix_ms(seconds * 1'000));
  rfc3339.erase(rfc3339.find('.') + 1);
  RC_ASSERT(moment_ms(rfc3339 + digits + "Z") == moment_ms(std::to_string(seconds) + "." + digits));
}

}  // namespace
}  // namespace delayq
