#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>
#include <absl/hash/hash.h>
#include <absl/strings/string_view.h>

#include "core/job_state.h"
#include "core/time.h"
#include "engine/journal/job_table.h"

namespace delayq::journal {

/// Allows look-ups by string_view in a table with string keys. (If the packaged Abseil was built with its own
/// string_view, its hash does not support the standard one.)
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const {
    return absl::Hash<absl::string_view>{}(absl::string_view(text.data(), text.size()));
  }
};
using TextEqual = std::equal_to<>;

/// The positions where listings stopped. A cursor refers to the next job to list. When that job leaves its
/// list, the cursor moves to its successor, so a walk neither skips nor repeats a job that stays. A cursor
/// can be used several times. The oldest cursors are dropped first.
///
/// Cursors at the same job are kept together and move as one, so a job that leaves moves them in constant
/// time, however many of them are never used again.
class ListCursors {
 public:
  static constexpr size_t kMost = 1024;

  explicit ListCursors(JobTable& jobs) : jobs_(jobs) {}

  /// Parses a cursor that std::to_string() wrote. nullopt: malformed.
  static std::optional<uint64_t> parse(std::string_view text);
  /// Adds a cursor at `slot`.
  uint64_t add(Slot slot);
  /// The current position of the cursor. nullopt: unknown (dropped, or from an earlier run). kNoSlot: the end
  /// of its list was reached.
  std::optional<Slot> find(uint64_t cursor) const;
  /// Drops the cursor.
  void remove(uint64_t cursor);
  /// Call before the job leaves its list. REQUIRES: its entry has has_cursor set.
  void on_leave(Slot slot);

 private:
  /// The cursors at one job.
  struct Place {
    Slot slot = kNoSlot;
    std::vector<uint64_t> cursors;
  };

  void move_to(std::unique_ptr<Place> place, Slot slot);

  JobTable& jobs_;
  absl::btree_map<uint64_t, Place*> cursors_;  ///< null: the end of its list was reached
  absl::flat_hash_map<Slot, std::unique_ptr<Place>> places_;
  uint64_t next_ = 1;
};

using TopicNumber = uint32_t;
inline constexpr TopicNumber kNoTopic = UINT32_MAX;

/// Hand-over order: priority, then due time, then push order. The slot is not part of the order.
struct ReadyKey {
  uint32_t priority;
  Slot slot;
  uint64_t due_ms;
  uint64_t seq;

  friend bool operator<(const ReadyKey& a, const ReadyKey& b) {
    return std::tie(a.priority, a.due_ms, a.seq) < std::tie(b.priority, b.due_ms, b.seq);
  }
};

/// A topic: its jobs, in one list per state, and the ready jobs in sets.
struct Topic {
  /// The jobs in one state, in the order in which they entered it, linked through their entries.
  struct Chain {
    Slot first = kNoSlot;
    Slot last = kNoSlot;
    uint64_t count = 0;
  };

  std::string name;
  std::array<Chain, kJobStateCount> chains;
  uint64_t jobs = 0;                                          ///< in all states
  std::array<absl::btree_set<ReadyKey>, kOutletCount> ready;  ///< by outlet
  std::string settings;
  Location settings_record;
  std::array<bool, kOutletCount> announced{};  ///< the next poll reports its ready jobs to the queue
  bool idle_listed = false;                    ///< is in the list of topics that may be removed

  bool has_jobs() const { return jobs != 0; }
  bool is_empty() const { return jobs == 0 && settings.empty(); }
  bool is_announced() const { return announced[0] || announced[1]; }
  absl::btree_set<ReadyKey>& ready_for(Outlet outlet) { return ready[static_cast<size_t>(outlet)]; }
  Chain& chain(JobState state) { return chains[static_cast<size_t>(state)]; }
  const Chain& chain(JobState state) const { return chains[static_cast<size_t>(state)]; }
};

/// All topics, by number and by name. A topic that has been empty for a while is removed.
class TopicTable {
 public:
  explicit TopicTable(JobTable& jobs) : cursors(jobs), jobs_(jobs) {}

  /// Returns kNoTopic if there is no topic with this name.
  TopicNumber find(std::string_view name) const;
  TopicNumber find_or_add(std::string_view name);
  Topic& operator[](TopicNumber number) { return *topics_[number]; }
  const Topic& operator[](TopicNumber number) const { return *topics_[number]; }

