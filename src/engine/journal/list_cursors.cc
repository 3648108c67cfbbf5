#include "engine/journal/list_cursors.h"

namespace delayq::journal {

uint64_t ListCursors::add(Slot slot) {
  if (cursors_.size() == kMost) take(cursors_.begin()->first);
  cursors_.emplace(next_, slot);
  jobs_[slot].has_cursor = 1;
  return next_++;
}

std::optional<Slot> ListCursors::take(uint64_t cursor) {
  const auto found = cursors_.find(cursor);
  if (found == cursors_.end()) return std::nullopt;
  const Slot slot = found->second;
  cursors_.erase(found);
  if (slot != kNoSlot) unmark(slot);
  return slot;
}

void ListCursors::on_leave(Slot slot) {
  const Slot next = jobs_[slot].chain_next;
  for (auto& [number, at] : cursors_) {
    if (at == slot) at = next;
  }
  jobs_[slot].has_cursor = 0;
  if (next != kNoSlot) jobs_[next].has_cursor = 1;
}

void ListCursors::unmark(Slot slot) {
  for (const auto& [number, at] : cursors_) {
    if (at == slot) return;
  }
  jobs_[slot].has_cursor = 0;
}

}  // namespace delayq::journal
