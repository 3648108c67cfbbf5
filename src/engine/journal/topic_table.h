#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include "core/job_state.h"
#include "core/time.h"
#include "engine/journal/job_table.h"
#include "engine/journal/list_cursors.h"
#include "engine/journal/text_hash.h"

namespace delayq::journal {

using TopicNumber = uint32_t;
inline constexpr TopicNumber kNoTopic = UINT32_MAX;

/// Hand-over order: priority, then due time, then push order. The slot is carried along.
struct ReadyKey {
  uint32_t priority;
  Slot slot;
  uint64_t due_ms;
  uint64_t seq;

  friend bool operator<(const ReadyKey& a, const ReadyKey& b) {
    return std::tie(a.priority, a.due_ms, a.seq) < std::tie(b.priority, b.due_ms, b.seq);
  }
};

/// A topic: its jobs, as one list per state and as a set of the ready ones.
struct Topic {
  /// The jobs of one state in the order in which they entered it, linked through their entries.
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
  std::array<bool, kOutletCount> announced{};  ///< the queue will hear of its ready jobs at the next poll
  bool idle_listed = false;                    ///< is in the list of topics to look at for removal

  bool has_jobs() const { return jobs != 0; }
  bool is_empty() const { return jobs == 0 && settings.empty(); }
  bool is_announced() const { return announced[0] || announced[1]; }
  absl::btree_set<ReadyKey>& ready_for(Outlet outlet) { return ready[static_cast<size_t>(outlet)]; }
  Chain& chain(JobState state) { return chains[static_cast<size_t>(state)]; }
  const Chain& chain(JobState state) const { return chains[static_cast<size_t>(state)]; }
};

/// All topics, by number and by name. A topic that has been empty for a while is forgotten.
class TopicTable {
 public:
  explicit TopicTable(JobTable& jobs) : cursors(jobs), jobs_(jobs) {}

  /// kNoTopic: there is none of that name.
  TopicNumber find(std::string_view name) const;
  TopicNumber find_or_add(std::string_view name);
  Topic& operator[](TopicNumber number) { return *topics_[number]; }
  const Topic& operator[](TopicNumber number) const { return *topics_[number]; }

  /// Appends the job to the list of its topic and state; a ready one to the set too.
  void enter(Slot slot);
  /// Takes it out again. Call it before topic, state, priority, due time or number of the entry change.
  void leave(Slot slot);

  /// The job stays in its state, but its due time changes. REQUIRES: not in the set of the ready ones under
  /// the new one.
  void change_due(Slot slot, uint64_t due_ms);

  /// Puts the topic's jobs of that state in the order in which their retention ends: cleaning may have
  /// written them to the log in another one.
  void sort_by_end(TopicNumber number, JobState state);

  /// Topics by name, starting after `cursor`.
  std::vector<TopicNumber> page(std::string_view cursor, uint32_t limit) const;

  /// Remembers a topic that may have become empty.
  void note_idle(TopicNumber number, Moment now);
  /// Forgets topics that have stayed empty for a minute; looks at a bounded number of them.
  void forget_idle(Moment now);
  Moment next_forgetting() const { return idle_.empty() ? kNever : idle_.front().since + kIdleTime; }

  /// Those that have jobs.
  uint64_t size() const { return with_jobs_; }
  /// Of all topics together.
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
  absl::flat_hash_map<std::string_view, TopicNumber, TextHash, TextEqual>
      by_name_;  ///< keys point into the topics
  absl::btree_set<std::string_view> names_;
  std::deque<Idle> idle_;
  std::array<uint64_t, kJobStateCount> totals_{};
  uint64_t with_jobs_ = 0;
};

}  // namespace delayq::journal