  /// Adds the job at the end of the list of its topic and state; a ready job also to the set.
  void enter(Slot slot);
  /// Removes it again. Call it before topic, state, priority, due time or number of the entry change.
  void leave(Slot slot);

  /// Changes the due time of a job that stays in its state. A ready job moves to its new place in the set.
  void change_due(Slot slot, uint64_t due_ms);

  /// Sorts the topic's jobs in that state by the end of their retention: compaction may have written
  /// them in another order.
  void sort_by_end(TopicNumber number, JobState state);

  /// Topics by name, starting after `cursor`.
  std::vector<TopicNumber> page(std::string_view cursor, uint32_t limit) const;

  /// Records a topic that may have become empty.
  void note_idle(TopicNumber number, Moment now);
  /// Removes topics that have been empty for a minute. The number of topics checked per call is bounded.
  void forget_idle(Moment now);
  Moment next_forgetting() const { return idle_.empty() ? kNever : idle_.front().since + kIdleTime; }

  /// The number of topics that have jobs.
  uint64_t size() const { return with_jobs_; }
  /// The sum over all topics.
  const std::array<uint64_t, kJobStateCount>& totals() const { return totals_; }
  uint64_t memory_bytes() const;

  ListCursors cursors;

 private:
  static constexpr Millis kIdleTime{60'000};
  struct Idle {
    TopicNumber number;
    Moment since;
  };

  JobTable& jobs_;
  std::vector<std::unique_ptr<Topic>> topics_;
  std::vector<TopicNumber> free_;
  /// Keys point into the topics.
  absl::flat_hash_map<std::string_view, TopicNumber, TextHash, TextEqual> by_name_;
  absl::btree_set<std::string_view> names_;
  std::deque<Idle> idle_;
  std::array<uint64_t, kJobStateCount> totals_{};
  uint64_t with_jobs_ = 0;
};

/// The members of each group: live and dead jobs (a dead job may become live again). A job without a
/// group costs nothing.
class GroupTable {
 public:
  explicit GroupTable(JobTable& jobs) : jobs_(jobs) {}

  void add(std::string_view group, Slot slot);
  /// No-op for a job without a group.
  void remove(Slot slot);

  struct Page {
    std::vector<Slot> members;
    std::string cursor;  ///< of the next page; empty: this is the last one
  };
  /// Returns up to `max` members for which wanted(entry) is true, the latest first, among a bounded number
  /// that it looks at. `cursor` is that of the page before, or empty. A walk sees every member that stays in
  /// the group; if its cursor was dropped (many walks were begun since), it starts again.
  template <class Wanted>
  Page members(std::string_view group, std::string_view cursor, size_t max, Wanted&& wanted) {
    Page page;
    Slot slot = start(group, cursor);
    for (uint32_t looked = 0; slot != kNoSlot && page.members.size() < max && looked < kMostLookedAt;
         ++looked, slot = jobs_.find_extra(slot)->group_next) {
      if (wanted(jobs_[slot])) page.members.push_back(slot);
    }
    if (slot != kNoSlot) page.cursor = add_cursor(slot);
    return page;
  }

  uint64_t memory_bytes() const { return groups_.capacity() * sizeof(Group) + by_name_.capacity() * 24; }

  /// The bounds of one page, and of the walks at once.
  static constexpr uint32_t kMostLookedAt = 4'096;
  static constexpr size_t kMostCursors = 64;

 private:
  struct Group {
    std::string name;
    Slot first = kNoSlot;
  };
  /// Where a walk goes on. When that job leaves its group, the cursor moves to the next one.
  struct Cursor {
    uint64_t number = 0;
    Slot slot = kNoSlot;  ///< kNoSlot: the walk is at its end
  };

  Slot start(std::string_view group, std::string_view cursor);
  std::string add_cursor(Slot slot);

  Slot first(std::string_view group) const {
    const auto found = by_name_.find(group);
    return found == by_name_.end() ? kNoSlot : groups_[found->second].first;
  }

  JobTable& jobs_;
  std::vector<Group> groups_;
  std::vector<uint32_t> free_;
  absl::flat_hash_map<std::string, uint32_t, TextHash, TextEqual> by_name_;
  std::vector<Cursor> cursors_;  ///< by number
  uint64_t last_cursor_ = 0;
};

}  // namespace delayq::journal
