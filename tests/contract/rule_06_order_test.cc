// Rule 6: within a topic ready jobs leave by priority (0 first), then due time, then push order.
#include <algorithm>
#include <limits>
#include <tuple>

#include "core/random.h"
#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

class Rule06Order : public EngineContract {};
DELAYQ_OVER_ALL_ENGINES(Rule06Order);

TEST_P(Rule06Order, PriorityThenDueThenPush) {
  engine_.push_all({
      JobSpec("t", "last").due_at(at(-5)).with_priority(std::numeric_limits<uint32_t>::max()),
      JobSpec("t", "usual late").due_at(at(-10)),
      JobSpec("t", "usual early").due_at(at(-20)),
      JobSpec("t", "usual late too").due_at(at(-10)),
      JobSpec("t", "first").due_at(at(0)).with_priority(0),
      JobSpec("t", "second").due_at(at(-99)).with_priority(1),
  });
  EXPECT_THAT(ids_of(engine_.take("t", 99)),
              ElementsAre("first", "second", "usual early", "usual late", "usual late too", "last"));
}

TEST_P(Rule06Order, OneByOneIsTheSameAsAllAtOnce) {
  for (const char* topic : {"t", "u"}) {
    for (uint32_t i = 0; i < 50; ++i)
      engine_.push(JobSpec(topic, std::to_string(i)).with_priority((i * 7) % 10));
  }
  std::vector<std::string> singly;
  for (int i = 0; i < 50; ++i) singly.push_back(engine_.take_one("t").job.id);
  EXPECT_EQ(singly, ids_of(engine_.take("u", 50)));
}

TEST_P(Rule06Order, JobsThatFellDueKeepIt) {
  engine_.push_all({
      JobSpec("t", "d").due_at(at(40)).with_priority(7),
      JobSpec("t", "b").due_at(at(30)),
      JobSpec("t", "c").due_at(at(30)),
      JobSpec("t", "a").due_at(at(20)),
  });
  engine_.go_to(at(1'000));
  engine_.tick();
  EXPECT_THAT(ids_of(engine_.take("t", 99)), ElementsAre("d", "a", "b", "c"));
}

TEST_P(Rule06Order, AnUrgentJobOvertakesThoseThatWait) {
  for (int i = 0; i < 10; ++i) engine_.push(JobSpec("t", std::to_string(i)));
  engine_.take("t", 3);
  engine_.push(JobSpec("t", "urgent").with_priority(3));
  EXPECT_THAT(ids_of(engine_.take("t", 2)), ElementsAre("urgent", "3"));
}

TEST_P(Rule06Order, RandomMixesSort) {
  const uint64_t seed = 66;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  std::vector<std::tuple<uint32_t, Moment, int>> expected;
  for (int i = 0; i < few(2'000); ++i) {
    const auto priority = static_cast<uint32_t>(random.chance(1, 2) ? kDefaultPriority : random.below(5));
    const Moment due = at(static_cast<int64_t>(random.below(100)));
    expected.emplace_back(priority, due, i);
    engine_.push(JobSpec("t", std::to_string(i)).with_priority(priority).due_at(due));
  }
  std::sort(expected.begin(), expected.end());
  engine_.go_to(at(100));
  const std::vector<Taken> taken = engine_.take("t", 10'000);
  ASSERT_EQ(taken.size(), expected.size());
  for (size_t i = 0; i < taken.size(); ++i) {
    ASSERT_EQ(taken[i].job.id, std::to_string(std::get<int>(expected[i]))) << "at place " << i;
  }
}

TEST_P(Rule06Order, ARetriedJobGoesWhereItsNewTimeSays) {
  engine_.push_all({JobSpec("t", "a").due_at(at(-30)), JobSpec("t", "b").due_at(at(-20)),
                    JobSpec("t", "c").due_at(at(-10))});
  const std::vector<Taken> taken = engine_.take("t", 1);
  engine_.retry(taken[0], at(-15));
  EXPECT_THAT(ids_of(engine_.take("t", 9)), ElementsAre("b", "a", "c"));
}

TEST_P(Rule06Order, ARetriedJobKeepsItsPushOrder) {
  engine_.push_all({JobSpec("t", "a"), JobSpec("t", "b"), JobSpec("t", "c")});
  const std::vector<Taken> taken = engine_.take("t", 2);
  engine_.retry(taken[1], at(0));
  engine_.retry(taken[0], at(0));
  EXPECT_THAT(ids_of(engine_.take("t", 9)), ElementsAre("a", "b", "c"));
}

TEST_P(Rule06Order, RedrivenJobsAreDueNow) {
  bury("dead");
  engine_.push(JobSpec("t", "old").due_at(at(-5)));
  engine_.go_to(at(10));
  engine_.redrive("t", {"dead"});
  engine_.push(JobSpec("t", "new").due_at(at(10)));
  EXPECT_THAT(ids_of(engine_.take("t", 9)), ElementsAre("old", "dead", "new"));
}

TEST_P(Rule06Order, TopicsDoNotMix) {
  engine_.push(JobSpec("t", "a").with_priority(9));
  engine_.push(JobSpec("u", "b").with_priority(0));
  EXPECT_THAT(ids_of(engine_.take("t", 9)), ElementsAre("a"));
  EXPECT_THAT(ids_of(engine_.take("u", 9)), ElementsAre("b"));
}

TEST_P(Rule06Order, OldestReadyIsTheDueTimeOfTheFirstInLine) {
  EXPECT_EQ(engine_.counts("t").oldest_ready, std::nullopt);
  engine_.push(JobSpec("t", "delayed").due_at(at(100)));
  EXPECT_EQ(engine_.counts("t").oldest_ready, std::nullopt);
  engine_.push(JobSpec("t", "a").due_at(at(-50)));
  EXPECT_EQ(engine_.counts("t").oldest_ready, at(-50));
  engine_.push(JobSpec("t", "b").due_at(at(-70)));
  EXPECT_EQ(engine_.counts("t").oldest_ready, at(-70));
  engine_.push(JobSpec("t", "urgent").due_at(at(-10)).with_priority(1));
  EXPECT_EQ(engine_.counts("t").oldest_ready, at(-10));
  engine_.take("t", 2);
  EXPECT_EQ(engine_.counts("t").oldest_ready, at(-50));
}

}  // namespace
}  // namespace delayq::contract
