#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include "engine/journal/job_table.h"

namespace delayq::journal {

/// Where listings stopped. A cursor points at the next job to list; when that job leaves its list, the cursor
/// moves on to its successor, so a walk neither skips nor repeats a job that stays. A cursor can be used
/// again and again. The oldest are given up first.
///
/// Cursors at the same job are kept together and move as one: however many nobody comes back to, a job that
/// leaves moves them in constant time.
class ListCursors {
 public:
  static constexpr size_t kMost = 1024;

  explicit ListCursors(JobTable& jobs) : jobs_(jobs) {}

  /// A cursor as it was written by std::to_string(). nullopt: it is none.
  static std::optional<uint64_t> parse(std::string_view text);
  /// A new cursor at `slot`.
  uint64_t add(Slot slot);
  /// Where it is now. nullopt: unknown (given up, or of an earlier run). kNoSlot: its list came to an end.
  std::optional<Slot> find(uint64_t cursor) const;
  /// Gives it up.
  void remove(uint64_t cursor);
  /// The job is about to leave its list. REQUIRES: its entry has has_cursor set.
  void on_leave(Slot slot);

 private:
  /// Cursors at one job.
  struct Place {
    Slot slot = kNoSlot;
    std::vector<uint64_t> cursors;
  };

  void move_to(std::unique_ptr<Place> place, Slot slot);

  JobTable& jobs_;
  absl::btree_map<uint64_t, Place*> cursors_;  ///< null: its list came to an end
  absl::flat_hash_map<Slot, std::unique_ptr<Place>> places_;
  uint64_t next_ = 1;
};

}  // namespace delayq::journal
