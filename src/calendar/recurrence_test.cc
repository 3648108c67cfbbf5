#include "calendar/recurrence.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/limits.h"
#include "core/moment.h"

namespace delayq {
namespace {

using Texts = std::vector<std::string>;

constexpr Moment kEnd = std::chrono::sys_days{std::chrono::year{10000} / 1 / 1};

Recurrence cron(std::string_view rule, std::string_view zone) {
  return Recurrence::cron(*CronRule::parse(rule), *Zone::find(zone));
}

/// All occurrences after `from` and before `until`, as local times "03-29T03:00+02:00". That last_until()
/// gives the same ones is checked on the way.
Texts between(std::string_view rule, std::string_view zone, std::string_view from, std::string_view until) {
  const Recurrence recurrence = cron(rule, zone);
  const Moment end = *parse_moment(until);
  Texts forwards;
  std::optional<Moment> at = parse_moment(from).value();
  const Moment begin = *at;
  const auto text = [&](Moment moment) {
    std::string local = local_time(moment, *Zone::find(zone));
    EXPECT_EQ(local.substr(16, 3), ":00");
    return local.erase(16, 3).substr(5);
  };
  while ((at = recurrence.next_after(*at)) && *at < end) forwards.push_back(text(*at));
  Texts backwards;
  at = end;
  while ((at = recurrence.last_until(*at - Millis{1})) && *at > begin) backwards.push_back(text(*at));
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(forwards, backwards);
  return forwards;
}

TEST(Every, counts_from_its_anchor) {
  const Moment anchor = from_unix_ms(1'000'007);
  const Recurrence recurrence = *Recurrence::every(Millis{10'001}, anchor);
  EXPECT_EQ(recurrence.next_after(anchor - Millis{1}), anchor);
  EXPECT_EQ(recurrence.next_after(Moment::min()), anchor);
  EXPECT_EQ(recurrence.next_after(anchor), anchor + Millis{10'001});
  EXPECT_EQ(recurrence.next_after(anchor + Millis{10'000}), anchor + Millis{10'001});
  EXPECT_EQ(recurrence.next_after(anchor + Millis{10'001}), anchor + Millis{20'002});
  EXPECT_EQ(recurrence.last_until(anchor - Millis{1}), std::nullopt);
  EXPECT_EQ(recurrence.last_until(Moment::min()), std::nullopt);
  EXPECT_EQ(recurrence.last_until(anchor), anchor);
  EXPECT_EQ(recurrence.last_until(anchor + Millis{10'000}), anchor);
  EXPECT_EQ(recurrence.last_until(anchor + Millis{10'001}), anchor + Millis{10'001});
}

TEST(Every, ends_with_the_year_9999) {
  const Recurrence recurrence = *Recurrence::every(std::chrono::seconds{10}, Moment{});
  const Moment last = kEnd - std::chrono::seconds{10};
  EXPECT_EQ(recurrence.next_after(last - Millis{1}), last);
  EXPECT_EQ(recurrence.next_after(last), std::nullopt);
  EXPECT_EQ(recurrence.next_after(kNever), std::nullopt);
  EXPECT_EQ(recurrence.last_until(kNever), last);
  EXPECT_EQ(Recurrence::every(Limits::kMaxEvery, kEnd - Millis{1})->next_after(kEnd), std::nullopt);
}

TEST(Every, has_bounds) {
  for (Millis interval :
       {Millis{0}, Millis{-1}, Millis{9'999}, Limits::kMaxEvery + Millis{1}, Millis::max(), Millis::min()}) {
    const Result<Recurrence> refused = Recurrence::every(interval, Moment{});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "every");
  }
  EXPECT_EQ(Recurrence::every(Millis{1'500}, Moment{}).error().detail,
            "every 1.5s is out of range: use 10s to 36525d");
  EXPECT_TRUE(Recurrence::every(Millis{10'000}, Moment{}));
  EXPECT_TRUE(Recurrence::every(Limits::kMaxEvery, Moment{}));
  for (Moment anchor : {Moment{Millis{-1}}, kEnd, kNever, Moment::min()}) {
    const Result<Recurrence> refused = Recurrence::every(Millis{10'000}, anchor);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "start");
  }
}

TEST(Cron, next_is_after_and_last_is_until) {
  const Recurrence hourly = cron("0 * * * *", "UTC");
  const Moment nine = *parse_moment("2026-11-16T09:00:00Z");
  EXPECT_EQ(hourly.next_after(nine - Millis{1}), nine);
  EXPECT_EQ(hourly.next_after(nine), nine + std::chrono::hours{1});
  EXPECT_EQ(hourly.next_after(nine + Millis{1}), nine + std::chrono::hours{1});
  EXPECT_EQ(hourly.last_until(nine - Millis{1}), nine - std::chrono::hours{1});
  EXPECT_EQ(hourly.last_until(nine), nine);
  EXPECT_EQ(hourly.last_until(nine + Millis{999}), nine);
}

TEST(Cron, keeps_to_the_years_of_moments) {
  for (std::string_view zone : {"UTC", "Asia/Tokyo", "America/New_York"}) {
    for (std::string_view rule : {"0 * * * *", "0 0-22 * * *"}) {
      const Recurrence recurrence = cron(rule, zone);
      EXPECT_EQ(recurrence.next_after(Moment::min()), Moment{}) << zone;
      EXPECT_EQ(recurrence.last_until(Moment{} - Millis{1}), std::nullopt);
      EXPECT_EQ(recurrence.last_until(Moment::min()), std::nullopt);
      const std::optional<Moment> last = recurrence.last_until(kNever);
      ASSERT_TRUE(last);
      EXPECT_LT(*last, kEnd);
      EXPECT_GE(*last, kEnd - std::chrono::hours{2});
      EXPECT_EQ(recurrence.next_after(*last), std::nullopt);
      EXPECT_EQ(recurrence.next_after(kNever), std::nullopt);
    }
  }
}

TEST(Cron, far_future_keeps_the_rules_of_the_zone) {
  EXPECT_EQ(between("30 2 * * *", "Europe/Berlin", "9000-03-29T12:00:00Z", "9000-04-01T00:00:00Z"),
            (Texts{"03-30T03:00+02:00", "03-31T02:30+02:00"}));
}

// The examples of recurrence.h and of the guide.
TEST(ClockChange, berlin_in_spring) {
  const auto on_the_day = [](std::string_view rule) {
    return between(rule, "Europe/Berlin", "2026-03-29T00:59:59+01:00", "2026-03-29T04:00:00+02:00");
  };
  EXPECT_EQ(on_the_day("30 2 * * *"), (Texts{"03-29T03:00+02:00"}));
  EXPECT_EQ(on_the_day("0 2 * * *"), (Texts{"03-29T03:00+02:00"}));
  EXPECT_EQ(on_the_day("0 2,3 * * *"), (Texts{"03-29T03:00+02:00"}));
  EXPECT_EQ(on_the_day("10 2,3 * * *"), (Texts{"03-29T03:00+02:00", "03-29T03:10+02:00"}));
  EXPECT_EQ(on_the_day("*/30 1-3 * * *"),
            (Texts{"03-29T01:00+01:00", "03-29T01:30+01:00", "03-29T03:00+02:00", "03-29T03:30+02:00"}));
  EXPECT_EQ(on_the_day("*/30 * * * *"),
            (Texts{"03-29T01:00+01:00", "03-29T01:30+01:00", "03-29T03:00+02:00", "03-29T03:30+02:00"}));
  EXPECT_EQ(on_the_day("15 * * * *"), (Texts{"03-29T01:15+01:00", "03-29T03:15+02:00"}));
  EXPECT_EQ(on_the_day("0 */2 * * *"), (Texts{"03-29T03:00+02:00"}));
  EXPECT_EQ(on_the_day("0 5 29 3 *"), (Texts{}));
}

TEST(ClockChange, berlin_in_autumn) {
  const auto on_the_day = [](std::string_view rule) {
    return between(rule, "Europe/Berlin", "2026-10-25T00:59:59+02:00", "2026-10-25T04:00:00+01:00");
  };
  EXPECT_EQ(on_the_day("30 2 * * *"), (Texts{"10-25T02:30+02:00"}));
  EXPECT_EQ(on_the_day("*/30 1-3 * * *"),
            (Texts{"10-25T01:00+02:00", "10-25T01:30+02:00", "10-25T02:00+02:00", "10-25T02:30+02:00",
                   "10-25T03:00+01:00", "10-25T03:30+01:00"}));
  EXPECT_EQ(on_the_day("*/30 * * * *"),
            (Texts{"10-25T01:00+02:00", "10-25T01:30+02:00", "10-25T02:00+02:00", "10-25T02:30+02:00",
                   "10-25T02:00+01:00", "10-25T02:30+01:00", "10-25T03:00+01:00", "10-25T03:30+01:00"}));
  EXPECT_EQ(on_the_day("0 */2 * * *"), (Texts{"10-25T02:00+02:00"}));
  EXPECT_EQ(on_the_day("0 3 * * *"), (Texts{"10-25T03:00+01:00"}));
}

TEST(ClockChange, new_york) {
  EXPECT_EQ(between("30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-10T00:00:00Z"),
            (Texts{"03-08T03:00-04:00", "03-09T02:30-04:00"}));
  EXPECT_EQ(between("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", "2026-11-02T12:00:00Z"),
            (Texts{"11-01T01:30-04:00", "11-02T01:30-05:00"}));
  EXPECT_EQ(between("30 * * * SUN", "America/New_York", "2026-11-01T04:00:00Z", "2026-11-01T08:00:00Z"),
            (Texts{"11-01T00:30-04:00", "11-01T01:30-04:00", "11-01T01:30-05:00", "11-01T02:30-05:00"}));
}

TEST(ClockChange, half_an_hour_on_lord_howe) {
  // 2026-10-04: 02:00 becomes 02:30. 2026-04-05: 02:00 becomes 01:30.
  EXPECT_EQ(between("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-05T00:00:00Z"),
            (Texts{"10-04T02:30+11:00", "10-05T02:15+11:00"}));
  EXPECT_EQ(between("0 * * * *", "Australia/Lord_Howe", "2026-10-03T13:45:00Z", "2026-10-03T16:15:00Z"),
            (Texts{"10-04T01:00+10:30", "10-04T03:00+11:00"}));
  EXPECT_EQ(between("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", "2026-04-05T00:00:00Z"),
            (Texts{"04-05T01:45+11:00"}));
  EXPECT_EQ(between("*/15 * * * *", "Australia/Lord_Howe", "2026-04-04T14:14:00Z", "2026-04-04T15:31:00Z"),
            (Texts{"04-05T01:15+11:00", "04-05T01:30+11:00", "04-05T01:45+11:00", "04-05T01:30+10:30",
                   "04-05T01:45+10:30", "04-05T02:00+10:30"}));
}

TEST(ClockChange, a_day_that_samoa_left_out) {
  EXPECT_EQ(between("0 9 * * *", "Pacific/Apia", "2011-12-28T20:00:00Z", "2012-01-01T00:00:00Z"),
            (Texts{"12-29T09:00-10:00", "12-31T00:00+14:00", "12-31T09:00+14:00", "01-01T09:00+14:00"}));
  EXPECT_EQ(between("0 9 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", "2012-01-31T00:00:00Z"),
            (Texts{"12-31T00:00+14:00"}));
  EXPECT_EQ(between("0 */6 * * *", "Pacific/Apia", "2011-12-30T00:00:00Z", "2011-12-31T00:00:00Z"),
            (Texts{"12-29T18:00-10:00", "12-31T00:00+14:00", "12-31T06:00+14:00", "12-31T12:00+14:00"}));
  EXPECT_EQ(between("0 * * * FRI", "Pacific/Apia", "2011-12-24T12:00:00Z", "2012-01-05T00:00:00Z"), (Texts{}))
      << "there was no Friday, and nothing makes up for it";
}

TEST(ClockChange, midnights_that_do_not_exist) {
  // 2018-11-04 began at 01:00 in Sao Paulo, 2026-04-24 in Cairo, 2026-03-29 in Beirut.
  EXPECT_EQ(between("@daily", "America/Sao_Paulo", "2018-11-03T04:00:00Z", "2018-11-05T12:00:00Z"),
            (Texts{"11-04T01:00-02:00", "11-05T00:00-02:00"}));
  EXPECT_EQ(between("@daily", "Africa/Cairo", "2026-04-23T04:00:00Z", "2026-04-25T12:00:00Z"),
            (Texts{"04-24T01:00+03:00", "04-25T00:00+03:00"}));
  EXPECT_EQ(between("@weekly", "Asia/Beirut", "2026-03-28T04:00:00Z", "2026-04-06T12:00:00Z"),
            (Texts{"03-29T01:00+03:00", "04-05T00:00+03:00"}));
}

TEST(ClockChange, midnights_that_come_twice) {
  // 2018-02-18 00:00 became 2018-02-17 23:00 in Sao Paulo: the 17th had its last hour twice.
  EXPECT_EQ(between("30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00:00Z", "2018-02-19T12:00:00Z"),
            (Texts{"02-17T23:30-02:00", "02-18T23:30-03:00"}));
  EXPECT_EQ(between("30 * 17 * *", "America/Sao_Paulo", "2018-02-18T00:00:00Z", "2018-02-19T00:00:00Z"),
            (Texts{"02-17T22:30-02:00", "02-17T23:30-02:00", "02-17T23:30-03:00"}));
  EXPECT_EQ(between("0 0 * * *", "America/Havana", "2026-10-31T12:00:00Z", "2026-11-02T12:00:00Z"),
            (Texts{"11-01T00:00-04:00", "11-02T00:00-05:00"}))
      << "01:00 becomes 00:00";
}

TEST(ClockChange, winter_time_that_is_the_exception) {
  // Dublin and Casablanca describe their winter (or Ramadan) as time that is set back from the standard.
  EXPECT_EQ(between("30 1 * * *", "Europe/Dublin", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z"),
            (Texts{"03-29T02:00+01:00", "03-30T01:30+01:00"}));
  EXPECT_EQ(between("30 1 * * *", "Europe/Dublin", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z"),
            (Texts{"10-25T01:30+01:00", "10-26T01:30+00:00"}));
  EXPECT_EQ(between("30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00:00Z", "2026-02-16T12:00:00Z"),
            (Texts{"02-15T02:30+01:00", "02-16T02:30+00:00"}));
  EXPECT_EQ(between("30 2 * * *", "Africa/Casablanca", "2026-03-21T12:00:00Z", "2026-03-23T12:00:00Z"),
            (Texts{"03-22T03:00+01:00", "03-23T02:30+01:00"}));
}

TEST(ClockChange, offsets_with_seconds) {
  // Monrovia was 44 minutes and 30 seconds behind UTC until 1972-01-07, which began at 00:44:30.
  const Recurrence daily = cron("0 12 * * *", "Africa/Monrovia");
  EXPECT_EQ(daily.next_after(*parse_moment("1971-06-01T00:00:00Z")), *parse_moment("1971-06-01T12:44:30Z"));
  const Recurrence midnight = cron("0 0 * * *", "Africa/Monrovia");
  EXPECT_EQ(midnight.next_after(*parse_moment("1972-01-06T12:00:00Z")),
            *parse_moment("1972-01-07T00:44:30Z"));
}

}  // namespace
}  // namespace delayq
