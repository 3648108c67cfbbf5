#include "bench/load/scenarios.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bench/load/consume.h"
#include "bench/load/life.h"
#include "bench/load/progress_bar.h"
#include "bench/load/stream.h"

namespace delayq::bench {

namespace {

/// Jobs must be there before they fall due: the last answer has to come so long before.
constexpr Millis kReserve{100};
constexpr std::string_view kWait = "10s";

Error bench_failed(std::string detail) { return {ErrorCode::kInvalid, "bench", std::move(detail), {}}; }

/// One run: what the scenarios share.
struct Run {
  const LoadOptions& options;
  const std::vector<Address>& servers;
  Deadline deadline;
  DelayqDialect dialect;
  Report report{};

  uint64_t jobs() const { return options.jobs.value_or(0); }

  Result<LoadResult> drive_with_bar(const std::string& what, Traffic& traffic) const {
    ProgressBar bar(what, jobs());
    return drive(servers, traffic, deadline, [&bar](uint64_t answered) { bar.show(answered); });
  }

  /// One request per job.
  Result<LoadResult> stream(const std::string& what, std::string good,
                            std::function<void(uint64_t, std::string&)> append) const {
    constexpr size_t kShortestReply = 8;
    const Stream stream{jobs(),         options.connections, options.pipeline, std::move(append),
                        kShortestReply, std::move(good)};
    StreamTraffic traffic(stream, dialect);
    return drive_with_bar(what, traffic);
  }

  /// The pushes before what is measured: all must be answered.
  Status prepare(std::function<void(uint64_t, std::string&)> append) {
    const Result<LoadResult> pushed = stream("pushing", "$", std::move(append));
    if (!pushed.ok()) return pushed.error();
    report.prepare_seconds = pushed->seconds;
    if (pushed->answered == jobs()) return {};
    return bench_failed(fmt::format("only {} of {} pushes were answered well; the first error: {}",
                                    pushed->answered, jobs(), pushed->first_error));
  }

  Result<Report> measured(Result<LoadResult> result) {
    if (!result.ok()) return result.error();
    report.result = std::move(*result);
    return report;
  }
};

Result<Report> run_push(Run& run) {
  return run.measured(run.stream(
      "push", "$", [&run](uint64_t number, std::string& out) { run.dialect.append_far_push(number, out); }));
}

Result<Report> run_life(Run& run) {
  LifeTraffic traffic({run.jobs(), run.options.connections, run.options.pipeline}, run.dialect);
  return run.measured(run.drive_with_bar("life", traffic));
}

Result<Report> run_cancel(Run& run) {
  const Status pushed =
      run.prepare([&run](uint64_t number, std::string& out) { run.dialect.append_named_push(number, out); });
  if (!pushed.ok()) return pushed.error();
  // Not in the order of the pushes: a prime that does not divide the number of jobs visits all of them.
  constexpr uint64_t kPrime = 2'654'435'761;
  return run.measured(run.stream("cancel", "+cancelled\r\n", [&run](uint64_t number, std::string& out) {
    run.dialect.append_cancel(run.jobs() % kPrime == 0 ? number : number * kPrime % run.jobs(), out);
  }));
}

Result<Report> run_drain(Run& run) {
  const Status pushed = run.prepare(
      [&run](uint64_t number, std::string& out) { run.dialect.append_push(number, number, out); });
  if (!pushed.ok()) return pushed.error();
  const Consumption consumption{run.jobs(), run.options.consumers.value_or(4),
                                run.dialect.pop_all(run.options.count.value_or(1), kWait)};
  ConsumeTraffic traffic(consumption, run.dialect);
  return run.measured(run.drive_with_bar("drain", traffic));
}

Moment wall_now() { return std::chrono::time_point_cast<Millis>(std::chrono::system_clock::now()); }

/// Pushes jobs due at due_of(number, first due time), waits for them, and judges when they come.
Result<Report> run_dated(Run& run, const std::function<Moment(uint64_t, Moment)>& due_of) {
  if (run.options.body < DelayqDialect::kDueBytes)
    return bench_failed(fmt::format("lateness needs bodies of at least {} bytes", DelayqDialect::kDueBytes));
  const Millis lead{static_cast<int64_t>(std::ceil(run.options.lead.value_or(2) * 1000))};
  const Moment first = std::chrono::ceil<std::chrono::seconds>(wall_now() + lead);
  const Status pushed = run.prepare([&](uint64_t number, std::string& out) {
    run.dialect.append_dated_push(number, due_of(number, first), out);
  });
  if (!pushed.ok()) return pushed.error();
  if (wall_now() + kReserve > first)
    return bench_failed("pushing took longer than the lead before the first due time; give a larger --lead");
  const Consumption consumption{run.jobs(), run.options.consumers.value_or(4),
                                run.dialect.pop_all(run.options.count.value_or(100), kWait), true};
  ConsumeTraffic traffic(consumption, run.dialect);
  Result<Report> report =
      run.measured(run.drive_with_bar(std::string(name_of(run.options.scenario)), traffic));
  if (!report.ok()) return report;
  // Not the time that was spent waiting for the first of them, unless nothing waited for its time.
  const double seconds =
      std::chrono::duration<double>(traffic.last_hand_over() - first.time_since_epoch()).count();
  if (seconds > 0) report->result.seconds = seconds;
  if (traffic.handed_over() < run.jobs()) report->result.errors += run.jobs() - traffic.handed_over();
  return report;
}

Result<Report> run_lateness(Run& run) {
  return run_dated(run, [rate = run.options.rate](uint64_t number, Moment first) {
    return first + Millis{static_cast<int64_t>(number * 1'000 / rate)};
  });
}

Result<Report> run_spike(Run& run) {
  Result<Report> report = run_dated(run, [](uint64_t, Moment first) { return first; });
  if (report.ok()) report->last_hand_over = report->result.seconds;
  return report;
}

}  // namespace

Result<Report> run_scenario(const LoadOptions& given, const std::vector<Address>& servers,
                            const std::string& topic, Deadline deadline) {
  const LoadOptions options = with_defaults(given);
  Run run{options, servers, deadline, DelayqDialect({topic, options.topics, options.body})};
  run.report.options = options;
  switch (options.scenario) {
    case Scenario::kPush:
      return run_push(run);
    case Scenario::kLife:
      return run_life(run);
    case Scenario::kDrain:
      return run_drain(run);
    case Scenario::kCancel:
      return run_cancel(run);
    case Scenario::kLateness:
      return run_lateness(run);
    case Scenario::kSpike:
      return run_spike(run);
  }
  return bench_failed("no such scenario");
}

}  // namespace delayq::bench
