#pragma once

#include "bench/load/loopback.h"
#include "bench/load/report.h"

namespace delayq::bench {

/// Runs the scenario against a delayq server. `topic` is what its topics are called: no other jobs may be
/// there. An error when the load could not be made as it was meant; error replies are only counted.
Result<Report> run_scenario(const LoadOptions& options, const std::vector<Address>& servers,
                            const std::string& topic, Deadline deadline);

}  // namespace delayq::bench
