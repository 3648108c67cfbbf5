#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <absl/container/btree_set.h>

#include "engine/journal/format.h"
#include "engine/journal/job_table.h"
#include "engine/journal/segments.h"
#include "engine/schedules.h"

namespace delayq::journal {

/// Memory in large pages from the system, given out piece by piece and returned as a whole. Thousands of
/// small pages would take longer at a start than all that is written into them.
class LargePages {
 public:
  LargePages() = default;
  LargePages(const LargePages&) = delete;
  LargePages& operator=(const LargePages&) = delete;
  ~LargePages() { clear(); }

  /// Aligned to 8 bytes, all zeros. REQUIRES: bytes <= kChunkBytes.
  char* allocate(size_t bytes);
  /// Returns all of it to the system.
  void clear();
  uint64_t memory_bytes() const { return chunks_.size() * kChunkBytes; }

  static constexpr size_t kChunkBytes = size_t{8} << 20;

 private:
  std::vector<char*> chunks_;
  size_t used_ = kChunkBytes;  ///< of the last chunk
};

/// A text of up to `kInline` bytes without an allocation.
template <size_t kInline>
class ShortText {
 public:
  ShortText() = default;
  ShortText(const ShortText&) = delete;
  ShortText& operator=(const ShortText&) = delete;

  std::string_view view() const { return {heap_ != nullptr ? heap_.get() : inline_, size_}; }
  void assign(std::string_view text) {
    if (text.size() > kInline) {
      heap_ = std::make_unique<char[]>(text.size());
    } else {
      heap_.reset();
    }
    text.copy(heap_ != nullptr ? heap_.get() : inline_, text.size());
    size_ = static_cast<uint32_t>(text.size());
  }
  uint64_t memory_bytes() const { return heap_ != nullptr ? size_ : 0; }

 private:
  std::unique_ptr<char[]> heap_;
  uint32_t size_ = 0;
  char inline_[kInline];
};

/// Where the records of a schedule are.
struct ScheduleMark {
  uint64_t number = 0;    ///< that of its definition: a new definition has a new number
  Location definition{};  ///< its kSchedule record
  Location turned{};      ///< its latest kTurned record, when that is later; segment 0: none
};

/// The schedules of the journal engine, with the needed bytes of their records. Definitions stay in RAM: a
/// due schedule is reported without a read.
///
/// A restart must not take much longer than with as many jobs. So entries and the texts that recovery finds
/// are in large pages, look-ups use the tables that jobs use, and the order of the names is made when it is
/// asked for.
///
/// While recovering, nothing waits to be reported; go_live() changes that.
class ScheduleBook {
 public:
  class Entry {
   public:
    std::string_view name() const { return {texts_, name_size_}; }
    std::string_view definition() const { return {texts_ + name_size_, definition_size_}; }
    std::string_view progress() const { return progress_.view(); }
    uint64_t revision() const { return revision_; }
    Moment next() const { return next_; }
    const ScheduleMark& mark() const { return mark_; }
    StoredSchedule stored() const;

   private:
    friend class ScheduleBook;

    char* texts_ = nullptr;  ///< name and definition
    uint32_t definition_size_ = 0;
    uint8_t name_size_ = 0;       ///< 0: the entry is free
    bool has_own_texts_ = false;  ///< they are an allocation of their own, not in large pages
    Slot slot_ = kNoSlot;
    uint64_t revision_ = 0;
    Moment next_ = kNever;
    ScheduleMark mark_;
    ShortText<44> progress_;
  };

  /// `segments` must outlive the book.
  ScheduleBook(Segments& segments, SipKey secret) : segments_(segments), secret_(secret) {}
  ScheduleBook(const ScheduleBook&) = delete;
  ScheduleBook& operator=(const ScheduleBook&) = delete;
  ~ScheduleBook() { clear(); }

