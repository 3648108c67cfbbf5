#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "queue/queue.h"

namespace delayq::transfer {

/// One result for each line, in their order.
using ImportResults = std::vector<Result<RestoreOutcome>>;

/// Reads lines and restores their jobs, settings and schedules, in the order of the lines. A line that
/// marks a schedule as moving does not see one that the same call creates. A malformed line does not stop the
/// others. The lines need to live only until the call returns. The reply may be called from inside this call,
/// if no line needs the queue.
void import_lines(Queue& queue, Moment now, std::span<const std::string_view> lines, OnConflict on_conflict,
                  Reply<ImportResults> reply);

/// How many lines of each outcome there were.
struct ImportCounts {
  uint64_t created = 0;
  uint64_t replaced = 0;
  uint64_t kept = 0;
  uint64_t dropped = 0;
  uint64_t failed = 0;

  void add(const Result<RestoreOutcome>& result);
};

}  // namespace delayq::transfer
