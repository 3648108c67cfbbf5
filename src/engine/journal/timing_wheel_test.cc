#include "engine/journal/timing_wheel.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.h"
#include "tests/support/job_spec.h"

namespace delayq::journal {
namespace {

using support::at;
using support::kStart;

class NoObserver final : public WheelObserver {
 public:
  void on_wheel(const Entry& /*entry*/, uint64_t /*wake_ms*/, int change) override { count += change; }
  int64_t count = 0;
};

/// Compares a wheel with the simplest structure that does the same.
class WheelTest : public testing::Test {
 protected:
  WheelTest() { wheel.observe(kStart); }

  Slot add(Moment wake) {
    const Slot slot = jobs.add();
    jobs[slot].due_ms = to_stored_ms(wake) & kLatestMs;
    jobs[slot].set_state(JobState::kDelayed);
    wheel.add(slot, to_stored_ms(wake));
    expected.emplace(wake, slot);
    return slot;
  }

  void remove(Slot slot) {
    forget(slot);
    wheel.remove(slot);
    jobs.remove(slot);
  }

  void forget(Slot slot) {
    const auto [first, last] = expected.equal_range(jobs[slot].due());
    for (auto row = first; row != last; ++row) {
      if (row->second != slot) continue;
      expected.erase(row);
      return;
    }
    ADD_FAILURE() << "slot " << slot << " came out of the wheel but is not in it";
  }

  /// Advances in portions of `budget`; checks that exactly the due jobs come, and in order.
  void advance(Moment now, uint32_t budget = 1'000'000) {
    Moment last = Moment::min();
    bool finished = false;
    for (int calls = 0; !finished; ++calls) {
      ASSERT_LT(calls, 1'000'000) << "never finishes";
      finished = wheel.advance(now, budget, [&](Slot slot) {
        const Moment due = jobs[slot].due();
        EXPECT_LE(due, now) << "early";
        EXPECT_GE(due, last) << "out of order";
        EXPECT_FALSE(wheel.contains(slot));
        last = due;
        forget(slot);
        jobs.remove(slot);
      });
    }
    EXPECT_EQ(expected.empty() || expected.begin()->first > now, true) << "forgotten";
    check_wakeup();
  }

  void check_wakeup() {
    EXPECT_EQ(wheel.size(), expected.size());
    // Jobs outside the wheel are not in the forecast bins.
    const auto inside = std::count_if(expected.begin(), expected.end(),
                                      [&](const auto& row) { return jobs[row.second].in_wheel == 1; });
    EXPECT_EQ(observer.count, inside);
    if (expected.empty()) {
      EXPECT_EQ(wheel.wakeup(), kNever);
    } else {
      EXPECT_LE(wheel.wakeup(), expected.begin()->first);
    }
  }

