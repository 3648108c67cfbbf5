// Rule 7, the queue's part: consumers wait and are woken by a job; one that has
// disconnected never gets a job.
#include "tests/contract/queue_contract.h"

namespace delayq::contract {
namespace {

class Rule07Consumers : public QueueContract {};
DELAYQ_OVER_ALL_ENGINES(Rule07Consumers);

TEST_P(Rule07Consumers, ALeaseIsSixtySecondsUnlessChosen) {
  EXPECT_EQ(reserve("default").job.until, at(60'000));
  queue_->push({.topic = "t", .id = "own", .options = {.lease = seconds{7}}});
  EXPECT_EQ(queue_->pop_one("t").job.until, at(7'000));
  queue_->set("t", {.lease = seconds{20}});
  EXPECT_EQ(reserve("topic").job.until, at(20'000));
  queue_->push({.topic = "t", .id = "caller"});
  const std::string_view topic = "t";
  EXPECT_EQ(queue_->pop({.topics = {&topic, 1}, .lease = seconds{3}}).at(0).job.until, at(3'000));
}

TEST_P(Rule07Consumers, TheLeaseHoldsAsLongAsItWasAnnounced) {
  queue_->push({.topic = "t", .id = "own", .options = {.lease = seconds{7}}});
  const Taken taken = queue_->pop_one("t");
  queue_->run_to(at(6'999));
  EXPECT_EQ(queue_->state_of("t", "own"), JobState::kReserved);
  EXPECT_TRUE(queue_->ack(taken.lease).ok());
}

TEST_P(Rule07Consumers, AWaiterIsWokenByThePush) {
  const PendingPop waiting = queue_->begin_pop("t", seconds{30});
  queue_->run();
  ASSERT_FALSE(waiting.answered());
  queue_->push({.topic = "t", .id = "a", .body = "b"});
  queue_->run();
  ASSERT_TRUE(waiting.answered());
  EXPECT_THAT(ids_of(waiting.jobs()), ElementsAre("a"));
  EXPECT_EQ(waiting.jobs()[0].job.body, "b");
}

TEST_P(Rule07Consumers, AWaiterIsWokenWhenAJobFallsDueAndNotBefore) {
  const PendingPop waiting = queue_->begin_pop("t", seconds{30});
  queue_->push({.topic = "t", .id = "a", .delay = Millis{777}});
  Moment next = queue_->run();
  while (next < at(777)) next = queue_->run_to(next);
  EXPECT_FALSE(waiting.answered());
  queue_->run_to(at(777));
  EXPECT_THAT(ids_of(waiting.jobs()), ElementsAre("a"));
}

TEST_P(Rule07Consumers, AWaiterGoesHomeEmptyAtItsTime) {
  const PendingPop waiting = queue_->begin_pop("t", Millis{500});
  queue_->run_to(at(499));
  EXPECT_FALSE(waiting.answered());
  queue_->run_to(at(500));
  EXPECT_THAT(waiting.jobs(), IsEmpty());
}

TEST_P(Rule07Consumers, TwoWaitersOneJob) {
  const PendingPop first = queue_->begin_pop("t", seconds{30});
  queue_->run();
  const PendingPop second = queue_->begin_pop("t", seconds{30});
  queue_->run();
  queue_->push({.topic = "t", .id = "a"});
  queue_->run();
  EXPECT_THAT(ids_of(first.jobs()), ElementsAre("a"));
  EXPECT_FALSE(second.answered());
  queue_->push({.topic = "t", .id = "b"});
  queue_->run();
  EXPECT_THAT(ids_of(second.jobs()), ElementsAre("b"));
}

TEST_P(Rule07Consumers, OneWaiterOfManyTopics) {
  const std::vector<std::string_view> topics{"x", "y", "z"};
  const PendingPop waiting = queue_->begin_pop({.topics = topics, .wait = seconds{30}});
  queue_->run();
  queue_->push({.topic = "y", .id = "a"});
  queue_->run();
  EXPECT_THAT(ids_of(waiting.jobs()), ElementsAre("a"));
  queue_->push({.topic = "z", .id = "c"});
  queue_->push({.topic = "x", .id = "b"});
  EXPECT_THAT(ids_of(queue_->pop({.topics = topics, .count = 5})), ElementsAre("b", "c"))
      << "the first listed wins";
}

TEST_P(Rule07Consumers, AWaiterThatIsGoneIsNeverHandedAJob) {
  const PendingPop gone = queue_->begin_pop("t", seconds{30});
  queue_->run();
  const PendingPop here = queue_->begin_pop("t", seconds{30});
  queue_->run();
  EXPECT_TRUE(queue_->queue().drop_waiter(queue_->now(), gone.waiter()));
  queue_->push({.topic = "t", .id = "a"});
  queue_->run();
  EXPECT_FALSE(gone.answered());
  EXPECT_THAT(ids_of(here.jobs()), ElementsAre("a"));
}

TEST_P(Rule07Consumers, AJobOnItsWayToOneThatIsGoneIsNotCounted) {
  queue_->push({.topic = "t", .id = "a"});
  const PendingPop gone = queue_->begin_pop("t", seconds{30});
  EXPECT_TRUE(queue_->queue().drop_waiter(queue_->now(), gone.waiter()))
      << "before the engine's answer was seen";
  queue_->run();
  EXPECT_FALSE(gone.answered());
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kReady);
  EXPECT_EQ(queue_->pop_one("t").job.attempts, 1U);
}

TEST_P(Rule07Consumers, ALateAckIsStaleAndTheFailureCountsOnce) {
  queue_->set("t", {.attempts = 5, .backoff = StepBackoff{{seconds{10}}}});
  const Taken late = reserve("a");
  queue_->run_to(at(60'000));
  EXPECT_EQ(queue_->ack(late.lease).error().code, ErrorCode::kStaleLease);
  const std::optional<SeenJob> job = queue_->get("t", "a");
  EXPECT_EQ(job->state, JobState::kDelayed);
  EXPECT_EQ(job->due, at(70'000));
  EXPECT_EQ(job->attempts, 1U);
  EXPECT_NE(job->outcome, "") << "it says why";
  queue_->run_to(at(70'000));
  const Taken again = queue_->pop_one("t");
  EXPECT_EQ(again.job.attempts, 2U);
  EXPECT_EQ(queue_->ack(late.lease).error().code, ErrorCode::kStaleLease);
  EXPECT_TRUE(queue_->ack(again.lease).ok());
}

TEST_P(Rule07Consumers, ExtendKeepsAJobAndALateOneDoesNot) {
  const Taken taken = reserve("a");
  queue_->run_to(at(50'000));
  EXPECT_EQ(queue_->extend({.lease = taken.lease, .duration = seconds{30}}).value(), at(80'000));
  queue_->run_to(at(79'999));
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kReserved);
  queue_->run_to(at(80'000));
  EXPECT_EQ(queue_->extend({.lease = taken.lease}).error().code, ErrorCode::kStaleLease);
}

TEST_P(Rule07Consumers, AutoAckIsDoneAtOnce) {
  queue_->push({.topic = "t", .id = "a", .body = "b"});
  const std::string_view topic = "t";
  const std::vector<Taken> taken = queue_->pop({.topics = {&topic, 1}, .auto_ack = true});
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].lease, "");
  EXPECT_EQ(taken[0].job.body, "b");
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kDone);
  queue_->run_to(at(120'000));
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kDone) << "there is no lease that could run out";
}

TEST_P(Rule07Consumers, NonsenseLeasesAreToldApartFromNothing) {
  for (const char* lease : {"", "/", "t", "t/", "t/nonsense", "/nonsense", "unknown/m1", "t/u/v"}) {
    EXPECT_FALSE(queue_->ack(lease).ok()) << lease;
    EXPECT_FALSE(queue_->nack({.lease = lease}).ok()) << lease;
    EXPECT_FALSE(queue_->extend({.lease = lease}).ok()) << lease;
  }
}

}  // namespace
}  // namespace delayq::contract
