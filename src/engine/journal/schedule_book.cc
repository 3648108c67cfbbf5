#include "engine/journal/schedule_book.h"

#include <algorithm>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace delayq::journal {

// ---- memory

void LargePages::clear() {
  for (char* chunk : chunks_) ::munmap(chunk, kChunkBytes);
  chunks_.clear();
  used_ = kChunkBytes;
}

char* LargePages::allocate(size_t bytes) {
  bytes = (bytes + 7) & ~size_t{7};
  if (kChunkBytes - used_ < bytes) {
    void* memory = ::mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    // A server with a few schedules does not need a large page for them.
    if (!chunks_.empty()) ::madvise(memory, kChunkBytes, MADV_HUGEPAGE);
    chunks_.push_back(static_cast<char*>(memory));
    used_ = 0;
    // The first chunk is left early, so that many schedules are mostly in large pages.
    if (chunks_.size() == 1) used_ = kChunkBytes - (size_t{256} << 10);
  }
  char* const piece = chunks_.back() + used_;
  used_ += bytes;
  return piece;
}

void ScheduleBook::clear() {
  for (Entry* entry : all_) {
    free_texts(*entry);
    entry->~Entry();
  }
  all_ = {};
  free_ = {};
  by_name_ = SlotMap{};
  by_number_ = SlotMap{};
  in_order_ = {};
  heap_ = {};
  places_ = {};
  entries_.clear();
  recovered_texts_.clear();
}

StoredSchedule ScheduleBook::Entry::stored() const {
  return {std::string(name()), revision_, next_, std::string(definition()), std::string(progress())};
}

void ScheduleBook::free_texts(Entry& entry) {
  if (entry.has_own_texts_) delete[] entry.texts_;
  entry.texts_ = nullptr;
  entry.has_own_texts_ = false;
}

void ScheduleBook::set_texts(Entry& entry, std::string_view name, std::string_view definition) {
  const size_t bytes = name.size() + definition.size();
  const bool is_own = is_live_ || bytes > kMostTextBytes;
  char* const texts = is_own ? new char[bytes] : recovered_texts_.allocate(bytes);
  name.copy(texts, name.size());
  definition.copy(texts + name.size(), definition.size());
  free_texts(entry);
  entry.texts_ = texts;
  entry.has_own_texts_ = is_own;
  entry.name_size_ = static_cast<uint8_t>(name.size());
  entry.definition_size_ = static_cast<uint32_t>(definition.size());
}

// ---- schedules

ScheduleBook::Entry* ScheduleBook::find(SlotKey key, std::string_view name) const {
  const Slot slot = by_name_.find(key, [&](Slot other) { return all_[other]->name() == name; });
  return slot == kNoSlot ? nullptr : all_[slot];
}

ScheduleBook::Entry* ScheduleBook::find_number(uint64_t number) const {
  const Slot slot =
      by_number_.find(number_key(number), [&](Slot other) { return all_[other]->mark_.number == number; });
  return slot == kNoSlot ? nullptr : all_[slot];
}

ScheduleBook::Entry& ScheduleBook::add() {
  if (free_.empty()) {
    Entry* const entry = new (entries_.allocate(sizeof(Entry))) Entry;
    entry->slot_ = static_cast<Slot>(all_.size());
    all_.push_back(entry);
    places_.push_back(kNowhere);
    return *entry;
  }
  Entry& entry = *free_.back();
  free_.pop_back();
  return entry;
}

ScheduleMark ScheduleBook::define(const ScheduleView& schedule, SlotKey key, const Location& location) {
  Entry* known = find(key, schedule.name);
  const ScheduleMark before = known == nullptr ? ScheduleMark{} : known->mark_;
  if (known != nullptr) {
    text_bytes_ -= known->name_size_ + known->definition_size_ + known->progress_.memory_bytes();
    by_number_.erase(number_key(before.number), known->slot_);
  }
  Entry& entry = known == nullptr ? add() : *known;
  set_texts(entry, schedule.name, schedule.definition);
  if (known == nullptr) {
    by_name_.insert(key, entry.slot_);
    if (is_ordered_) in_order_.insert(&entry);
  }
  entry.mark_.number = schedule.fixed.number;
  by_number_.insert(number_key(entry.mark_.number), entry.slot_);
  entry.revision_ = schedule.fixed.revision;
  entry.progress_.assign(schedule.progress);
  text_bytes_ += entry.name_size_ + entry.definition_size_ + entry.progress_.memory_bytes();
  set_records(entry, location, {});
  set_next(entry, from_unix_ms(schedule.fixed.next_ms));
  return before;
}

void ScheduleBook::turn(Entry& entry, const TurnedView& turned, const Location& location) {
  text_bytes_ -= entry.progress_.memory_bytes();
  entry.revision_ = turned.fixed.revision;
  entry.progress_.assign(turned.progress);
  text_bytes_ += entry.progress_.memory_bytes();
  set_turned_record(entry, location);
  set_next(entry, from_unix_ms(turned.fixed.next_ms));
}

void ScheduleBook::erase(Entry& entry) {
  set_records(entry, {}, {});
  text_bytes_ -= entry.name_size_ + entry.definition_size_ + entry.progress_.memory_bytes();
  report(entry, kNever);
  by_number_.erase(number_key(entry.mark_.number), entry.slot_);
  if (is_ordered_) in_order_.erase(&entry);
  by_name_.erase(key_of(entry.name()), entry.slot_);
  free_texts(entry);
  entry.name_size_ = 0;
  entry.definition_size_ = 0;
  entry.progress_.assign({});
  entry.mark_ = {};
  entry.next_ = kNever;
  free_.push_back(&entry);
  if (size() == 0) clear();
}

