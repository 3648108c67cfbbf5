// How late jobs are handed over.
#include <fmt/format.h>

#include "bench/rivals/ours.h"

namespace delayq::bench {

namespace {

Result<Outcome> measure_lateness(const Plan& plan) {
  LoadOptions options;
  options.scenario = Scenario::kLateness;
  options.rate = plan.is_smoke ? 500 : 20'000;
  options.seconds = plan.is_smoke ? 1 : 30;
  if (plan.is_smoke) options.lead = 0.5;
  const Result<Report> report = run_ours(plan, options);
  if (!report.ok()) return report.error();
  const Histogram& late = report->result.latency;
  Outcome outcome{"ms p99", to_ms(late.percentile(0.99))};
  const double p50 = to_ms(late.percentile(0.5));
  outcome.is_met = p50 <= 1 && outcome.ours <= 5 && report->result.early == 0;
  outcome.note = fmt::format("p50 {:.2f} ms, p99.9 {:.2f} ms, max {:.2f} ms, early {}", p50,
                             to_ms(late.percentile(0.999)), to_ms(late.max()), report->result.early);
  return outcome;
}

Result<Outcome> measure_spike(const Plan& plan) {
  LoadOptions options;
  options.scenario = Scenario::kSpike;
  options.jobs = plan.jobs(500'000);
  if (plan.is_smoke) options.lead = 0.5;
  const Result<Report> report = run_ours(plan, options);
  if (!report.ok()) return report.error();
  Outcome outcome{"s", report->last_hand_over.value_or(0)};
  outcome.is_met = outcome.ours <= 3 && report->result.early == 0;
  outcome.note = fmt::format("to the last hand-over; p50 {:.0f} ms, early {}",
                             to_ms(report->result.latency.percentile(0.5)), report->result.early);
  return outcome;
}

}  // namespace

void add_time_rows(std::vector<Row>& rows) {
  rows.push_back({"lateness", "lateness, 20,000 due/s for 30 s, 4 consumers", "", "p50 1 ms, p99 5 ms",
                  measure_lateness});
  rows.push_back({"spike", "spike, 500,000 due at one moment", "", "3 s, none early", measure_spike});
}

}  // namespace delayq::bench
