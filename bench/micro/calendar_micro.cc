// What it costs to find an occurrence: a schedule asks once for each job that it makes.
#include <benchmark/benchmark.h>

#include "calendar/recurrence.h"

namespace delayq::bench {
namespace {

Recurrence cron(const char* rule, const char* zone) {
  return Recurrence::cron(*CronRule::parse(rule), *Zone::find(zone));
}

/// One occurrence after the other, from 2026 on; again from the start when there are no more.
void next_after(benchmark::State& state, const char* rule, const char* zone) {
  const Recurrence recurrence = cron(rule, zone);
  constexpr Moment kStart = std::chrono::sys_days{std::chrono::year{2026} / 1 / 1};
  Moment at = kStart;
  for (auto _ : state) {
    at = recurrence.next_after(at).value_or(kStart);
    benchmark::DoNotOptimize(at);
  }
}

/// A schedule that was not served for a while asks for its last occurrence.
void last_until(benchmark::State& state, const char* rule, const char* zone) {
  const Recurrence recurrence = cron(rule, zone);
  Moment at = std::chrono::sys_days{std::chrono::year{2026} / 1 / 1};
  for (auto _ : state) {
    benchmark::DoNotOptimize(recurrence.last_until(at));
    at += std::chrono::hours{7};
  }
}

void parse(benchmark::State& state, const char* rule) {
  for (auto _ : state) benchmark::DoNotOptimize(CronRule::parse(rule));
}

void find_zone(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Zone::find("Europe/Berlin"));
}

BENCHMARK(find_zone);
BENCHMARK_CAPTURE(next_after, minutes_utc, "*/5 * * * *", "UTC");
BENCHMARK_CAPTURE(next_after, minutes_berlin, "*/5 * * * *", "Europe/Berlin");
BENCHMARK_CAPTURE(next_after, daily_utc, "0 2 * * *", "UTC");
BENCHMARK_CAPTURE(next_after, daily_berlin, "0 2 * * *", "Europe/Berlin");
BENCHMARK_CAPTURE(next_after, weekdays_new_york, "0 9-17 * * MON-FRI", "America/New_York");
BENCHMARK_CAPTURE(next_after, monthly_shanghai, "0 0 L * *", "Asia/Shanghai");
BENCHMARK_CAPTURE(next_after, leap_days, "0 0 29 2 *", "Europe/Berlin");
BENCHMARK_CAPTURE(next_after, once_in_28_years, "0 0 * 2 MON#5", "Europe/Berlin");
BENCHMARK_CAPTURE(last_until, daily_berlin, "0 2 * * *", "Europe/Berlin");
BENCHMARK_CAPTURE(last_until, minutes_berlin, "*/5 * * * *", "Europe/Berlin");
BENCHMARK_CAPTURE(parse, weekdays, "0 9-17 * * MON-FRI");

}  // namespace
}  // namespace delayq::bench
