#pragma once

#include <optional>
#include <string>

#include "bench/load/options.h"
#include "bench/load/traffic.h"

namespace delayq::bench {

/// What a scenario has measured.
struct Report {
  LoadOptions options;                   ///< with its defaults
  LoadResult result;                     ///< of the phase that is measured
  double prepare_seconds = 0;            ///< of the pushes before it
  std::optional<double> last_hand_over;  ///< spike: seconds from the due moment to the last hand-over

  double ops_per_s() const;
};

/// One object, on one line.
std::string to_json(const Report& report);

/// A table for people.
std::string to_table(const Report& report);

/// What --plot draws: the percentiles of lateness, or the throughput over time.
std::string to_plot(const Report& report);

}  // namespace delayq::bench
