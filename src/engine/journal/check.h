#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/job_state.h"
#include "core/result.h"
#include "engine/journal/disk.h"

namespace delayq::journal {

/// A range of bytes that cannot be read, or a file that is missing or not the right one (0 bytes).
struct Damage {
  std::string segment;  ///< or "manifest"
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string what;
  /// How many records of average size the range would hold. The real number is unknown, because the ends of
  /// the records in it cannot be found.
  uint64_t records_estimate = 0;
};

struct CheckReport {
  uint64_t segments = 0;
  uint64_t bytes = 0;
  uint64_t records = 0;
  std::array<uint64_t, kJobStateCount> jobs{};  ///< by state; jobs that are due count as delayed
  uint64_t topics = 0;
  uint64_t schedules = 0;
  uint64_t live_bytes = 0;
  uint64_t torn_bytes = 0;  ///< of an unfinished commit at the end: cut off at the next start, no loss
  uint64_t unfinished_segments = 0;  ///< creation or removal not finished: removed at the next start, no loss
  std::vector<Damage> damage;

  bool is_clean() const { return damage.empty(); }
};

/// Reads every record of the directory and reports what it finds. Changes nothing. Takes the directory's
/// lock, so it is refused while a server uses the directory.
Result<CheckReport> check(Disk& disk);

/// Gives up what check() found to be damaged, and nothing else. Each damaged range becomes a hole that the
/// next start skips. A segment without a readable header, or one that does not belong to the directory, is
/// renamed to "<name>.damaged". A missing segment is no longer expected. The report lists what was dropped.
/// Jobs whose later records were in a hole may reappear in an earlier state.
Result<CheckReport> repair(Disk& disk);

/// The report as text for a terminal.
std::string to_string(const CheckReport& report);

}  // namespace delayq::journal
