// Rule 5: reschedule moves a delayed, ready or dead job to a new time atomically; the job keeps its id.
#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

class Rule05Reschedule : public EngineContract {};
DELAYQ_OVER_ALL_ENGINES(Rule05Reschedule);

TEST_P(Rule05Reschedule, LaterAndEarlier) {
  engine_.push(JobSpec("t", "a").due_at(at(100)));
  EXPECT_EQ(engine_.reschedule("t", "a", at(500)), RescheduleOutcome::kMoved);
  engine_.go_to(at(100));
  engine_.tick();
  EXPECT_THAT(engine_.take("t"), IsEmpty()) << "the old time is forgotten";
  EXPECT_EQ(engine_.reschedule("t", "a", at(200)), RescheduleOutcome::kMoved);
  EXPECT_LE(engine_.tick(), at(200));
  engine_.go_to(at(199));
  EXPECT_THAT(engine_.take("t"), IsEmpty());
  engine_.go_to(at(200));
  EXPECT_THAT(ids_of(engine_.take("t")), ElementsAre("a"));
}

TEST_P(Rule05Reschedule, RunNow) {
  engine_.push(JobSpec("t", "a").due_at(at(100)));
  engine_.ready_news();
  engine_.reschedule("t", "a", at(0));
  engine_.tick();
  EXPECT_TRUE(engine_.ready_news().contains("t")) << "who waits for the topic is woken";
  EXPECT_EQ(engine_.take_one("t").job.due, at(0));
}

TEST_P(Rule05Reschedule, EverythingElseStays) {
  engine_.push(
      JobSpec("t", "a").due_at(at(100)).with_body("b").with_options("o").in_group("g").with_priority(5));
  SeenJob expected = engine_.get("t", "a").value();
  engine_.go_to(at(30));
  engine_.reschedule("t", "a", at(200));
  expected.due = at(200);
  EXPECT_EQ(engine_.get("t", "a"), expected);
  EXPECT_EQ(engine_.cancel_group("g").cancelled, 1U);
}

TEST_P(Rule05Reschedule, AReadyJobWaitsAgain) {
  engine_.push(JobSpec("t", "a"));
  EXPECT_EQ(engine_.reschedule("t", "a", at(100)), RescheduleOutcome::kMoved);
  EXPECT_EQ(engine_.state_of("t", "a"), JobState::kDelayed);
  EXPECT_THAT(engine_.take("t"), IsEmpty());
  engine_.go_to(at(100));
  EXPECT_THAT(ids_of(engine_.take("t")), ElementsAre("a"));
}

TEST_P(Rule05Reschedule, AReadyJobChangesItsPlaceInLine) {
  engine_.push_all({JobSpec("t", "a").due_at(at(-30)), JobSpec("t", "b").due_at(at(-20))});
  EXPECT_EQ(engine_.reschedule("t", "a", at(-10)), RescheduleOutcome::kMoved);
  EXPECT_EQ(engine_.state_of("t", "a"), JobState::kReady);
  EXPECT_THAT(ids_of(engine_.take("t", 9)), ElementsAre("b", "a"));
}

TEST_P(Rule05Reschedule, ADeadJobGetsAnotherLife) {
  engine_.retry(reserve("a"), at(0));
  engine_.bury(engine_.take_one("t"), "broken");
  EXPECT_EQ(engine_.reschedule("t", "a", at(100)), RescheduleOutcome::kMoved);
  const std::optional<SeenJob> job = engine_.get("t", "a");
  EXPECT_EQ(job->state, JobState::kDelayed);
  EXPECT_EQ(job->attempts, 0U);
  EXPECT_EQ(job->outcome, "broken");
  EXPECT_EQ(job->until, Moment{});
  EXPECT_EQ(engine_.count("t", JobState::kDead), 0U);
  EXPECT_THAT(engine_.locate("a"), ElementsAre("t"));
  engine_.go_to(at(100));
  EXPECT_EQ(engine_.take_one("t").job.attempts, 1U);
}

TEST_P(Rule05Reschedule, ADeadJobIsNotForgottenAfterItsMove) {
  bury("a", "broken", {at(50), 10});
  engine_.reschedule("t", "a", at(100));
  engine_.go_to(at(60));
  engine_.tick();
  EXPECT_EQ(engine_.state_of("t", "a"), JobState::kDelayed);
}

TEST_P(Rule05Reschedule, SaysWhyNot) {
  finish("done");
  reserve("reserved");
  EXPECT_EQ(engine_.reschedule("t", "done", at(100)), RescheduleOutcome::kDone);
  EXPECT_EQ(engine_.reschedule("t", "reserved", at(100)), RescheduleOutcome::kReserved);
  EXPECT_EQ(engine_.reschedule("t", "nobody", at(100)), RescheduleOutcome::kUnknown);
  EXPECT_EQ(engine_.reschedule("nowhere", "done", at(100)), RescheduleOutcome::kUnknown);
  EXPECT_EQ(engine_.counts("t").by_state, (std::array<uint64_t, kJobStateCount>{0, 0, 1, 1, 0}));
}

TEST_P(Rule05Reschedule, TheSameJobTwiceInABatch) {
  engine_.push(JobSpec("t", "a").due_at(at(100)));
  EXPECT_EQ(engine_.reschedule_all({{{"t", "a"}, at(300)}, {{"t", "b"}, at(1)}, {{"t", "a"}, at(200)}}),
            (std::vector{RescheduleOutcome::kMoved, RescheduleOutcome::kUnknown, RescheduleOutcome::kMoved}));
  EXPECT_EQ(engine_.get("t", "a")->due, at(200));
}

TEST_P(Rule05Reschedule, PushOrderDecidesStillAmongEqualTimes) {
  engine_.push_all(
      {JobSpec("t", "a").due_at(at(10)), JobSpec("t", "b").due_at(at(20)), JobSpec("t", "c").due_at(at(30))});
  for (const char* id : {"c", "b", "a"}) engine_.reschedule("t", id, at(50));
  engine_.go_to(at(50));
  engine_.tick();
  EXPECT_THAT(ids_of(engine_.take("t", 9)), ElementsAre("a", "b", "c"));
}

TEST_P(Rule05Reschedule, BackAndForthAcrossAllDistances) {
  engine_.push(JobSpec("t", "a").due_at(at(1)));
  for (int64_t distance = 1; distance < 4'000'000'000'000; distance *= 3) {
    EXPECT_EQ(engine_.reschedule("t", "a", at(distance)), RescheduleOutcome::kMoved);
    EXPECT_EQ(engine_.get("t", "a")->due, at(distance));
    engine_.reschedule("t", "a", at(7));
  }
  engine_.go_to(at(6));
  engine_.tick();
  EXPECT_THAT(engine_.take("t"), IsEmpty());
  engine_.go_to(at(7));
  engine_.tick();
  EXPECT_THAT(ids_of(engine_.take("t", 9)), ElementsAre("a"));
}

}  // namespace
}  // namespace delayq::contract
