#include "engine/journal/group_table.h"

namespace delayq::journal {

void GroupTable::add(std::string_view group, Slot slot) {
  if (group.empty()) return;
  auto found = by_name_.find(group);
  if (found == by_name_.end()) {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(groups_.size()));
      groups_.emplace_back();
    }
    groups_[free_.back()].name = group;
    found = by_name_.emplace(group, free_.back()).first;
    free_.pop_back();
  }
  Slot& first = groups_[found->second].first;
  Extra& extra = jobs_.extra(slot);
  extra.group = found->second;
  extra.group_previous = kNoSlot;
  extra.group_next = first;
  if (first != kNoSlot) jobs_.extra(first).group_previous = slot;
  first = slot;
}

void GroupTable::remove(Slot slot) {
  Extra* extra = jobs_.find_extra(slot);
  if (extra == nullptr || extra->group == Extra{}.group) return;
  Group& group = groups_[extra->group];
  if (extra->group_previous != kNoSlot) {
    jobs_.extra(extra->group_previous).group_next = extra->group_next;
  } else {
    group.first = extra->group_next;
  }
  if (extra->group_next != kNoSlot) jobs_.extra(extra->group_next).group_previous = extra->group_previous;
  if (group.first == kNoSlot) {
    by_name_.erase(group.name);
    group.name = {};
    free_.push_back(extra->group);
  }
  extra->group = Extra{}.group;
  extra->group_previous = extra->group_next = kNoSlot;
  jobs_.trim_extra(slot);
}

}  // namespace delayq::journal
