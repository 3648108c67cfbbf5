// Ours and beanstalkd in turn, with the same shape of load.
#include <fmt/format.h>

#include "bench/load/life.h"
#include "bench/load/stream.h"
#include "bench/rivals/beanstalkd_dialect.h"
#include "bench/rivals/ours.h"
#include "bench/rivals/peers.h"

namespace delayq::bench {

namespace {

struct Shape {
  Scenario scenario = Scenario::kPush;
  uint64_t jobs = 0;
  uint64_t our_jobs = 0;  ///< more where ours is faster, so that both run for seconds
  size_t connections = 50;
  size_t pipeline = 32;
  std::string durability = "commit";
  double bar = 1;  ///< times theirs
};

struct Sample {
  double per_second = 0;
  double bytes_per_job = 0;  ///< that the server grew by
};

Result<Sample> measure_beanstalkd(const Shape& shape, uint64_t jobs) {
  const auto peer = Peer::beanstalkd(row_deadline());
  if (!peer.ok()) return peer.error();
  const BeanstalkdDialect dialect(kBodySize);
  const Stream stream{jobs,
                      shape.connections,
                      shape.pipeline,
                      [&dialect](uint64_t, std::string& out) { dialect.append_far_push(out); },
                      dialect.push_reply_bytes(),
                      "INSERTED "};
  StreamTraffic pushes(stream, dialect);
  LifeTraffic lives({jobs, shape.connections, shape.pipeline}, dialect);
  Traffic& traffic = shape.scenario == Scenario::kPush ? static_cast<Traffic&>(pushes) : lives;
  const auto before = static_cast<double>((*peer)->process().resident_bytes());
  const Result<LoadResult> result = drive({(*peer)->address()}, traffic, row_deadline());
  if (!result.ok()) return result.error();
  if (result->answered < jobs)
    return Error{ErrorCode::kInternal, "rivals.beanstalkd", "the first error: " + result->first_error, {}};
  const double grown = static_cast<double>((*peer)->process().resident_bytes()) - before;
  return Sample{static_cast<double>(jobs) / result->seconds, grown / static_cast<double>(jobs)};
}

Result<Sample> measure_ours(const Plan& plan, const Shape& shape, uint64_t jobs) {
  const auto server = start_ours(plan, shape.durability);
  if (!server.ok()) return server.error();
  LoadOptions options;
  options.scenario = shape.scenario;
  options.jobs = jobs;
  options.connections = shape.connections;
  options.pipeline = shape.pipeline;
  options.body = kBodySize;
  const auto before = static_cast<double>((*server)->resident_bytes());
  const Result<Report> report = run_ours(**server, options, "bench");
  if (!report.ok()) return report.error();
  const double grown = static_cast<double>((*server)->resident_bytes()) - before;
  return Sample{report->ops_per_s(), grown / static_cast<double>(jobs)};
}

Result<Outcome> compare(const Plan& plan, const Shape& shape) {
  std::vector<double> ours;
  std::vector<double> theirs;
  Sample last_ours;
  Sample last_theirs;
  // In turn, so that what else the machine does strikes both.
  for (int round = 0; round < plan.rounds; ++round) {
    const Result<Sample> their = measure_beanstalkd(shape, plan.jobs(shape.jobs));
    if (!their.ok()) return their.error();
    const Result<Sample> our = measure_ours(plan, shape, plan.jobs(shape.our_jobs));
    if (!our.ok()) return our.error();
    ours.push_back((last_ours = *our).per_second);
    theirs.push_back((last_theirs = *their).per_second);
  }
  Outcome outcome{"/s", median(ours), median(theirs)};
  outcome.is_met = outcome.ours >= shape.bar * *outcome.theirs;
  if (shape.scenario == Scenario::kPush && shape.pipeline > 1)
    outcome.note = fmt::format("RAM/job {:.0f} B, theirs {:.0f} B with the body", last_ours.bytes_per_job,
                               last_theirs.bytes_per_job);
  return outcome;
}

}  // namespace

void add_throughput_rows(std::vector<Row>& rows) {
  const auto add = [&rows](std::string_view key, std::string_view what, std::string_view bar, Shape shape) {
    rows.push_back({key, what, "beanstalkd", bar,
                    [shape = std::move(shape)](const Plan& plan) { return compare(plan, shape); }});
  };
  add("push", "durable push, 50 x 32", "5x", {Scenario::kPush, 600'000, 3'000'000, 50, 32, "commit", 5});
  add("life", "push, pop, ack, 50 x 32", "4x", {Scenario::kLife, 300'000, 1'500'000, 50, 32, "commit", 4});
  add("push1-interval", "push, 50 x 1, synced within 50 ms", "1.2x",
      {Scenario::kPush, 300'000, 300'000, 50, 1, "interval", 1.2});
  add("push1-commit", "push, 50 x 1, synced at reply", "0.7x",
      {Scenario::kPush, 300'000, 300'000, 50, 1, "commit", 0.7});
  add("push1-commit-200", "push, 200 x 1, synced at reply", "0.7x",
      {Scenario::kPush, 300'000, 300'000, 200, 1, "commit", 0.7});
}

}  // namespace delayq::bench
