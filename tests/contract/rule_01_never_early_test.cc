// Rule 1: a job is not handed over before its due time, and can be from that millisecond on.
#include <algorithm>
#include <set>

#include "core/random.h"
#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

class Rule01NeverEarly : public EngineContract {
 protected:
  /// Does what a server does: sleeps until the engine wants to be called, again and again, until a job is
  /// ready. Returns the time at which it was.
  Moment sleep_until_ready(int most_wakeups) {
    for (int wakeups = 0; wakeups < most_wakeups; ++wakeups) {
      const Moment next = engine_.tick();
      if (!engine_.ready_news().empty()) return engine_.now();
      if (next == kNever) break;
      engine_.go_to(next);
    }
    ADD_FAILURE() << "no job became ready";
    return kNever;
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule01NeverEarly);

TEST_P(Rule01NeverEarly, NotAMillisecondBefore) {
  EXPECT_EQ(engine_.push(JobSpec("t", "a").due_at(at(100))).state, JobState::kDelayed);
  for (const Moment early : {at(0), at(50), at(99)}) {
    engine_.go_to(early);
    engine_.tick();
    EXPECT_THAT(engine_.take("t"), IsEmpty());
    EXPECT_EQ(engine_.state_of("t", "a"), JobState::kDelayed);
  }
  engine_.go_to(at(100));
  engine_.tick();
  EXPECT_THAT(ids_of(engine_.take("t")), ElementsAre("a"));
}

TEST_P(Rule01NeverEarly, DueOrPastIsReadyAtOnce) {
  EXPECT_EQ(engine_.push(JobSpec("t", "now").due_at(at(0))).state, JobState::kReady);
  EXPECT_EQ(engine_.push(JobSpec("t", "past").due_at(at(-1))).state, JobState::kReady);
  EXPECT_EQ(engine_.push(JobSpec("t", "long ago").due_at(Moment{})).state, JobState::kReady);
  EXPECT_THAT(ids_of(engine_.take("t", 9)), ElementsAre("long ago", "past", "now"));
}

TEST_P(Rule01NeverEarly, EveryVerbSeesWhatIsDueWithoutATick) {
  for (const char* id : {"a", "b", "c", "d", "e", "f"}) engine_.push(JobSpec("t", id).due_at(at(100)));
  engine_.go_to(at(100));
  EXPECT_EQ(engine_.count("t", JobState::kReady), 6U);
  EXPECT_THAT(ids_of(engine_.take("t", 2)), SizeIs(2));

  engine_.push(JobSpec("u", "a").due_at(at(200)));
  engine_.go_to(at(200));
  EXPECT_EQ(engine_.state_of("u", "a"), JobState::kReady);

  engine_.push(JobSpec("v", "a").due_at(at(300)));
  engine_.go_to(at(300));
  EXPECT_THAT(engine_.ids_in("v", JobState::kDelayed), IsEmpty());

  engine_.push(JobSpec("w", "a").due_at(at(400)));
  engine_.go_to(at(400));
  EXPECT_EQ(engine_.push(JobSpec("w", "a")).state, JobState::kReady);

  engine_.push(JobSpec("x", "a").due_at(at(500)));
  engine_.go_to(at(500));
  EXPECT_EQ(engine_.purge("x", JobState::kReady), 1U);
}

TEST_P(Rule01NeverEarly, TheNewsComesWithTheTick) {
  engine_.push(JobSpec("t", "a").due_at(at(100)));
  engine_.push(JobSpec("u", "b").due_at(at(101)));
  engine_.ready_news();
  engine_.go_to(at(99));
  engine_.tick();
  EXPECT_FALSE(engine_.ready_news().contains("t"));
  engine_.go_to(at(100));
  engine_.tick();
  EXPECT_TRUE(engine_.ready_news().contains("t"));
  engine_.go_to(at(101));
  engine_.tick();
  EXPECT_TRUE(engine_.ready_news().contains("u"));
}

TEST_P(Rule01NeverEarly, TheNewsComesWithAPush) {
  engine_.push(JobSpec("t", "a"));
  engine_.tick();
  EXPECT_TRUE(engine_.ready_news().contains("t"));
}

TEST_P(Rule01NeverEarly, WhoSleepsUntilTheNextTickIsNeverLate) {
  for (const int64_t delay : {1, 2, 63, 64, 65, 999, 4'095, 4'097, 262'145, 86'400'000}) {
    const Moment due = engine_.now() + Millis{delay};
    engine_.push(JobSpec("t", std::to_string(delay)).due_at(due));
    engine_.ready_news();
    EXPECT_EQ(sleep_until_ready(100), due) << "with a delay of " << delay << " ms";
    engine_.ack(engine_.take_one("t"), kKeepNone);
  }
}

TEST_P(Rule01NeverEarly, AnEarlierPushMovesTheNextTick) {
  engine_.push(JobSpec("t", "late").due_at(at(5'000'000)));
  EXPECT_LE(engine_.tick(), at(5'000'000));
  engine_.push(JobSpec("t", "early").due_at(at(70)));
  EXPECT_LE(engine_.tick(), at(70));
}

TEST_P(Rule01NeverEarly, WithNothingToWaitForItSleeps) {
  constexpr Millis kLong{1'000};
  EXPECT_GE(engine_.tick(), at(0) + kLong);
  engine_.push(JobSpec("t", "a").due_at(at(10)));
  engine_.cancel("t", "a");
  if (GetParam().cools_all) {
    // The body was in the cold store. Its record still comes back and is put aside, which is noted a moment
    // later: the engine is woken for that, and then no more.
    for (int wakes = 0; engine_.tick() < engine_.now() + kLong; ++wakes) {
      ASSERT_LT(wakes, 5);
      engine_.go_to(engine_.tick());
    }
  }
  EXPECT_GE(engine_.tick(), engine_.now() + kLong) << "a cancelled job costs nothing";
  engine_.push(JobSpec("t", "ready"));
  EXPECT_GE(engine_.tick(), engine_.now() + kLong) << "a ready job waits for a consumer, not for a tick";
}

TEST_P(Rule01NeverEarly, ClockJumpsBack) {
  engine_.push(JobSpec("t", "first").due_at(at(100)));
  engine_.push(JobSpec("t", "second").due_at(at(200)));
  engine_.go_to(at(150));
  engine_.tick();
  engine_.go_to(at(-3'600'000));
  engine_.tick();
  EXPECT_EQ(engine_.state_of("t", "first"), JobState::kReady) << "what was due stays ready";
  EXPECT_EQ(engine_.state_of("t", "second"), JobState::kDelayed);
  engine_.push(JobSpec("t", "third").due_at(at(-3'500'000)));
  EXPECT_EQ(engine_.state_of("t", "third"), JobState::kDelayed) << "the new clock counts";
  engine_.go_to(at(-3'500'000));
  engine_.tick();
  EXPECT_THAT(ids_of(engine_.take("t", 9)), ElementsAre("third", "first"));
  engine_.go_to(at(199));
  EXPECT_THAT(engine_.take("t", 9), IsEmpty());
  engine_.go_to(at(200));
  EXPECT_THAT(ids_of(engine_.take("t", 9)), ElementsAre("second"));
}

TEST_P(Rule01NeverEarly, ClockJumpsForwardOverEverything) {
  constexpr int64_t kHour = 3'600'000;
  for (int64_t hour = 1; hour <= 720; ++hour) {
    engine_.push(JobSpec("t", std::to_string(hour)).due_at(at((721 - hour) * kHour)));
  }
  engine_.go_to(at(720 * kHour));
  engine_.tick();
  const std::vector<Taken> taken = engine_.take("t", 1'000);
  ASSERT_THAT(taken, SizeIs(720));
  for (size_t i = 0; i < taken.size(); ++i) EXPECT_EQ(taken[i].job.id, std::to_string(720 - i));
}

TEST_P(Rule01NeverEarly, LongDelaysAreNotClamped) {
  using std::chrono::days;
  const std::vector<Millis> delays{days{24}, days{25}, days{30}, days{49}, days{50}, days{366}, days{36'525}};
  for (const Millis delay : delays) {
    const std::string id = std::to_string(delay.count());
    EXPECT_EQ(engine_.push(JobSpec("t", id).due_at(kStart + delay)).due, kStart + delay);
  }
  for (const Millis delay : delays) {
    engine_.go_to(kStart + delay - Millis{1});
    engine_.tick();
    EXPECT_THAT(engine_.take("t"), IsEmpty());
    engine_.go_to(kStart + delay);
    engine_.tick();
    EXPECT_THAT(ids_of(engine_.take("t")), ElementsAre(std::to_string(delay.count())));
  }
}

// Timers that use powers of a number may fail at these powers, and at certain offsets of the clock.
TEST_P(Rule01NeverEarly, AroundEveryPowerOfTwo) {
  int phases = 0;
  for (const int64_t phase : {0, 1, 37, 255, 4'096, 65'535, 123'456'789}) {
    if (++phases > few(7)) break;
    engine_.go_to(at(phase));
    engine_.tick();
    std::set<Moment> dues;
    for (int power = 0; power <= 41; ++power) {
      for (const int64_t off : {-1, 0, 1})
        dues.insert(engine_.now() + Millis{(int64_t{1} << power) + off + 1});
    }
    for (const Moment due : dues) engine_.push(JobSpec("t", std::to_string(to_unix_ms(due))).due_at(due));
    for (const Moment due : dues) {
      engine_.go_to(due - Millis{1});
      engine_.tick();
      EXPECT_THAT(engine_.take("t", 99), IsEmpty());
      engine_.go_to(due);
      engine_.tick();
      EXPECT_THAT(ids_of(engine_.take("t", 99)), ElementsAre(std::to_string(to_unix_ms(due))));
    }
    EXPECT_EQ(engine_.purge("t", JobState::kReserved), dues.size());
    engine_.go_to(kStart);
  }
}

TEST_P(Rule01NeverEarly, RandomDelaysComeInTheirMillisecond) {
  const uint64_t seed = 20'231'114;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  std::multiset<Moment> dues;
  for (int i = 0; i < few(2'000); ++i) {
    const Moment due = at(1 + static_cast<int64_t>(random.below(uint64_t{1} << random.between(1, 34))));
    dues.insert(due);
    engine_.push(JobSpec("t", std::to_string(i)).due_at(due));
  }
  size_t came = 0;
  while (came < dues.size()) {
    const Moment next = engine_.tick();
    ASSERT_NE(next, kNever) << dues.size() - came << " jobs never came";
    engine_.go_to(next);
    engine_.tick();
    const std::vector<Taken> taken = engine_.take("t", 10'000);
    for (const Taken& each : taken) ASSERT_EQ(each.job.due, next) << "late, or early";
    ASSERT_EQ(taken.size(), taken.empty() ? 0 : dues.count(next));
    came += taken.size();
    for (const Taken& each : taken) engine_.ack(each, kKeepNone);
  }
}

TEST_P(Rule01NeverEarly, RetriesAndReschedulesAreNotEarlyEither) {
  engine_.retry(reserve("retried"), at(500));
  engine_.push(JobSpec("t", "moved").due_at(at(10)));
  engine_.reschedule("t", "moved", at(500));
  engine_.go_to(at(499));
  engine_.tick();
  EXPECT_THAT(engine_.take("t", 9), IsEmpty());
  engine_.go_to(at(500));
  engine_.tick();
  EXPECT_THAT(ids_of(engine_.take("t", 9)), ElementsAre("retried", "moved"));
}

}  // namespace
}  // namespace delayq::contract
