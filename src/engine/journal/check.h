#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/job_state.h"
#include "core/result.h"
#include "engine/journal/disk.h"

namespace delayq::journal {

/// One stretch of bytes that cannot be read, or a file that is not there or not the right one (0 bytes).
struct Damage {
  std::string segment;  ///< or "manifest"
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string what;
  /// Job records that end within or begin right behind the stretch cannot be told apart from it; this is how
  /// many records of average size it would hold.
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
  uint64_t torn_bytes = 0;  ///< of a commit that was under way at the end: cut off by the next start, no loss
  uint64_t unfinished_segments = 0;  ///< created but never written to: removed by the next start, no loss
  std::vector<Damage> damage;

  bool is_clean() const { return damage.empty(); }
};

/// Reads every record of the directory and tells what it finds; changes nothing. Takes the directory's lock,
/// so it is refused while a server uses it.
Result<CheckReport> check(Disk& disk);

/// Gives up what check() found to be damaged, and only that: each stretch becomes a hole that the next start
/// skips; a segment without a readable header, or one that does not belong to the directory, is renamed to
/// "<name>.damaged"; one that is missing is not expected any more. What was dropped is what the report says.
/// Jobs whose later records were in a hole may come back in an earlier state.
Result<CheckReport> repair(Disk& disk);

/// The report in words, for a terminal.
std::string to_string(const CheckReport& report);

}  // namespace delayq::journal
