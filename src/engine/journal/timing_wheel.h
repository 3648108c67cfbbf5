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

/// Told when a job enters or leaves a level of the wheel, so that the forecast can be kept as counters.
class WheelObserver {
 public:
  virtual ~WheelObserver() = default;
  virtual void on_wheel(const Entry& entry, uint64_t wake_ms, int change) = 0;
};

/// A hierarchical timing wheel with ticks of 1 ms over intrusive links in the job table: adding and removing
/// are O(1).
///
/// Level L has 512 slots of 256^L ms. A time goes to the lowest level on which it is less than 512 slots
/// away. That is twice what the level below it needs, so a whole slot may be handed down any time during the
/// slot before it: `prepare` does that in small portions, and no single moment pays for a slot with a million
/// jobs in it.
///
/// When the clock goes back, times before the wheel's own hand cannot be put into it. They wait in an ordered
/// set until the clock has caught up.
class TimingWheel {
 public:
  TimingWheel(JobTable& jobs, WheelObserver& observer) : jobs_(jobs), observer_(observer) {}

  /// Tells the time. Nothing comes of it but that the hand follows where nothing is in its way; an empty
  /// wheel starts from there, wherever the clock was before.
  void observe(Moment now) {
    const uint64_t now_ms = to_stored_ms(now);
    if (size_ == 0) {
      hand_ = now_ms;
      next_event_ = UINT64_MAX;
    } else if (now_ms < next_event_ && now_ms > hand_) {
      hand_ = now_ms;
    }
  }

  /// REQUIRES: the job is not in the wheel. `wake` may be in the past: it then comes with the next advance().
  void add(Slot slot, uint64_t wake_ms);
  void remove(Slot slot);
  bool contains(Slot slot) const { return jobs_[slot].in_wheel || jobs_[slot].in_past; }
  /// Brings what remove() will touch into the cache.
  void prefetch_neighbours(Slot slot) const {
    const Entry& entry = jobs_[slot];
    if (entry.wheel_previous != kNoSlot) jobs_.prefetch(entry.wheel_previous);
    if (entry.wheel_next != kNoSlot) jobs_.prefetch(entry.wheel_next);
  }

  /// Whether anything may be due at `now`; cheap.
  bool may_have_due(Moment now) const {
    const uint64_t now_ms = to_stored_ms(now);
    return now_ms >= next_event_ || (!past_.empty() && past_.begin()->first <= now_ms);
  }

  /// Takes up to `budget` jobs whose time is not after `now` out of the wheel, calling due(slot) for each,
  /// earliest millisecond first. `due` may add and remove jobs. Answers whether it finished: false means call
  /// again.
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

  /// Hands jobs of the next slots down a level, up to `budget` of them. Call it now and then; wakeup() says
  /// when.
  void prepare(Moment now, uint32_t budget);

  /// When advance() or prepare() has something to do next. kNever: nothing is in the wheel.
  Moment wakeup() const;

  uint64_t size() const { return size_; }
  /// Nothing in the wheel itself wakes before this.
  Moment hand() const { return from_unix_ms(static_cast<int64_t>(hand_)); }
  /// What waits beside the wheel, as (time, slot).
  const absl::btree_set<std::pair<uint64_t, Slot>>& past() const { return past_; }

 private:
  static constexpr uint32_t kLevels = 6;
  static constexpr uint32_t kSlots = 512;
  static constexpr uint32_t kBits = 8;
  /// prepare() is wanted a second ahead for every so many jobs of the slot that comes next.
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
  /// The index (not reduced to the ring) of the first occupied slot at or after the hand's; UINT64_MAX: none.
  uint64_t first_occupied(uint32_t level) const;
  /// Moves the hand towards `now`, handing slots down on the way, until a job is due.
  Slot next_due(uint64_t now_ms, uint32_t& budget);
  bool hand_down(uint32_t level, uint64_t index, uint32_t& budget);
  void find_next_event();
  uint64_t wake_of(Slot slot) const;

  JobTable& jobs_;
  WheelObserver& observer_;
  std::array<Ring, kLevels> rings_;
  absl::btree_set<std::pair<uint64_t, Slot>> past_;
  uint64_t hand_ = 0;                 ///< nothing in the wheel is before it
  uint64_t next_event_ = UINT64_MAX;  ///< not after the first time at which the hand has something to do
  uint64_t size_ = 0;
};

/// Counts of delayed jobs by when they fall due, so that a forecast reads counters, not jobs: for all topics
/// together, and for each topic that has many.
///
/// The bins are as fine as the wheel's level allows: 256 ms for the next two minutes, 1 s for nine hours, 4.4
/// minutes for 99 days, 19 hours for 70 years. A job moves to a finer bin when the wheel hands it down.
class ForecastBins final : public WheelObserver {
 public:
  static constexpr uint32_t kAllTopics = UINT32_MAX;
  /// Below this a topic's jobs are looked at one by one, which is exact and costs no memory.
  static constexpr uint64_t kManyJobs = 16'384;

  void on_wheel(const Entry& entry, uint64_t wake_ms, int change) override;

  bool has(uint32_t topic) const { return topic < topics_.size() && topics_[topic] != nullptr; }
  /// From now on the topic has bins of its own. Those of its jobs that are in the wheel already must be
  /// added.
  void start(uint32_t topic);
  void add(uint32_t topic, const Entry& entry, uint64_t wake_ms);
  void stop(uint32_t topic);

  /// A number of jobs that fall due in [start_ms, end_ms).
  struct Bin {
    uint64_t start_ms;
    uint64_t end_ms;
    uint32_t jobs;
  };
  /// Those of the topic, or of all. REQUIRES: has(topic), or kAllTopics. `hand` is the wheel's.
  std::vector<Bin> bins(uint32_t topic, Moment hand) const;

  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  static constexpr uint32_t kLevels = 6;
  /// As many as a level of the wheel can reach: 512 slots of 64 bins each.
  static constexpr uint32_t kReach = 512 * 64;
  using Ring = std::array<uint32_t, kReach>;
  using Rings = std::array<std::unique_ptr<Ring>, kLevels>;

  void count(Rings& rings, uint32_t level, uint64_t index, int change);

  Rings all_;
  std::vector<std::unique_ptr<Rings>> topics_;
  uint64_t memory_bytes_ = 0;
};

}  // namespace delayq::journal
