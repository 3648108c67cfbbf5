#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace delayq::bench {

/// How large the rows are, and where our program is.
struct Plan {
  bool is_smoke = false;
  std::string program;  ///< delayq
  int rounds = 3;       ///< of ours and theirs in turn; the median counts

  /// `full`, or something small when smoke is wanted.
  uint64_t jobs(uint64_t full) const { return is_smoke ? full / 500 + 100 : full; }
};

/// What one row has measured.
struct Outcome {
  std::string unit;  ///< of ours and theirs: "/s", "s"
  double ours = 0;
  std::optional<double> theirs{};
  bool is_met = false;
  std::string note{};
};

/// One row of the table of bars.
struct Row {
  std::string_view key;
  std::string_view what;
  std::string_view rival;  ///< the program that must be installed; empty: none
  std::string_view bar;
  std::function<Result<Outcome>(const Plan&)> measure;
};

/// Every row, in the order of the issue.
std::vector<Row> all_rows();

// The families of rows, one file each.
void add_throughput_rows(std::vector<Row>& rows);
void add_pending_rows(std::vector<Row>& rows);
void add_time_rows(std::vector<Row>& rows);
void add_crowd_rows(std::vector<Row>& rows);
void add_redis_rows(std::vector<Row>& rows);

}  // namespace delayq::bench