  uint64_t size() const { return all_.size() - free_.size(); }
  SlotKey key_of(std::string_view name) const {
    const Hash128 hash = siphash128(secret_, name);
    return {hash.low, static_cast<uint32_t>(hash.high)};
  }
  Entry* find(std::string_view name) const { return find(key_of(name), name); }
  /// nullptr: there is none of that number (any more).
  Entry* find_number(uint64_t number) const;
  /// For a batch of find_number() and define(), before their calls.
  void prefetch(uint64_t number) const { by_number_.prefetch(number_key(number)); }
  void prefetch(SlotKey key) const { by_name_.prefetch(key); }
  /// After prefetch(number): prefetches the entry that find_number() will check.
  void prefetch_entry(uint64_t number) const {
    const Slot slot = by_number_.peek(number_key(number));
    if (slot != kNoSlot) prefetch_line(all_[slot]);
  }

  /// All of the schedule is in the record at `location`: a new schedule, a new definition of one, or a copy.
  /// `key` is that of the name. Returns where the records of before were (number 0: there was no schedule of
  /// that name).
  ScheduleMark define(const ScheduleView& schedule, SlotKey key, const Location& location);
  /// The changeable part is in the record at `location`. `turned.fixed.number` is not looked at.
  void turn(Entry& entry, const TurnedView& turned, const Location& location);
  void erase(Entry& entry);

  /// Compaction has copied a record: all of the schedule as it is now, or its changeable part.
  void set_definition_record(Entry& entry, const Location& location) { set_records(entry, location, {}); }
  void set_turned_record(Entry& entry, const Location& location) {
    set_records(entry, entry.mark_.definition, location);
  }

  /// Ends recovery.
  void go_live();

  /// Copies of the schedules that must be reported at `now`, within the bounds of one report. Each is due
  /// again after kDueScheduleReminder, unless it is turned before.
  std::vector<StoredSchedule> take_due(Moment now);
  /// When take_due() has something to return; kNever: as things are, not at all.
  Moment next_report() const { return heap_.empty() ? kNever : heap_.front().at; }
  SchedulePage page(const ScheduleListRequest& request);

  uint64_t memory_bytes() const;

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;
  static constexpr size_t kMostTextBytes = LargePages::kChunkBytes / 8;

  static std::string_view text_of(std::string_view text) { return text; }
  static std::string_view text_of(const Entry* entry) { return entry->name(); }
  struct ByName {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return text_of(a) < text_of(b);
    }
  };
  /// A heap by `at`: the first one is at the front.
  struct Report {
    Moment at;
    Slot slot;
  };

  /// Without schedules nothing is kept of their memory.
  void clear();
  std::vector<Entry*> sorted_by_name() const;
  Entry* find(SlotKey key, std::string_view name) const;
  /// Without texts.
  Entry& add();
  void set_texts(Entry& entry, std::string_view name, std::string_view definition);
  void free_texts(Entry& entry);
  void set_records(Entry& entry, const Location& definition, const Location& turned);
  void set_next(Entry& entry, Moment next);
  void report(Entry& entry, Moment at);
  void put(uint32_t place, const Report& report);
  void sift_up(uint32_t place);
  void sift_down(uint32_t place);

  Segments& segments_;
  LargePages entries_;          ///< entries, which are used again, and returned with the last schedule
  LargePages recovered_texts_;  ///< of definitions that are as recovery found them
  std::vector<Entry*> all_;     ///< by slot; entries in use and free ones
  std::vector<Entry*> free_;
  SipKey secret_;
  SlotMap by_name_;
  SlotMap by_number_;
  absl::btree_set<Entry*, ByName> in_order_;
  bool is_ordered_ = false;  ///< in_order_ has all
  std::vector<Report> heap_;
  std::vector<uint32_t> places_;  ///< in the heap, by slot; kNowhere
  uint64_t text_bytes_ = 0;
  bool is_live_ = false;
};

}  // namespace delayq::journal
