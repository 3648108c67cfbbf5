#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/btree_set.h>

#include "engine/schedules.h"

namespace delayq {

/// The schedules of an engine that has them in RAM: by name, and by when each must be reported.
///
/// `Mark` is what the engine wants to remember about each, for example where its records are on disk.
///
/// An entry has about 200 bytes besides its texts.
template <class Mark>
class ScheduleTable {
 public:
  struct Entry {
    StoredSchedule schedule;
    Moment report_at = kNever;
    Mark mark{};
  };

  uint64_t size() const { return by_name_.size(); }

  /// nullptr when there is none. The pointer is valid until the entry is erased.
  Entry* find(std::string_view name) {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->get();
  }
  const Entry* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->get();
  }

  Entry& find_or_insert(std::string_view name) {
    const auto place = by_name_.lower_bound(name);
    if (place != by_name_.end() && (*place)->schedule.name == name) return **place;
    auto entry = std::make_unique<Entry>();
    entry->schedule.name = name;
    return **by_name_.insert(place, std::move(entry));
  }
  void erase(std::string_view name) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return;
    forget_report(**found);
    by_name_.erase(found);
  }

  /// The entry is reported when `next` has come.
  void set_next(Entry& entry, Moment next) {
    entry.schedule.next = next;
    report(entry, next);
  }

  /// Copies of the schedules that must be reported at `now`, within the bounds of one report. Each is due
  /// again after kDueScheduleReminder, unless set_next() is called before.
  std::vector<StoredSchedule> take_due(Moment now) {
    std::vector<StoredSchedule> due;
    uint64_t bytes = 0;
    while (!by_report_.empty() && by_report_.begin()->first <= now && due.size() < kDueSchedules &&
           bytes < kDueScheduleBytes) {
      Entry& entry = *by_report_.begin()->second;
      due.push_back(entry.schedule);
      bytes += entry.schedule.definition.size() + entry.schedule.progress.size();
      report(entry, saturating_add(now, kDueScheduleReminder));
    }
    return due;
  }
  /// When take_due() has something to return; kNever: as things are, not at all.
  Moment next_report() const { return by_report_.empty() ? kNever : by_report_.begin()->first; }

  SchedulePage page(const ScheduleListRequest& request) const {
    SchedulePage page;
    uint64_t bytes = 0;
    for (auto next = by_name_.upper_bound(request.after); next != by_name_.end(); ++next) {
      if (page.schedules.size() >= request.limit || bytes >= request.max_bytes) {
        page.has_more = true;
        break;
      }
      page.schedules.push_back((*next)->schedule);
      bytes += page.schedules.back().definition.size() + page.schedules.back().progress.size();
    }
    return page;
  }

  auto begin() const { return by_name_.begin(); }
  auto end() const { return by_name_.end(); }

 private:
  struct ByName {
    using is_transparent = void;
    static std::string_view name(const std::unique_ptr<Entry>& entry) { return entry->schedule.name; }
    static std::string_view name(std::string_view text) { return text; }
    template <class Left, class Right>
    bool operator()(const Left& left, const Right& right) const {
      return name(left) < name(right);
    }
  };

  void report(Entry& entry, Moment at) {
    forget_report(entry);
    entry.report_at = at;
    if (at != kNever) by_report_.emplace(at, &entry);
  }
  void forget_report(Entry& entry) {
    if (entry.report_at != kNever) by_report_.erase({entry.report_at, &entry});
    entry.report_at = kNever;
  }

  absl::btree_set<std::unique_ptr<Entry>, ByName> by_name_;
  absl::btree_set<std::pair<Moment, Entry*>> by_report_;
};

}  // namespace delayq
