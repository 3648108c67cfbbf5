#pragma once

#include "bench/load/options.h"

namespace delayq::bench {

/// `delayq bench`: runs the scenario, against a server of its own when none is named, prints the table (or
/// JSON) on standard output, and answers the exit code: 0 when everything was answered without an error and
/// nothing came early. Options are declared with add_load_options().
int run_load(const LoadOptions& options);

}  // namespace delayq::bench
