// Occurrences, compared with a reference that only asks what a zone's clock shows at a moment. It walks
// through all moments around a clock change and keeps a list of the local times that it has seen. So it
// shares neither the search nor the conversion of local times with the code under test.
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "calendar/recurrence.h"
#include "tests/support/evenly.h"

namespace delayq {
namespace {

using absl::CivilSecond;
using Values = std::set<int>;

/// A rule of plain lists, as text and as the sets that it was made of. An empty set is `*`.
struct PlainRule {
  Values seconds, minutes, hours, days, months, weekdays;

  std::string text() const {
    const auto list = [](const Values& values) {
      return values.empty() ? std::string("*") : fmt::format("{}", fmt::join(values, ","));
    };
    return fmt::format("{} {} {} {} {} {}", list(seconds), list(minutes), list(hours), list(days),
                       list(months), list(weekdays));
  }

  bool is_tied_to_hours() const { return !hours.empty() && hours.size() < 24; }

  bool matches(CivilSecond local) const {
    const auto in = [](const Values& values, int value) { return values.empty() || values.contains(value); };
    const int weekday = (static_cast<int>(absl::GetWeekday(absl::CivilDay(local))) + 1) % 7;
    const bool by_day = in(days, local.day());
    const bool by_weekday = in(weekdays, weekday);
    const bool is_day = days.empty() || weekdays.empty() ? by_day && by_weekday : by_day || by_weekday;
    return is_day && in(seconds, local.second()) && in(minutes, local.minute()) && in(hours, local.hour()) &&
           in(months, local.month());
  }
};

Values any_values(int low, int high, int most) {
  return *rc::gen::resize(most, rc::gen::container<std::set<int>>(evenly(low, high + 1)));
}

PlainRule any_rule(bool has_seconds) {
  PlainRule rule;
  rule.seconds = has_seconds ? any_values(0, 59, 8) : Values{0};
  rule.minutes = any_values(0, 59, 8);
  rule.hours = *rc::gen::element(Values{}, Values{0}, any_values(0, 4, 3), any_values(0, 23, 30));
  rule.days = *rc::gen::element(Values{}, any_values(1, 31, 20));
  rule.weekdays = *rc::gen::element(Values{}, any_values(0, 6, 4));
  return rule;
}

/// A stretch of time that a reference walks through, and how far apart the moments are that it looks at.
struct Window {
  absl::Time begin, end;
  absl::Duration step;
  absl::Duration before = absl::Hours(25);  ///< what local times came before `begin` is known for so long
};

/// All occurrences in the window.
std::vector<Moment> reference(const PlainRule& rule, const absl::TimeZone& zone, const Window& window) {
  std::set<CivilSecond> seen;
  std::vector<Moment> occurrences;
  const int64_t step = absl::ToInt64Seconds(window.step);
  CivilSecond expected = zone.At(window.begin - window.before).cs;
  for (absl::Time at = window.begin - window.before; at < window.end; at += window.step) {
    const CivilSecond local = zone.At(at).cs;
    bool is_due = rule.matches(local);
    if (rule.is_tied_to_hours()) {
      is_due = is_due && seen.insert(local).second;
      for (CivilSecond left_out = expected; left_out < local; left_out += step) {
        is_due = is_due || rule.matches(left_out);
      }
    }
    expected = local + step;
    if (is_due && at >= window.begin) occurrences.push_back(from_unix_ms(absl::ToUnixMillis(at)));
  }
  return occurrences;
}

void compare(const PlainRule& rule, const Zone& zone, const Window& window) {
  const auto parsed = CronRule::parse(rule.text());
  RC_PRE(parsed.ok());
  const Recurrence recurrence = Recurrence::cron(*parsed, zone);
  const std::vector<Moment> expected = reference(rule, zone.get(), window);
  const Moment begin = from_unix_ms(absl::ToUnixMillis(window.begin));
  const Moment end = from_unix_ms(absl::ToUnixMillis(window.end));
  std::vector<Moment> forwards;
  for (auto at = recurrence.next_after(begin - Millis{1}); at && *at < end; at = recurrence.next_after(*at)) {
    forwards.push_back(*at);
  }
  RC_ASSERT(forwards == expected);
  std::vector<Moment> backwards;
  for (auto at = recurrence.last_until(end - Millis{1}); at && *at >= begin;
       at = recurrence.last_until(*at - Millis{1})) {
    backwards.insert(backwards.begin(), *at);
  }
  RC_ASSERT(backwards == expected);
  // From moments that are no occurrences.
  for (int i = 0; i < 20; ++i) {
    const Moment at = begin + Millis{*evenly<int64_t>(0, (end - begin).count())};
    const auto next = std::upper_bound(expected.begin(), expected.end(), at);
    if (next != expected.end()) RC_ASSERT(recurrence.next_after(at) == *next);
    if (next != expected.begin()) RC_ASSERT(recurrence.last_until(at) == *std::prev(next));
  }
  // Counted.
  for (int i = 0; i < 20; ++i) {
    const Moment first = begin + Millis{*evenly<int64_t>(0, (end - begin).count())};
    const Moment last = begin + Millis{*evenly<int64_t>(0, (end - begin).count())};
    const auto most = static_cast<uint64_t>(*evenly<int64_t>(1, 2'000));
    const auto from = std::lower_bound(expected.begin(), expected.end(), first);
    const auto until = std::upper_bound(expected.begin(), expected.end(), last);
    const auto there = until > from ? static_cast<uint64_t>(until - from) : uint64_t{0};
    RC_ASSERT(recurrence.count(first, last, most) == std::min(there, most));
    if (there == 0) continue;
    const Moment latest = *std::prev(until);
    RC_ASSERT(recurrence.first_of_last(most, first, latest) ==
              *(until - static_cast<int64_t>(std::min(there, most))));
  }
}

/// Every zone of the system's tzdata.
const std::vector<std::string>& all_zones() {
  static const std::vector<std::string> kZones = [] {
    std::vector<std::string> zones;
    const std::filesystem::path folder = "/usr/share/zoneinfo";
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      const std::string name = entry.path().lexically_relative(folder).string();
      if (entry.is_regular_file() && Zone::find(name)) zones.push_back(name);
    }
    std::sort(zones.begin(), zones.end());
    return zones;
  }();
  return kZones;
}

/// The moments of all clock changes of a zone from 1970 to 2040.
std::vector<absl::Time> changes_of(const absl::TimeZone& zone) {
  std::vector<absl::Time> changes;
  absl::TimeZone::CivilTransition change;
  absl::Time at = absl::FromUnixSeconds(200'000);
  while (zone.NextTransition(at, &change)) {
    at = zone.At(change.to).trans;
    if (at > absl::FromUnixSeconds(2'208'988'800)) break;
    changes.push_back(at);
  }
  return changes;
}

Zone any_zone() { return *Zone::find(*rc::gen::elementOf(all_zones())); }

RC_GTEST_PROP(RecurrenceProperty, every_minute_around_a_clock_change, ()) {
  const Zone zone = any_zone();
  const std::vector<absl::Time> changes = changes_of(zone.get());
  RC_PRE(!changes.empty());
  const absl::Time change = *rc::gen::elementOf(changes);
  // Offsets with seconds were left behind by 1972.
  RC_PRE(zone.get().At(change - absl::Seconds(1)).offset % 60 == 0);
  compare(any_rule(false), zone, {change - absl::Hours(5), change + absl::Hours(30), absl::Minutes(1)});
}

RC_GTEST_PROP(RecurrenceProperty, every_second_around_a_clock_change, ()) {
  const Zone zone = any_zone();
  const std::vector<absl::Time> changes = changes_of(zone.get());
  RC_PRE(!changes.empty());
  const absl::Time change = *rc::gen::elementOf(changes);
  PlainRule rule = any_rule(true);
  rule.days = rule.weekdays = {};
  compare(rule, zone,
          {change - absl::Minutes(70), change + absl::Minutes(70), absl::Seconds(1), absl::Hours(6)});
}

RC_GTEST_PROP(RecurrenceProperty, any_day_of_any_year, ()) {
  const auto begin = absl::FromUnixSeconds(*evenly<int64_t>(2, 250'000'000) * 1'000 / 60 * 60);
  PlainRule rule = any_rule(false);
  rule.months = *rc::gen::element(Values{}, any_values(1, 12, 12));
  compare(rule, Zone(), {begin, begin + absl::Hours(72), absl::Minutes(1)});
}

RC_GTEST_PROP(RecurrenceProperty, next_and_last_are_neighbours, ()) {
  const auto text =
      *rc::gen::element<std::string>("0 0 29 2 *", "0 0 L * *", "15 3 * * FRI#2", "@hourly", "7 */5 * * 1L",
                                     "*/7 * * * * *", "0 12 13 * FRI", "30 1-3 L-2 * ?", "0 0 * 2 MON#5");
  const Recurrence recurrence = Recurrence::cron(*CronRule::parse(text), any_zone());
  const Moment at = from_unix_ms(*evenly<int64_t>(0, 253'402'300'800'000));
  const std::optional<Moment> next = recurrence.next_after(at);
  const std::optional<Moment> last = recurrence.last_until(at);
  if (next) {
    RC_ASSERT(*next > at);
    RC_ASSERT(recurrence.last_until(*next) == next);
    RC_ASSERT(recurrence.last_until(*next - Millis{1}) == last);
  }
  if (last) {
    RC_ASSERT(*last <= at);
    RC_ASSERT(recurrence.next_after(*last) == next);
    RC_ASSERT(recurrence.next_after(*last - Millis{1}) == last);
  }
}

RC_GTEST_PROP(RecurrenceProperty, a_count_is_the_number_of_steps, ()) {
  const auto text = *rc::gen::element<std::string>("0 0 29 2 *", "0 0 L * *", "15 3 * * FRI#2", "@hourly",
                                                   "7 */5 * * 1L", "*/7 * * * * *", "0 12 13 * FRI",
                                                   "30 1-3 L-2 * ?", "0 0 * 2 MON#5", "*/30 1-3 * * *");
  const Recurrence recurrence = Recurrence::cron(*CronRule::parse(text), any_zone());
  const Moment first = from_unix_ms(*evenly<int64_t>(0, 4'102'444'800'000));
  const uint64_t steps = *evenly<uint64_t>(1, 300);
  std::optional<Moment> last = recurrence.next_after(first - Millis{1});
  RC_PRE(last.has_value());
  const Moment begin = *last;
  for (uint64_t i = 1; i < steps; ++i) {
    const std::optional<Moment> next = recurrence.next_after(*last);
    RC_PRE(next.has_value());
    last = next;
  }
  RC_ASSERT(recurrence.count(first, *last, 1'000) == steps);
  RC_ASSERT(recurrence.count(first, *last - Millis{1}, 1'000) == steps - 1);
  RC_ASSERT(recurrence.count(begin + Millis{1}, *last, 1'000) == steps - 1);
  RC_ASSERT(recurrence.count(first, *last, steps) == steps);
  RC_ASSERT(recurrence.first_of_last(steps, first, *last) == begin);
  RC_ASSERT(recurrence.first_of_last(1, first, *last) == *last);
}

RC_GTEST_PROP(RecurrenceProperty, every_counts_in_whole_intervals, ()) {
  const Millis interval{
      *rc::gen::oneOf(evenly<int64_t>(10'000, 100'000), evenly<int64_t>(10'000, 3'155'760'000'001))};
  const Moment anchor = from_unix_ms(*evenly<int64_t>(0, 253'402'300'800'000));
  const Moment at = from_unix_ms(*evenly<int64_t>(0, 253'402'300'800'000));
  const Recurrence recurrence = *Recurrence::every(interval, anchor);
  const std::optional<Moment> next = recurrence.next_after(at);
  const std::optional<Moment> last = recurrence.last_until(at);
  RC_ASSERT(last.has_value() == (at >= anchor));
  if (next) RC_ASSERT(*next > at && *next >= anchor && (*next - anchor) % interval == Millis{0});
  if (last) RC_ASSERT(*last <= at && *last >= anchor && (*last - anchor) % interval == Millis{0});
  if (last && next) RC_ASSERT(*next - *last == interval);
}

}  // namespace
}  // namespace delayq
