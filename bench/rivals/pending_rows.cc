// With millions of jobs pending: cancel, and restart beside a Redis with the same jobs.
#include <fmt/format.h>

#include "bench/load/delayq_dialect.h"
#include "bench/load/stream.h"
#include "bench/rivals/control.h"
#include "bench/rivals/ours.h"
#include "bench/rivals/peers.h"
#include "resp/writer.h"

namespace delayq::bench {

namespace {

constexpr uint64_t kPending = 5'000'000;
constexpr double kCancelBar = 300'000;

Result<Outcome> measure_cancel(const Plan& plan) {
  LoadOptions options;
  options.scenario = Scenario::kCancel;
  options.jobs = plan.jobs(kPending);
  const Result<Report> report = run_ours(plan, options);
  if (!report.ok()) return report.error();
  Outcome outcome{"/s", report->ops_per_s()};
  outcome.is_met = outcome.ours >= kCancelBar;
  outcome.note = fmt::format("of {} pending, p99 {:.2f} ms", *options.jobs,
                             to_ms(report->result.latency.percentile(0.99)));
  return outcome;
}

/// Pushes named jobs with the dialect's bytes, or those that `append` makes instead.
Status fill(const Address& server, uint64_t requests, std::string good,
            std::function<void(uint64_t, std::string&)> append) {
  const DelayqDialect dialect({"bench", 1, kBodySize});
  const Stream stream{requests, 50, 32, std::move(append), 4, std::move(good)};
  StreamTraffic traffic(stream, dialect);
  const Result<LoadResult> result = drive({server}, traffic, row_deadline());
  if (!result.ok()) return result.error();
  if (result->answered == requests) return {};
  return Error{ErrorCode::kInternal, "rivals.fill", "the first error: " + result->first_error, {}};
}

Result<double> restart_ours(const Plan& plan, uint64_t jobs) {
  const auto server = start_ours(plan, "commit");
  if (!server.ok()) return server.error();
  const DelayqDialect dialect({"bench", 1, kBodySize});
  const Status filled = fill((*server)->address(), jobs, "$", [&dialect](uint64_t number, std::string& out) {
    dialect.append_named_push(number, out);
  });
  if (!filled.ok()) return filled.error();
  (*server)->stop();
  const auto begun = std::chrono::steady_clock::now();
  if (Status again = (*server)->start_again(row_deadline()); !again.ok()) return again.error();
  const std::string id = DelayqDialect::id(jobs / 2);
  const Result<double> answered =
      seconds_until_answer((*server)->address(), {"GET", "bench", id}, row_deadline());
  if (!answered.ok()) return answered.error();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

Result<double> restart_redis(uint64_t jobs) {
  const auto peer = Peer::redis("everysec", row_deadline());
  if (!peer.ok()) return peer.error();
  // A job is an entry of a hash and one of a sorted set; both commands count.
  constexpr uint64_t kFirstDue = 1'900'000'000'000;
  const std::string body(kBodySize, 'b');
  const Status filled = fill((*peer)->address(), 2 * jobs, ":1", [&body](uint64_t number, std::string& out) {
    const std::string id = DelayqDialect::id(number / 2);
    if (number % 2 == 0) return resp::append_command(out, {"HSET", "bench:jobs", id, body});
    resp::append_command(out, {"ZADD", "bench:delay", std::to_string(kFirstDue + number / 200), id});
  });
  if (!filled.ok()) return filled.error();
  (*peer)->stop();
  const auto begun = std::chrono::steady_clock::now();
  if (Status again = (*peer)->start_again(row_deadline()); !again.ok()) return again.error();
  const std::string id = DelayqDialect::id(jobs / 2);
  const Result<double> answered =
      seconds_until_answer((*peer)->address(), {"HGET", "bench:jobs", id}, row_deadline());
  if (!answered.ok()) return answered.error();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

Result<Outcome> measure_restart(const Plan& plan) {
  const uint64_t jobs = plan.jobs(kPending);
  const Result<double> ours = restart_ours(plan, jobs);
  if (!ours.ok()) return ours.error();
  const Result<double> theirs = restart_redis(jobs);
  if (!theirs.ok()) return theirs.error();
  Outcome outcome{"s", *ours, *theirs, *ours <= *theirs / 2};
  outcome.note = fmt::format("{} jobs, files in the page cache", jobs);
  return outcome;
}

}  // namespace

void add_pending_rows(std::vector<Row>& rows) {
  rows.push_back({"cancel", "cancel by id at 5 M pending, 50 x 32", "", "300 k/s", measure_cancel});
  rows.push_back({"restart", "restart with 5 M pending, until an answer", "redis-server", "half the time",
                  measure_restart});
}

}  // namespace delayq::bench
