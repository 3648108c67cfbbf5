#pragma once

#include <memory>

#include "bench/load/own_server.h"
#include "bench/load/scenarios.h"
#include "bench/rivals/row.h"

namespace delayq::bench {

/// No measurement of one row takes longer.
inline constexpr std::chrono::minutes kRowLimit{10};

inline Deadline row_deadline() { return std::chrono::steady_clock::now() + kRowLimit; }

Result<std::unique_ptr<OwnServer>> start_ours(const Plan& plan, const std::string& durability);

/// Runs a scenario on a fresh server. Anything that was answered with an error, was early or did not come is
/// an error here: a figure of a server that fails is none.
Result<Report> run_ours(const Plan& plan, const LoadOptions& options);
Result<Report> run_ours(OwnServer& server, const LoadOptions& options, const std::string& topic);

double median(std::vector<double> values);

}  // namespace delayq::bench
