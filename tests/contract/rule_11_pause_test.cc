// Rule 11: pause stops the hand-over of a topic, but not pushes; rate and concurrency limit the hand-over;
// all of these can be changed while jobs wait.
#include "tests/contract/queue_contract.h"

namespace delayq::contract {
namespace {

class Rule11Pause : public QueueContract {
 protected:
  void push_ready(int count) {
    for (int i = 0; i < count; ++i) queue_->push({.topic = "t"});
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule11Pause);

TEST_P(Rule11Pause, StopsHandOverNotPushing) {
  queue_->pause("t");
  queue_->push({.topic = "t", .id = "a"});
  queue_->push({.topic = "t", .id = "b", .delay = Millis{100}});
  queue_->run_to(at(200));
  EXPECT_THAT(queue_->pop("t", 5), IsEmpty());
  EXPECT_EQ(queue_->count("t", JobState::kReady), 2U) << "they fall due all the same";
  queue_->resume("t");
  EXPECT_THAT(ids_of(queue_->pop("t", 5)), ElementsAre("a", "b"));
}

TEST_P(Rule11Pause, WhoWaitsIsServedAtTheResume) {
  queue_->pause("t");
  const PendingPop waiting = queue_->begin_pop("t", seconds{30});
  queue_->push({.topic = "t", .id = "a"});
  queue_->run_to(at(100));
  EXPECT_FALSE(waiting.answered());
  queue_->resume("t");
  queue_->run();
  EXPECT_THAT(ids_of(waiting.jobs()), ElementsAre("a"));
}

TEST_P(Rule11Pause, OtherTopicsGoOn) {
  queue_->pause("t");
  queue_->push({.topic = "t", .id = "a"});
  queue_->push({.topic = "u", .id = "b"});
  const std::vector<std::string_view> topics{"t", "u"};
  EXPECT_THAT(ids_of(queue_->pop({.topics = topics, .count = 5})), ElementsAre("b"));
}

TEST_P(Rule11Pause, RunningJobsMayBeFinished) {
  const Taken taken = reserve("a");
  queue_->pause("t");
  EXPECT_TRUE(queue_->extend({.lease = taken.lease}).ok());
  EXPECT_TRUE(queue_->ack(taken.lease).ok());
}

TEST_P(Rule11Pause, OutlivesARestart) {
  queue_->pause("t");
  queue_->push({.topic = "t", .id = "a"});
  restart();
  EXPECT_THAT(queue_->pop("t"), IsEmpty());
  queue_->resume("t");
  restart();
  EXPECT_THAT(ids_of(queue_->pop("t")), ElementsAre("a"));
}

TEST_P(Rule11Pause, ARateBoundsHandOver) {
  queue_->set("t", {.rate = Rate{10, seconds{1}}});
  push_ready(100);
  uint64_t handed_out = 0;
  for (int64_t ms = 0; ms <= 3'000; ms += 50) {
    queue_->run_to(at(ms));
    handed_out += queue_->pop("t", 50).size();
    ASSERT_LE(handed_out, 10 + static_cast<uint64_t>(ms) / 100) << "after " << ms << " ms";
  }
  EXPECT_GE(handed_out, 30U) << "the rate is used";
}

TEST_P(Rule11Pause, WhoWaitsIsServedWhenTheRateAllows) {
  queue_->set("t", {.rate = Rate{1, seconds{1}}});
  push_ready(2);
  EXPECT_THAT(queue_->pop("t", 5), SizeIs(1));
  const PendingPop waiting = queue_->begin_pop("t", seconds{30});
  Moment next = queue_->run();
  while (next < at(1'000)) {
    next = queue_->run_to(next);
    ASSERT_FALSE(waiting.answered());
  }
  queue_->run_to(at(1'000));
  EXPECT_THAT(waiting.jobs(), SizeIs(1));
}

TEST_P(Rule11Pause, ARateCanBeChangedWhileSomebodyWaits) {
  queue_->set("t", {.rate = Rate{1, hours{1}}});
  push_ready(2);
  EXPECT_THAT(queue_->pop("t", 5), SizeIs(1));
  const PendingPop waiting = queue_->begin_pop("t", seconds{30});
  queue_->run();
  EXPECT_FALSE(waiting.answered());
  queue_->set("t", {.rate = Rate{}});
  queue_->run();
  EXPECT_THAT(waiting.jobs(), SizeIs(1));
}

TEST_P(Rule11Pause, ConcurrencyBoundsWhatIsOut) {
  queue_->set("t", {.concurrency = 3});
  push_ready(10);
  const std::vector<Taken> first = queue_->pop("t", 10);
  EXPECT_THAT(first, SizeIs(3));
  EXPECT_THAT(queue_->pop("t", 10), IsEmpty());
  EXPECT_TRUE(queue_->ack(first[0].lease).ok());
  EXPECT_THAT(queue_->pop("t", 10), SizeIs(1));
  queue_->set("t", {.concurrency = 5});
  EXPECT_THAT(queue_->pop("t", 10), SizeIs(2)) << "changed at run time";
}

TEST_P(Rule11Pause, WhoWaitsIsServedWhenThereIsRoom) {
  queue_->set("t", {.concurrency = 1});
  push_ready(3);
  const Taken running = queue_->pop_one("t");
  const PendingPop waiting = queue_->begin_pop("t", minutes{10});
  queue_->run();
  EXPECT_FALSE(waiting.answered());
  EXPECT_TRUE(queue_->ack(running.lease).ok());
  queue_->run();
  EXPECT_THAT(waiting.jobs(), SizeIs(1));
  const PendingPop next = queue_->begin_pop("t", minutes{10});
  queue_->run_to(at(60'000));
  EXPECT_THAT(next.jobs(), SizeIs(1)) << "a lease that ran out makes room too";
}

}  // namespace
}  // namespace delayq::contract
