#pragma once

#include <cstdint>
#include <optional>

#include <absl/container/btree_map.h>

#include "engine/journal/job_table.h"

namespace delayq::journal {

/// Where listings stopped. A cursor points at the next job to list; when that job leaves its list, the cursor
/// moves on to its successor, so a walk neither skips nor repeats a job that stays. The oldest cursors are
/// given up first.
class ListCursors {
 public:
  explicit ListCursors(JobTable& jobs) : jobs_(jobs) {}

  /// A new cursor at `slot`.
  uint64_t add(Slot slot);
  /// Takes the cursor back. nullopt: unknown (given up, or of an earlier run). kNoSlot: its list came to an
  /// end.
  std::optional<Slot> take(uint64_t cursor);
  /// The job is about to leave its list. REQUIRES: its entry has has_cursor set.
  void on_leave(Slot slot);

 private:
  static constexpr size_t kMost = 1024;

  void unmark(Slot slot);

  JobTable& jobs_;
  absl::btree_map<uint64_t, Slot> cursors_;
  uint64_t next_ = 1;
};

}  // namespace delayq::journal
