#include "engine/journal/schedule_book.h"

namespace delayq::journal {

ScheduleBook::Entry* ScheduleBook::find_number(uint64_t number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : found->second;
}

ScheduleMark ScheduleBook::define(const ScheduleView& schedule, const Location& location) {
  Entry& entry = table_.find_or_insert(schedule.name);
  const ScheduleMark before = entry.mark;
  if (before.number != 0) {
    text_bytes_ -= text_bytes(entry);
    by_number_.erase(before.number);
  }
  by_number_[schedule.fixed.number] = &entry;
  entry.mark.number = schedule.fixed.number;
  entry.schedule.revision = schedule.fixed.revision;
  entry.schedule.progress = schedule.progress;
  entry.schedule.definition = schedule.definition;
  text_bytes_ += text_bytes(entry);
  set_records(entry, location, {});
  set_next(entry, schedule.fixed.next_ms);
  return before;
}

void ScheduleBook::turn(Entry& entry, const TurnedView& turned, const Location& location) {
  text_bytes_ -= text_bytes(entry);
  entry.schedule.revision = turned.fixed.revision;
  entry.schedule.progress = turned.progress;
  text_bytes_ += text_bytes(entry);
  set_turned_record(entry, location);
  set_next(entry, turned.fixed.next_ms);
}

void ScheduleBook::erase(Entry& entry) {
  set_records(entry, {}, {});
  text_bytes_ -= text_bytes(entry);
  by_number_.erase(entry.mark.number);
  table_.erase(entry.schedule.name);
}

void ScheduleBook::set_records(Entry& entry, const Location& definition, const Location& turned) {
  ScheduleMark& mark = entry.mark;
  // The new ones are counted first: one of them may be the old one.
  segments_.keep(definition);
  segments_.keep(turned);
  segments_.release(mark.definition);
  segments_.release(mark.turned);
  mark.definition = definition;
  mark.turned = turned;
}

void ScheduleBook::set_next(Entry& entry, int64_t next_ms) {
  const Moment next = from_unix_ms(next_ms);
  if (is_live_) {
    table_.set_next(entry, next);
  } else {
    entry.schedule.next = next;
  }
}

void ScheduleBook::go_live() {
  is_live_ = true;
  for (const auto& entry : table_) table_.set_next(*entry, entry->schedule.next);
}

uint64_t ScheduleBook::text_bytes(const Entry& entry) {
  const StoredSchedule& schedule = entry.schedule;
  return schedule.name.size() + schedule.progress.size() + schedule.definition.size();
}

uint64_t ScheduleBook::memory_bytes() const {
  // The entry and its allocation, its places in the two ordered sets (which are three quarters full), and in
  // the map by number.
  constexpr uint64_t kEachBytes =
      sizeof(Entry) + 16 + (sizeof(void*) + sizeof(Moment) + sizeof(void*)) * 4 / 3;
  const uint64_t map_bytes = by_number_.capacity() * (sizeof(std::pair<uint64_t, Entry*>) + 1);
  return size() * kEachBytes + map_bytes + text_bytes_;
}

}  // namespace delayq::journal