  JobTable jobs;
  NoObserver observer;
  TimingWheel wheel{jobs, observer};
  std::multimap<Moment, Slot> expected;
};

TEST_F(WheelTest, an_empty_wheel_never_wakes) {
  EXPECT_EQ(wheel.wakeup(), kNever);
  EXPECT_FALSE(wheel.may_have_due(at(1'000'000'000)));
  advance(at(1000));
}

TEST_F(WheelTest, a_job_comes_in_its_millisecond) {
  for (const int64_t delay : {1, 255, 256, 511, 512, 513, 65'535, 65'536, 131'071, 131'072, 16'777'216}) {
    SCOPED_TRACE(delay);
    const Moment due = wheel.hand() + Millis{delay};
    add(due);
    advance(due - Millis{1});
    ASSERT_EQ(wheel.size(), 1U);
    advance(due);
    ASSERT_EQ(wheel.size(), 0U);
  }
}

TEST_F(WheelTest, a_past_time_comes_with_the_next_advance) {
  add(kStart - Millis{5});
  EXPECT_TRUE(wheel.may_have_due(kStart));
  advance(kStart);
  EXPECT_EQ(wheel.size(), 0U);
}

TEST_F(WheelTest, times_up_to_a_hundred_years_come_on_time) {
  constexpr Millis kCentury = std::chrono::years{100};
  std::set<Moment> dues;
  for (Millis away{1}; away < kCentury; away *= 3) dues.insert(kStart + away);
  dues.insert(kStart + kCentury);
  for (const Moment due : dues) add(due);
  for (const Moment due : dues) {
    advance(due - Millis{1}, 3);
    advance(due, 3);
  }
  EXPECT_EQ(wheel.size(), 0U);
}

TEST_F(WheelTest, one_advance_over_a_century_brings_everything_in_order) {
  for (int year = 100; year > 0; --year) add(kStart + std::chrono::years{year});
  add(from_unix_ms(kLatestMs));
  advance(kStart + std::chrono::years{100});
  EXPECT_EQ(wheel.size(), 1U);
  advance(from_unix_ms(kLatestMs));
  EXPECT_EQ(wheel.size(), 0U);
}

/// A caller that sleeps until wakeup() and then ticks: it must not be late, and must not spin.
TEST_F(WheelTest, sleeping_until_wakeup_is_enough) {
  Random random{11};
  for (int i = 0; i < 2000; ++i) add(kStart + Millis{random.below(400'000'000)});
  Moment now = kStart;
  for (int wakes = 0; !expected.empty(); ++wakes) {
    ASSERT_LT(wakes, 10'000) << "wakes too often";
    ASSERT_GE(wheel.wakeup(), now);
    now = std::max(now + Millis{1}, wheel.wakeup());
    const Moment first = expected.begin()->first;
    ASSERT_LE(now, first) << "late";
    advance(now);
    wheel.prepare(now, 4096);
  }
}

TEST_F(WheelTest, a_crowded_slot_is_handed_down_ahead_in_portions) {
  constexpr int kCrowd = 100'000;
  constexpr uint32_t kPortion = 4096;
  const Moment due = kStart + std::chrono::minutes{10};
  for (int i = 0; i < kCrowd; ++i) add(due + Millis{i % 1000});
  Moment now = kStart;
  int portions = 0;
  // Like an engine's tick: nothing is due, so it only observes the time and prepares a portion.
  for (; wheel.wakeup() < due; ++portions) {
    ASSERT_LT(portions, 1000) << "asks to be called, does nothing";
    now = std::max(now, wheel.wakeup());
    ASSERT_LE(now, due);
    if (wheel.may_have_due(now)) advance(now, kPortion);
    wheel.prepare(now, kPortion);
  }
  EXPECT_GT(portions, kCrowd / static_cast<int>(kPortion)) << "too much at once";
  EXPECT_LT(now, due);
  ASSERT_EQ(wheel.size(), static_cast<uint64_t>(kCrowd));
  advance(due + Millis{1000}, kPortion);
  EXPECT_EQ(wheel.size(), 0U);
}

TEST_F(WheelTest, a_budget_bounds_what_one_call_hands_out) {
  for (int i = 0; i < 1000; ++i) add(at(100'000 + i));
  uint32_t taken = 0;
  uint32_t calls = 0;
  while (!wheel.advance(at(200'000), 64, [&](Slot slot) { ++taken, forget(slot), jobs.remove(slot); })) {
    ++calls;
    ASSERT_LE(taken, calls * 64);
    ASSERT_LT(calls, 100U);
  }
  EXPECT_EQ(taken, 1000U);
}

TEST_F(WheelTest, due_may_add_and_remove) {
  const Slot doomed = add(at(600));
  add(at(500));
  std::vector<Moment> seen;
  wheel.advance(at(1000), 1000, [&](Slot slot) {
    seen.push_back(jobs[slot].due());
    forget(slot);
    if (seen.size() > 1) return;
    remove(doomed);
    add(at(500));
    add(at(700));
    add(at(5000));
  });
  EXPECT_EQ(seen, (std::vector{at(500), at(500), at(700)}));
  EXPECT_EQ(wheel.size(), 1U);
}

TEST_F(WheelTest, an_empty_wheel_follows_the_clock_back) {
  add(at(1000));
  advance(at(1'000'000));
  wheel.observe(kStart);
  EXPECT_EQ(wheel.hand(), kStart);
  add(at(10));
  advance(at(9));
  EXPECT_EQ(wheel.size(), 1U);
  advance(at(10));
  EXPECT_EQ(wheel.size(), 0U);
}

TEST_F(WheelTest, when_the_clock_went_back_times_before_the_hand_wait_for_it) {
  add(at(100'000));
  add(at(50'000));
  advance(at(60'000));
  const Slot removed = add(at(2'000));
  add(at(1'000));
  add(at(59'999));
  EXPECT_EQ(wheel.wakeup(), at(1'000));
  advance(at(999));
  EXPECT_EQ(wheel.size(), 4U);
  advance(at(1'000));
  EXPECT_EQ(wheel.size(), 3U);
  remove(removed);
  advance(at(59'998));
  EXPECT_EQ(wheel.size(), 2U);
  advance(at(100'000));
  EXPECT_EQ(wheel.size(), 0U);
}

class RandomWheelTest : public WheelTest, public testing::WithParamInterface<uint64_t> {};

Millis random_delay(Random& random) {
  const auto bits = static_cast<unsigned>(random.between(1, 42));
  return Millis{static_cast<int64_t>(random.next() & ((uint64_t{1} << bits) - 1))};
}

TEST_P(RandomWheelTest, does_what_an_ordered_map_does) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  Random random{GetParam()};
  Moment now = kStart;
  for (int step = 0; step < 4000 && !HasFatalFailure(); ++step) {
    switch (random.below(16)) {
      case 0:
      case 1: {
        now += random_delay(random) / 16;
        advance(now, static_cast<uint32_t>(random.between(1, 100)));
        break;
      }
      case 2:
        now += Millis{random.below(3)};
        advance(now, 1);
        break;
      case 3:
        if (random.chance(1, 8)) now -= random_delay(random) / 1024;
        break;
      case 4:
        wheel.prepare(now, static_cast<uint32_t>(random.below(50)));
        check_wakeup();
        break;
      case 5:
      case 6:
      case 7: {
        if (expected.empty()) break;
        auto row = expected.lower_bound(now + random_delay(random));
        remove(row == expected.end() ? expected.begin()->second : row->second);
        check_wakeup();
        break;
      }
      default: {
        wheel.observe(now);
        const Moment wake =
            random.chance(1, 10) ? now - Millis{random.below(2000)} : now + random_delay(random);
        const auto copies = random.chance(1, 20) ? random.below(200) : 1;
        for (uint64_t i = 0; i < copies; ++i) add(wake);
        if (random.chance(1, 10)) check_wakeup();
      }
    }
  }
  advance(from_unix_ms(kLatestMs), 1000);
  EXPECT_EQ(wheel.size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWheelTest, testing::Range<uint64_t>(1, 41));

}  // namespace
}  // namespace delayq::journal
