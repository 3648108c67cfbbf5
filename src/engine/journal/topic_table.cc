#include "engine/journal/topic_table.h"

#include <algorithm>
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

/// Merges two places: the smaller into the larger.
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

TopicNumber TopicTable::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kNoTopic : found->second;
}

TopicNumber TopicTable::find_or_add(std::string_view name) {
  const TopicNumber known = find(name);
  if (known != kNoTopic) return known;
  if (free_.empty()) {
    free_.push_back(static_cast<TopicNumber>(topics_.size()));
    topics_.emplace_back();
  }
  const TopicNumber number = free_.back();
  free_.pop_back();
  topics_[number] = std::make_unique<Topic>();
  Topic& topic = *topics_[number];
  topic.name = name;
  by_name_.emplace(topic.name, number);
  names_.insert(topic.name);
  return number;
}

void TopicTable::enter(Slot slot) {
  Entry& entry = jobs_[slot];
  Topic& topic = *topics_[entry.topic];
  Topic::Chain& chain = topic.chain(entry.state());
  entry.chain_previous = chain.last;
  entry.chain_next = kNoSlot;
  if (chain.last != kNoSlot) {
    jobs_[chain.last].chain_next = slot;
  } else {
    chain.first = slot;
  }
  chain.last = slot;
  ++chain.count;
  ++totals_[static_cast<size_t>(entry.state())];
  if (topic.jobs++ == 0) ++with_jobs_;
  // Jobs mostly become ready in hand-over order, so the end of the set is a good hint for the insertion.
  if (entry.state() == JobState::kReady) {
    absl::btree_set<ReadyKey>& ready = topic.ready_for(entry.outlet());
    ready.insert(ready.end(), {entry.priority, slot, entry.due_ms, entry.seq});
  }
}

void TopicTable::leave(Slot slot) {
  Entry& entry = jobs_[slot];
  if (entry.has_cursor) cursors.on_leave(slot);
  Topic& topic = *topics_[entry.topic];
  Topic::Chain& chain = topic.chain(entry.state());
  if (entry.chain_previous != kNoSlot) {
    jobs_[entry.chain_previous].chain_next = entry.chain_next;
  } else {
    chain.first = entry.chain_next;
  }
  if (entry.chain_next != kNoSlot) {
    jobs_[entry.chain_next].chain_previous = entry.chain_previous;
  } else {
    chain.last = entry.chain_previous;
  }
  --chain.count;
  --totals_[static_cast<size_t>(entry.state())];
  if (--topic.jobs == 0) --with_jobs_;
  if (entry.state() == JobState::kReady) {
    topic.ready_for(entry.outlet()).erase({entry.priority, slot, entry.due_ms, entry.seq});
  }
}

void TopicTable::change_due(Slot slot, uint64_t due_ms) {
  Entry& entry = jobs_[slot];
  absl::btree_set<ReadyKey>& ready = topics_[entry.topic]->ready_for(entry.outlet());
  const bool is_ready = entry.state() == JobState::kReady;
  if (is_ready) ready.erase({entry.priority, slot, entry.due_ms, entry.seq});
  entry.due_ms = due_ms & kLatestMs;
  if (is_ready) ready.insert({entry.priority, slot, entry.due_ms, entry.seq});
}

void TopicTable::sort_by_end(TopicNumber number, JobState state) {
  Topic::Chain& chain = topics_[number]->chain(state);
  std::vector<Slot> slots;
  slots.reserve(chain.count);
  for (Slot slot = chain.first; slot != kNoSlot; slot = jobs_[slot].chain_next) slots.push_back(slot);
  std::stable_sort(slots.begin(), slots.end(),
                   [&](Slot a, Slot b) { return jobs_[a].until_ms < jobs_[b].until_ms; });
  Slot previous = kNoSlot;
  for (const Slot slot : slots) {
    jobs_[slot].chain_previous = previous;
    (previous == kNoSlot ? chain.first : jobs_[previous].chain_next) = slot;
    previous = slot;
  }
  if (previous != kNoSlot) jobs_[previous].chain_next = kNoSlot;
  chain.last = previous;
}

std::vector<TopicNumber> TopicTable::page(std::string_view cursor, uint32_t limit) const {
  std::vector<TopicNumber> numbers;
  for (auto name = cursor.empty() ? names_.begin() : names_.upper_bound(cursor);
       name != names_.end() && numbers.size() < limit; ++name) {
    numbers.push_back(find(*name));
  }
  return numbers;
}

void TopicTable::note_idle(TopicNumber number, Moment now) {
  Topic& topic = *topics_[number];
  if (topic.idle_listed || !topic.is_empty()) return;
  topic.idle_listed = true;
  idle_.push_back({number, now});
}

void TopicTable::forget_idle(Moment now) {
  for (int looked = 0; looked < 256 && !idle_.empty() && next_forgetting() <= now; ++looked) {
    const TopicNumber number = idle_.front().number;
    idle_.pop_front();
    Topic& topic = *topics_[number];
    topic.idle_listed = false;
    if (!topic.is_empty() || topic.is_announced()) continue;
    by_name_.erase(topic.name);
    names_.erase(topic.name);
    topics_[number].reset();
    free_.push_back(number);
  }
}

uint64_t TopicTable::memory_bytes() const {
  return topics_.capacity() * sizeof(std::unique_ptr<Topic>) + by_name_.size() * (sizeof(Topic) + 64);
}

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
  for (Cursor& cursor : cursors_) {
    if (cursor.slot == slot) cursor.slot = extra->group_next;
  }
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

/// Each cursor is used once.
Slot GroupTable::start(std::string_view group, std::string_view cursor) {
  const std::optional<uint64_t> number = ListCursors::parse(cursor);
  const auto found = std::find_if(cursors_.begin(), cursors_.end(),
                                  [&](const Cursor& known) { return known.number == number; });
  if (found == cursors_.end()) return first(group);
  const Slot slot = found->slot;
  cursors_.erase(found);
  if (slot == kNoSlot) return kNoSlot;
  return groups_[jobs_.extra(slot).group].name == group ? slot : first(group);
}

std::string GroupTable::add_cursor(Slot slot) {
  if (cursors_.size() == kMostCursors) cursors_.erase(cursors_.begin());
  cursors_.push_back({++last_cursor_, slot});
  return std::to_string(last_cursor_);
}

}  // namespace delayq::journal
