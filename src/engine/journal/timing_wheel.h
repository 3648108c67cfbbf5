#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <absl/container/btree_set.h>

#include "core/time.h"
#include "engine/journal/job_table.h"

namespace delayq::journal {

/// Notified when a job enters or leaves a level of the wheel, so that the forecast can use counters.
class WheelObserver {
 public:
  virtual ~WheelObserver() = default;
  virtual void on_wheel(const Entry& entry, uint64_t wake_ms, int change) = 0;
};

/// A hierarchical timing wheel with ticks of 1 ms and intrusive links in the job table: add
/// and remove are O(1).
///
/// Level L has 512 slots of 256^L ms. A time is placed on the lowest level on which it is less than 512
/// slots away. That is twice what the level below needs, so the jobs of a slot may move down a level at any
/// time during the slot before it. `prepare` does this in small portions, so that a slot with a million
/// jobs causes no pause.
///
/// When the clock goes back, times before the wheel's hand cannot be placed in the wheel. They wait in an
/// ordered set until the clock has caught up.
class TimingWheel {
 public:
  TimingWheel(JobTable& jobs, WheelObserver& observer) : jobs_(jobs), observer_(observer) {}

  /// Tells the wheel the time. The hand moves forward if no job is in between; in an empty wheel it moves to
  /// `now`, even backwards.
  void observe(Moment now) {
    const uint64_t now_ms = to_stored_ms(now);
    if (size_ == 0) {
      hand_ = now_ms;
      next_event_ = UINT64_MAX;
    } else if (now_ms < next_event_ && now_ms > hand_) {
      hand_ = now_ms;
    }
  }

  /// REQUIRES: the job is not in the wheel. `wake` may be in the past: the next advance()
  /// then returns the job.
  void add(Slot slot, uint64_t wake_ms);
  void remove(Slot slot);
  bool contains(Slot slot) const { return jobs_[slot].in_wheel || jobs_[slot].in_past; }
  /// Prefetches what remove() will access.
  void prefetch_neighbours(Slot slot) const {
    const Entry& entry = jobs_[slot];
    if (entry.wheel_previous != kNoSlot) jobs_.prefetch(entry.wheel_previous);
    if (entry.wheel_next != kNoSlot) jobs_.prefetch(entry.wheel_next);
  }

  /// Whether any job may be due at `now`. Cheap.
  bool may_have_due(Moment now) const {
    const uint64_t now_ms = to_stored_ms(now);
    return now_ms >= next_event_ || (!past_.empty() && past_.begin()->first <= now_ms);
  }

  /// Removes up to `budget` jobs whose time is not after `now` and calls due(slot) for each,
  /// earliest millisecond first. `due` may add and remove jobs. Returns whether all were processed;
  /// if false, call again.
  template <class Due>
  bool advance(Moment now, uint32_t budget, Due&& due) {
    const uint64_t now_ms = to_stored_ms(now);
    while (budget > 0) {
      const Slot slot = next_due(now_ms, budget);
      if (slot == kNoSlot) return budget > 0;
      if (budget > 0) --budget;
      due(slot);
    }
    return !may_have_due(now);
  }

  /// Moves up to `budget` jobs of the next slots down a level. Call it from time to time; wakeup() says when.
  void prepare(Moment now, uint32_t budget);

  /// When advance() or prepare() next has something to do. kNever: the wheel is empty.
  Moment wakeup() const;

  uint64_t size() const { return size_; }
  /// No job in the wheel itself wakes before this time.
  Moment hand() const { return from_unix_ms(static_cast<int64_t>(hand_)); }
  /// The jobs that wait outside the wheel, as (time, slot).
  const absl::btree_set<std::pair<uint64_t, Slot>>& past() const { return past_; }

 private:
  static constexpr uint32_t kLevels = 6;
  static constexpr uint32_t kSlots = 512;
  static constexpr uint32_t kBits = 8;
  /// prepare() is called one second earlier for every kPortion jobs of the next slot.
  static constexpr uint64_t kPortion = 4096;

  struct Ring {
    std::array<Slot, kSlots> first;
    std::array<uint32_t, kSlots> count{};
    std::array<uint64_t, kSlots / 64> occupied{};
    Ring() { first.fill(kNoSlot); }
  };

  static uint64_t slot_start(uint64_t index, uint32_t level) { return index << (kBits * level); }
  void insert(Slot slot, uint64_t wake_ms);
  void unlink(Slot slot, uint64_t wake_ms);
  /// Returns the absolute index (not modulo the ring size) of the first occupied slot at or after the hand,
  /// or UINT64_MAX if there is none.
  uint64_t first_occupied(uint32_t level) const;
  /// Moves the hand towards `now` until a job is due, and moves jobs down a level on the way.
  Slot next_due(uint64_t now_ms, uint32_t& budget);
  bool hand_down(uint32_t level, uint64_t index, uint32_t& budget);
  void find_next_event();
  uint64_t wake_of(Slot slot) const;

  JobTable& jobs_;
  WheelObserver& observer_;
  std::array<Ring, kLevels> rings_;
  absl::btree_set<std::pair<uint64_t, Slot>> past_;
  uint64_t hand_ = 0;                 ///< no job in the wheel is before it
  uint64_t next_event_ = UINT64_MAX;  ///< not after the first time at which the hand has something to do
  uint64_t size_ = 0;
};

/// Counts delayed jobs by their due time, so that a forecast reads counters instead of jobs: for all topics
/// together, and for each topic that has many jobs.
///
/// The resolution depends on the level of the wheel: 256 ms for the next two minutes, 1 s for nine hours, 4.4
/// minutes for 99 days, 19 hours for 70 years. A job moves to a finer bin when it moves down a level.
class ForecastBins final : public WheelObserver {
 public:
  static constexpr uint32_t kAllTopics = UINT32_MAX;
  /// Topics with fewer jobs have no bins: their jobs are counted one by one, which is exact
  /// and needs no memory.
  static constexpr uint64_t kManyJobs = 16'384;

  void on_wheel(const Entry& entry, uint64_t wake_ms, int change) override;

  bool has(uint32_t topic) const { return topic < topics_.size() && topics_[topic] != nullptr; }
  /// Gives the topic bins of its own. The caller must add its jobs that are already in the wheel.
  void start(uint32_t topic);
  void add(uint32_t topic, const Entry& entry, uint64_t wake_ms);
  void stop(uint32_t topic);

  /// The number of jobs that fall due in [start_ms, end_ms).
  struct Bin {
    uint64_t start_ms;
    uint64_t end_ms;
    uint32_t jobs;
  };
  /// The bins of the topic, or of all topics. REQUIRES: has(topic), or kAllTopics. `hand`
  /// is that of the wheel.
  std::vector<Bin> bins(uint32_t topic, Moment hand) const;

  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  static constexpr uint32_t kLevels = 6;
  /// The number of bins that one level of the wheel covers: 512 slots of 64 bins each.
  static constexpr uint32_t kReach = 512 * 64;
  using Ring = std::array<uint32_t, kReach>;
  using Rings = std::array<std::unique_ptr<Ring>, kLevels>;

  void count(Rings& rings, uint32_t level, uint64_t index, int change);

  Rings all_;
  std::vector<std::unique_ptr<Rings>> topics_;
  uint64_t memory_bytes_ = 0;
};

}  // namespace delayq::journal
