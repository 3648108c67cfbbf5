// The same figures with and without ten thousand connections that only wait.
#include <fmt/format.h>

#include "bench/rivals/crowd.h"
#include "bench/rivals/ours.h"

namespace delayq::bench {

namespace {

constexpr size_t kConnections = 10'000;
constexpr size_t kWaiting = 1'000;

Result<double> rate(const Plan& plan, Scenario scenario, bool is_crowded) {
  const auto server = start_ours(plan, "commit");
  if (!server.ok()) return server.error();
  const size_t connections = plan.is_smoke ? 200 : kConnections;
  Result<Crowd> crowd = Crowd::gather((*server)->address(), is_crowded ? connections : 0,
                                      plan.is_smoke ? connections / 10 : kWaiting);
  if (!crowd.ok()) return crowd.error();
  LoadOptions options;
  options.scenario = scenario;
  options.jobs = plan.jobs(scenario == Scenario::kPush ? 2'000'000 : 1'000'000);
  const Result<Report> report = run_ours(**server, options, "bench");
  if (!report.ok()) return report.error();
  if (!crowd->is_undisturbed())
    return Error{ErrorCode::kInternal, "rivals.crowd", "a connection that waits was closed or answered", {}};
  return report->ops_per_s();
}

Result<Outcome> measure_crowd(const Plan& plan, Scenario scenario) {
  std::vector<double> crowded;
  std::vector<double> alone;
  for (int round = 0; round < plan.rounds; ++round) {
    for (const bool is_crowded : {false, true}) {
      const Result<double> measured = rate(plan, scenario, is_crowded);
      if (!measured.ok()) return measured.error();
      (is_crowded ? crowded : alone).push_back(*measured);
    }
  }
  Outcome outcome{"/s", median(crowded), median(alone)};
  outcome.is_met = outcome.ours >= 0.9 * *outcome.theirs;
  outcome.note = "theirs: ours without the crowd";
  return outcome;
}

}  // namespace

void add_crowd_rows(std::vector<Row>& rows) {
  rows.push_back({"crowd-push", "push beside 10,000 connections, 1,000 waiting", "", "within 10 %",
                  [](const Plan& plan) { return measure_crowd(plan, Scenario::kPush); }});
  rows.push_back({"crowd-life", "push, pop, ack beside 10,000 connections", "", "within 10 %",
                  [](const Plan& plan) { return measure_crowd(plan, Scenario::kLife); }});
}

}  // namespace delayq::bench
