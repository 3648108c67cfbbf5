#include "engine/journal/list_cursors.h"

#include <charconv>
#include <utility>

namespace delayq::journal {

std::optional<uint64_t> ListCursors::parse(std::string_view text) {
  uint64_t cursor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cursor);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return cursor;
}

uint64_t ListCursors::add(Slot slot) {
  if (cursors_.size() == kMost) remove(cursors_.begin()->first);
  std::unique_ptr<Place>& place = places_[slot];
  if (place == nullptr) place = std::make_unique<Place>(Place{slot, {}});
  place->cursors.push_back(next_);
  cursors_.emplace(next_, place.get());
  jobs_[slot].has_cursor = 1;
  return next_++;
}

std::optional<Slot> ListCursors::find(uint64_t cursor) const {
  const auto found = cursors_.find(cursor);
  if (found == cursors_.end()) return std::nullopt;
  return found->second == nullptr ? kNoSlot : found->second->slot;
}

void ListCursors::remove(uint64_t cursor) {
  const auto found = cursors_.find(cursor);
  if (found == cursors_.end()) return;
  Place* const place = found->second;
  cursors_.erase(found);
  if (place == nullptr) return;
  std::erase(place->cursors, cursor);
  if (!place->cursors.empty()) return;
  jobs_[place->slot].has_cursor = 0;
  places_.erase(place->slot);
}

void ListCursors::on_leave(Slot slot) {
  auto found = places_.find(slot);
  std::unique_ptr<Place> place = std::move(found->second);
  places_.erase(found);
  jobs_[slot].has_cursor = 0;
  if (const Slot next = jobs_[slot].chain_next; next != kNoSlot) return move_to(std::move(place), next);
  for (const uint64_t cursor : place->cursors) cursors_[cursor] = nullptr;
}

/// Two places become one: the smaller goes into the larger.
void ListCursors::move_to(std::unique_ptr<Place> place, Slot slot) {
  jobs_[slot].has_cursor = 1;
  place->slot = slot;
  std::unique_ptr<Place>& there = places_[slot];
  if (there == nullptr) {
    there = std::move(place);
    return;
  }
  if (there->cursors.size() < place->cursors.size()) std::swap(there, place);
  for (const uint64_t cursor : place->cursors) {
    cursors_[cursor] = there.get();
    there->cursors.push_back(cursor);
  }
}

}  // namespace delayq::journal
