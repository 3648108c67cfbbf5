#include "bench/rivals/ours.h"

#include <algorithm>

#include <fmt/format.h>

namespace delayq::bench {

Result<std::unique_ptr<OwnServer>> start_ours(const Plan& plan, const std::string& durability) {
  return OwnServer::start(plan.program, durability, row_deadline());
}

Result<Report> run_ours(OwnServer& server, const LoadOptions& options, const std::string& topic) {
  Result<Report> report = run_scenario(options, {server.address()}, topic, row_deadline());
  if (!report.ok()) return report;
  const LoadResult& result = report->result;
  if (result.errors > 0 || result.answered < report->options.jobs) {
    return Error{ErrorCode::kInternal,
                 "rivals.ours",
                 fmt::format("{} errors, {} of {} answered; the first error: {}", result.errors,
                             result.answered, report->options.jobs.value_or(0), result.first_error),
                 {}};
  }
  return report;
}

Result<Report> run_ours(const Plan& plan, const LoadOptions& options) {
  const auto server = start_ours(plan, options.durability);
  if (!server.ok()) return server.error();
  return run_ours(**server, options, "bench");
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace delayq::bench
