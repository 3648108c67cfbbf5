#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "engine/journal/job_table.h"
#include "engine/journal/text_hash.h"

namespace delayq::journal {

/// Which jobs belong to which group. Live and dead jobs are members (a dead one may live again); only jobs
/// with a group cost anything.
class GroupTable {
 public:
  explicit GroupTable(JobTable& jobs) : jobs_(jobs) {}

  void add(std::string_view group, Slot slot);
  /// No-op for a job without a group.
  void remove(Slot slot);
  /// Up to `max` members for which wanted(entry) holds, the latest first.
  template <class Wanted>
  std::vector<Slot> members(std::string_view group, size_t max, Wanted&& wanted) const {
    std::vector<Slot> slots;
    for (Slot slot = first(group); slot != kNoSlot && slots.size() < max;
         slot = jobs_.find_extra(slot)->group_next) {
      if (wanted(jobs_[slot])) slots.push_back(slot);
    }
    return slots;
  }

  uint64_t memory_bytes() const { return groups_.capacity() * sizeof(Group) + by_name_.capacity() * 24; }

 private:
  struct Group {
    std::string name;
    Slot first = kNoSlot;
  };

  Slot first(std::string_view group) const {
    const auto found = by_name_.find(group);
    return found == by_name_.end() ? kNoSlot : groups_[found->second].first;
  }

  JobTable& jobs_;
  std::vector<Group> groups_;
  std::vector<uint32_t> free_;
  absl::flat_hash_map<std::string, uint32_t, TextHash, TextEqual> by_name_;
};

}  // namespace delayq::journal
