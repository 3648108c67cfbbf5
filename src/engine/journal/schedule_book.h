#pragma once

#include <cstdint>
#include <string_view>

#include <absl/container/flat_hash_map.h>

#include "engine/journal/format.h"
#include "engine/journal/segments.h"
#include "engine/schedule_table.h"

namespace delayq::journal {

/// Where the records of a schedule are.
struct ScheduleMark {
  uint64_t number = 0;    ///< that of its definition: a new definition has a new number
  Location definition{};  ///< its kSchedule record
  Location turned{};      ///< its latest kTurned record, when that is later; segment 0: none
};

/// The schedules of the journal engine, with the needed bytes of their records. Definitions stay in RAM: a
/// due schedule is reported without a read.
///
/// While recovering, nothing waits to be reported; go_live() changes that.
class ScheduleBook {
 public:
  using Table = ScheduleTable<ScheduleMark>;
  using Entry = Table::Entry;

  /// `segments` must outlive the book.
  explicit ScheduleBook(Segments& segments) : segments_(segments) {}

  uint64_t size() const { return table_.size(); }
  Entry* find(std::string_view name) { return table_.find(name); }
  const Entry* find(std::string_view name) const { return table_.find(name); }
  /// nullptr: there is none of that number (any more).
  Entry* find_number(uint64_t number) const;

  /// All of the schedule is in the record at `location`: a new schedule, a new definition of one, or a copy.
  /// Returns where the records of before were (number 0: there was no schedule of that name).
  ScheduleMark define(const ScheduleView& schedule, const Location& location);
  /// The changeable part is in the record at `location`. `turned.fixed.number` is not looked at.
  void turn(Entry& entry, const TurnedView& turned, const Location& location);
  void erase(Entry& entry);

  /// Compaction has copied a record: all of the schedule as it is now, or its changeable part.
  void set_definition_record(Entry& entry, const Location& location) { set_records(entry, location, {}); }
  void set_turned_record(Entry& entry, const Location& location) {
    set_records(entry, entry.mark.definition, location);
  }

  /// Ends recovery.
  void go_live();

  /// See ScheduleTable.
  std::vector<StoredSchedule> take_due(Moment now) { return table_.take_due(now); }
  Moment next_report() const { return table_.next_report(); }
  SchedulePage page(const ScheduleListRequest& request) const { return table_.page(request); }

  uint64_t memory_bytes() const;

 private:
  void set_records(Entry& entry, const Location& definition, const Location& turned);
  void set_next(Entry& entry, int64_t next_ms);
  static uint64_t text_bytes(const Entry& entry);

  Segments& segments_;
  Table table_;
  absl::flat_hash_map<uint64_t, Entry*> by_number_;
  uint64_t text_bytes_ = 0;
  bool is_live_ = false;
};

}  // namespace delayq::journal
