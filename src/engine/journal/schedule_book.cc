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
  by_name_ = {};
  by_number_ = {};
  in_order_ = {};
  heap_ = {};
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

ScheduleBook::Entry* ScheduleBook::find(std::string_view name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : *found;
}

const ScheduleBook::Entry* ScheduleBook::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : *found;
}

ScheduleBook::Entry* ScheduleBook::find_number(uint64_t number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : found->second;
}

ScheduleBook::Entry& ScheduleBook::find_or_add(const ScheduleView& schedule) {
  if (Entry* known = find(schedule.name)) {
    set_texts(*known, schedule.name, schedule.definition);
    return *known;
  }
  if (free_.empty()) {
    free_.push_back(new (entries_.allocate(sizeof(Entry))) Entry);
    free_.back()->place_ = kNowhere;
    all_.push_back(free_.back());
  }
  Entry& entry = *free_.back();
  free_.pop_back();
  set_texts(entry, schedule.name, schedule.definition);
  by_name_.insert(&entry);
  if (is_ordered_) in_order_.insert(&entry);
  return entry;
}

ScheduleMark ScheduleBook::define(const ScheduleView& schedule, const Location& location) {
  if (const Entry* known = find(schedule.name)) {
    text_bytes_ -= known->name_size_ + known->definition_size_ + known->progress_.memory_bytes();
    by_number_.erase(known->mark_.number);
  }
  Entry& entry = find_or_add(schedule);
  const ScheduleMark before = entry.mark_;
  by_number_[schedule.fixed.number] = &entry;
  entry.mark_.number = schedule.fixed.number;
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
  by_number_.erase(entry.mark_.number);
  if (is_ordered_) in_order_.erase(&entry);
  by_name_.erase(&entry);
  free_texts(entry);
  entry.name_size_ = 0;
  entry.definition_size_ = 0;
  entry.progress_.assign({});
  entry.mark_ = {};
  entry.next_ = kNever;
  free_.push_back(&entry);
  if (by_name_.empty()) clear();
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
  std::string_view common = by_name_.empty() ? std::string_view{} : (*by_name_.begin())->name();
  for (const Entry* entry : by_name_) {
    const std::string_view name = entry->name();
    const auto end = std::mismatch(common.begin(), common.end(), name.begin(), name.end()).first;
    common = common.substr(0, static_cast<size_t>(end - common.begin()));
  }
  std::vector<std::pair<uint64_t, Entry*>> keyed;
  keyed.reserve(by_name_.size());
  for (Entry* entry : by_name_) {
    uint64_t key = 0;
    for (size_t i = 0; i < sizeof key; ++i) {
      const size_t at = common.size() + i;
      key = key << 8 | (at < entry->name_size_ ? static_cast<unsigned char>(entry->texts_[at]) : 0);
    }
    keyed.emplace_back(key, entry);
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
  for (Entry* entry : all_) {
    if (entry->name_size_ == 0 || entry->next_ == kNever) continue;
    heap_.emplace_back();
    put(static_cast<uint32_t>(heap_.size() - 1), {entry->next_, entry});
  }
  for (size_t place = heap_.size() / 2; place-- > 0;) sift_down(static_cast<uint32_t>(place));
}

std::vector<StoredSchedule> ScheduleBook::take_due(Moment now) {
  std::vector<StoredSchedule> due;
  uint64_t bytes = 0;
  while (next_report() <= now && due.size() < kDueSchedules && bytes < kDueScheduleBytes && !heap_.empty()) {
    Entry& entry = *heap_.front().entry;
    due.push_back(entry.stored());
    bytes += entry.definition_size_ + entry.progress().size();
    report(entry, saturating_add(now, kDueScheduleReminder));
  }
  return due;
}

void ScheduleBook::report(Entry& entry, Moment at) {
  uint32_t place = entry.place_;
  if (at == kNever) {
    if (place == kNowhere) return;
    entry.place_ = kNowhere;
    const Report last = heap_.back();
    heap_.pop_back();
    if (last.entry == &entry) return;
    put(place, last);
  } else if (place == kNowhere) {
    place = static_cast<uint32_t>(heap_.size());
    heap_.emplace_back();
    put(place, {at, &entry});
  } else {
    heap_[place].at = at;
  }
  const Entry* const moved = heap_[place].entry;
  sift_up(place);
  sift_down(moved->place_);
}

void ScheduleBook::put(uint32_t place, const Report& report) {
  heap_[place] = report;
  report.entry->place_ = place;
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
  // The entry, its places in the lists, the heap and the ordered set (which is three quarters full), and in
  // the two tables by hash.
  constexpr uint64_t kEachBytes = sizeof(Entry) + sizeof(Entry*) + sizeof(Report) + sizeof(Entry*) * 4 / 3;
  const uint64_t map_bytes = by_number_.capacity() * (sizeof(std::pair<uint64_t, Entry*>) + 1) +
                             by_name_.capacity() * (sizeof(Entry*) + 1);
  return all_.size() * kEachBytes + map_bytes + text_bytes_;
}

}  // namespace delayq::journal