void ScheduleBook::set_records(Entry& entry, const Location& definition, const Location& turned) {
  ScheduleMark& mark = entry.mark_;
  // The new ones are counted first: one of them may be the old one.
  segments_.keep(definition);
  segments_.keep(turned);
  segments_.release(mark.definition);
  segments_.release(mark.turned);
  mark.definition = definition;
  mark.turned = turned;
}

/// Compares the first bytes in which names differ as numbers: names are in memory all over the place.
std::vector<ScheduleBook::Entry*> ScheduleBook::sorted_by_name() const {
  std::vector<std::pair<uint64_t, Entry*>> keyed;
  keyed.reserve(size());
  std::string_view common;
  for (Entry* entry : all_) {
    const std::string_view name = entry->name();
    if (name.empty()) continue;
    if (keyed.empty()) common = name;
    const auto end = std::mismatch(common.begin(), common.end(), name.begin(), name.end()).first;
    common = common.substr(0, static_cast<size_t>(end - common.begin()));
    keyed.emplace_back(0, entry);
  }
  for (auto& [key, entry] : keyed) {
    for (size_t i = 0; i < sizeof key; ++i) {
      const size_t at = common.size() + i;
      key = key << 8 | (at < entry->name_size_ ? static_cast<unsigned char>(entry->texts_[at]) : 0);
    }
  }
  std::sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->name() < b.second->name();
  });
  std::vector<Entry*> sorted;
  sorted.reserve(keyed.size());
  for (const auto& each : keyed) sorted.push_back(each.second);
  return sorted;
}

SchedulePage ScheduleBook::page(const ScheduleListRequest& request) {
  if (!is_ordered_) {
    for (Entry* entry : sorted_by_name()) in_order_.insert(in_order_.end(), entry);
    is_ordered_ = true;
  }
  SchedulePage page;
  uint64_t bytes = 0;
  for (auto next = in_order_.upper_bound(request.after); next != in_order_.end(); ++next) {
    if (page.schedules.size() >= request.limit || bytes >= request.max_bytes) {
      page.has_more = true;
      break;
    }
    page.schedules.push_back((*next)->stored());
    bytes += page.schedules.back().definition.size() + page.schedules.back().progress.size();
  }
  return page;
}

// ---- reports

void ScheduleBook::set_next(Entry& entry, Moment next) {
  entry.next_ = next;
  if (is_live_) report(entry, next);
}

void ScheduleBook::go_live() {
  is_live_ = true;
  heap_.reserve(size());
  for (const Entry* entry : all_) {
    if (entry->name_size_ == 0 || entry->next_ == kNever) continue;
    places_[entry->slot_] = static_cast<uint32_t>(heap_.size());
    heap_.push_back({entry->next_, entry->slot_});
  }
  for (size_t place = heap_.size() / 2; place-- > 0;) sift_down(static_cast<uint32_t>(place));
}

std::vector<StoredSchedule> ScheduleBook::take_due(Moment now) {
  std::vector<StoredSchedule> due;
  uint64_t bytes = 0;
  while (next_report() <= now && due.size() < kDueSchedules && bytes < kDueScheduleBytes && !heap_.empty()) {
    Entry& entry = *all_[heap_.front().slot];
    due.push_back(entry.stored());
    bytes += entry.definition_size_ + entry.progress().size();
    report(entry, saturating_add(now, kDueScheduleReminder));
  }
  return due;
}

void ScheduleBook::report(Entry& entry, Moment at) {
  uint32_t place = places_[entry.slot_];
  if (at == kNever) {
    if (place == kNowhere) return;
    places_[entry.slot_] = kNowhere;
    const Report last = heap_.back();
    heap_.pop_back();
    if (last.slot == entry.slot_) return;
    put(place, last);
  } else if (place == kNowhere) {
    place = static_cast<uint32_t>(heap_.size());
    heap_.emplace_back();
    put(place, {at, entry.slot_});
  } else {
    heap_[place].at = at;
  }
  const Slot moved = heap_[place].slot;
  sift_up(place);
  sift_down(places_[moved]);
}

void ScheduleBook::put(uint32_t place, const Report& report) {
  heap_[place] = report;
  places_[report.slot] = place;
}

void ScheduleBook::sift_up(uint32_t place) {
  const Report report = heap_[place];
  while (place > 0 && report.at < heap_[(place - 1) / 2].at) {
    put(place, heap_[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  put(place, report);
}

void ScheduleBook::sift_down(uint32_t place) {
  const Report report = heap_[place];
  for (;;) {
    size_t child = 2 * size_t{place} + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].at < heap_[child].at) ++child;
    if (heap_[child].at >= report.at) break;
    put(place, heap_[child]);
    place = static_cast<uint32_t>(child);
  }
  put(place, report);
}

uint64_t ScheduleBook::memory_bytes() const {
  // The entry, its places in the lists, the heap and the ordered set (which is three quarters full).
  constexpr uint64_t kEachBytes =
      sizeof(Entry) + sizeof(Entry*) + sizeof(Report) + sizeof(uint32_t) + sizeof(Entry*) * 4 / 3;
  return all_.size() * kEachBytes + by_number_.memory_bytes() + by_name_.memory_bytes() + text_bytes_;
}

}  // namespace delayq::journal
