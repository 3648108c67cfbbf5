// Ours beside Redis with a script that keeps a job as an entry of a hash and one of a sorted set, as queues
// on Redis do. No bar: for orientation.
#include <fmt/format.h>

#include "bench/load/delayq_dialect.h"
#include "bench/load/stream.h"
#include "bench/rivals/control.h"
#include "bench/rivals/ours.h"
#include "bench/rivals/peers.h"
#include "resp/writer.h"

namespace delayq::bench {

namespace {

/// KEYS: pool of jobs, delay bucket. ARGV: id, body, due in ms. Returns 1 for a new job.
constexpr std::string_view kPush =
    "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) return redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])";
constexpr uint64_t kFirstDue = 1'900'000'000'000;
constexpr uint64_t kJobs = 300'000;

Result<double> measure_redis(std::string_view fsync, uint64_t jobs) {
  const auto peer = Peer::redis(fsync, row_deadline());
  if (!peer.ok()) return peer.error();
  Result<Control> control = Control::open((*peer)->address());
  if (!control.ok()) return control.error();
  const Result<resp::Value> script = control->ask({"SCRIPT", "LOAD", kPush});
  if (!script.ok()) return script.error();
  const DelayqDialect dialect({"bench", 1, kBodySize});
  const std::string body(kBodySize, 'b');
  const Stream stream{jobs,
                      50,
                      32,
                      [&](uint64_t number, std::string& out) {
                        resp::append_command(
                            out, {"EVALSHA", script->text, "2", "bench:jobs", "bench:delay",
                                  DelayqDialect::id(number), body, std::to_string(kFirstDue + number / 100)});
                      },
                      4,
                      ":1"};
  StreamTraffic traffic(stream, dialect);
  const Result<LoadResult> result = drive({(*peer)->address()}, traffic, row_deadline());
  if (!result.ok()) return result.error();
  if (result->errors > 0) return Error{ErrorCode::kInternal, "rivals.redis", result->first_error, {}};
  return static_cast<double>(result->answered) / result->seconds;
}

Result<Outcome> compare(const Plan& plan, std::string_view fsync, const std::string& durability) {
  LoadOptions options;
  options.jobs = plan.jobs(kJobs);
  options.durability = durability;
  std::vector<double> ours;
  std::vector<double> theirs;
  for (int round = 0; round < plan.rounds; ++round) {
    const Result<double> their = measure_redis(fsync, *options.jobs);
    if (!their.ok()) return their.error();
    const Result<Report> our = run_ours(plan, options);
    if (!our.ok()) return our.error();
    ours.push_back(our->ops_per_s());
    theirs.push_back(*their);
  }
  return Outcome{"/s", median(ours), median(theirs), true, fmt::format("appendfsync {}", fsync)};
}

}  // namespace

void add_redis_rows(std::vector<Row>& rows) {
  rows.push_back({"redis-always", "push, 50 x 32, synced at reply, to redis", "redis-server", "none",
                  [](const Plan& plan) { return compare(plan, "always", "commit"); }});
  rows.push_back({"redis-everysec", "push, 50 x 32, synced later, to redis", "redis-server", "none",
                  [](const Plan& plan) { return compare(plan, "everysec", "interval"); }});
}

}  // namespace delayq::bench
