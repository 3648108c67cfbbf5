// Rule 4: a cancel reports what happened, with exactly one of five outcomes.
#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

class Rule04Cancel : public EngineContract {};
DELAYQ_OVER_ALL_ENGINES(Rule04Cancel);

TEST_P(Rule04Cancel, SaysWhereTheJobWas) {
  finish("done");
  bury("dead");
  reserve("reserved");
  engine_.push(JobSpec("t", "ready"));
  engine_.push(JobSpec("t", "delayed").due_at(at(100)));
  EXPECT_EQ(engine_.cancel_all({{"t", "delayed"},
                                {"t", "ready"},
                                {"t", "reserved"},
                                {"t", "done"},
                                {"t", "dead"},
                                {"t", "nobody"},
                                {"nowhere", "ready"}}),
            (std::vector{CancelOutcome::kCancelled, CancelOutcome::kCancelled, CancelOutcome::kReserved,
                         CancelOutcome::kDone, CancelOutcome::kDead, CancelOutcome::kUnknown,
                         CancelOutcome::kUnknown}));
  EXPECT_EQ(engine_.counts("t").by_state, (std::array<uint64_t, kJobStateCount>{0, 0, 1, 1, 1}));
}

TEST_P(Rule04Cancel, TwiceInOneBatch) {
  engine_.push(JobSpec("t", "a").due_at(at(100)));
  EXPECT_EQ(engine_.cancel_all({{"t", "a"}, {"t", "a"}}),
            (std::vector{CancelOutcome::kCancelled, CancelOutcome::kUnknown}));
  reserve("b");
  EXPECT_EQ(engine_.cancel_all({{"t", "b"}, {"t", "b"}}),
            (std::vector{CancelOutcome::kReserved, CancelOutcome::kReserved}));
}

TEST_P(Rule04Cancel, LeavesNoTrace) {
  engine_.push(JobSpec("t", "a").due_at(at(100)).in_group("g"));
  engine_.cancel("t", "a");
  EXPECT_EQ(engine_.get("t", "a"), std::nullopt);
  EXPECT_THAT(engine_.locate("a"), IsEmpty());
  EXPECT_EQ(engine_.cancel_group("g").cancelled, 0U);
  EXPECT_THAT(engine_.topic_names(), IsEmpty());
  EXPECT_EQ(engine_.usage().jobs, 0U);
  engine_.go_to(at(200));
  engine_.ready_news();
  engine_.tick();
  EXPECT_THAT(engine_.take("t"), IsEmpty());
  EXPECT_EQ(engine_.push(JobSpec("t", "a")).outcome, PushOutcome::kCreated);
}

TEST_P(Rule04Cancel, DoesNotJamThoseBehind) {
  for (int i = 0; i < 100; ++i) engine_.push(JobSpec("t", std::to_string(i)).due_at(at(100)));
  for (int i = 0; i < 99; ++i) engine_.cancel("t", std::to_string(i));
  engine_.go_to(at(100));
  engine_.tick();
  EXPECT_THAT(ids_of(engine_.take("t")), ElementsAre("99"));
}

TEST_P(Rule04Cancel, AReservedJobShowsThatItsCancelIsAskedFor) {
  reserve("a");
  EXPECT_FALSE(engine_.get("t", "a")->cancel_requested);
  engine_.cancel("t", "a");
  const std::optional<SeenJob> job = engine_.get("t", "a");
  EXPECT_EQ(job->state, JobState::kReserved);
  EXPECT_TRUE(job->cancel_requested);
}

TEST_P(Rule04Cancel, AReservedJobIsNotRetried) {
  const Taken taken = reserve("a");
  engine_.cancel("t", "a");
  EXPECT_EQ(engine_.retry(taken, at(0)), NackOutcome::kCancelled);
  EXPECT_EQ(engine_.get("t", "a"), std::nullopt);
  EXPECT_THAT(engine_.take("t"), IsEmpty());
}

TEST_P(Rule04Cancel, AReservedJobDoesNotDie) {
  const Taken taken = reserve("a");
  engine_.cancel("t", "a");
  EXPECT_EQ(engine_.bury(taken), NackOutcome::kCancelled);
  EXPECT_EQ(engine_.count("t", JobState::kDead), 0U);
  EXPECT_EQ(engine_.get("t", "a"), std::nullopt);
}

TEST_P(Rule04Cancel, AReservedJobWhoseLeaseRunsOutIsGone) {
  const Taken taken = reserve("a", Millis{10});
  engine_.cancel("t", "a");
  engine_.go_to(at(10));
  engine_.tick();
  EXPECT_THAT(engine_.expired_news(), SizeIs(1));
  NackRequest request;
  request.lease = taken.ref();
  request.retry_at = at(20);
  request.expired = true;
  EXPECT_EQ(engine_.nack_all({request}), std::vector{NackOutcome::kCancelled});
  EXPECT_EQ(engine_.get("t", "a"), std::nullopt);
}

TEST_P(Rule04Cancel, AReservedJobThatReachedNobodyIsGone) {
  const Taken taken = reserve("a");
  engine_.cancel("t", "a");
  NackRequest request;
  request.lease = taken.ref();
  request.retry_at = at(0);
  request.uncounted = true;
  EXPECT_EQ(engine_.nack_all({request}), std::vector{NackOutcome::kCancelled});
  EXPECT_EQ(engine_.get("t", "a"), std::nullopt);
}

TEST_P(Rule04Cancel, AReservedJobMayStillBeDone) {
  const Taken taken = reserve("a");
  engine_.cancel("t", "a");
  EXPECT_EQ(engine_.ack(taken), AckOutcome::kAcked);
  const std::optional<SeenJob> job = engine_.get("t", "a");
  EXPECT_EQ(job->state, JobState::kDone);
  EXPECT_FALSE(job->cancel_requested);
  EXPECT_EQ(engine_.cancel("t", "a"), CancelOutcome::kDone);
}

TEST_P(Rule04Cancel, TheNextJobOfThatNameIsNotCancelled) {
  const Taken taken = reserve("a");
  engine_.cancel("t", "a");
  EXPECT_EQ(engine_.push(JobSpec("t", "a")).outcome, PushOutcome::kConflict) << "it is still running";
  engine_.push(JobSpec("t", "a").or_replace());
  const Taken fresh = engine_.take_one("t");
  EXPECT_FALSE(fresh.job.cancel_requested);
  EXPECT_EQ(engine_.retry(fresh, at(5)), NackOutcome::kRetried);
}

TEST_P(Rule04Cancel, ThousandsInOneBatch) {
  std::vector<JobSpec> jobs;
  std::vector<JobRef> refs;
  for (int i = 0; i < 5'000; ++i) jobs.push_back(JobSpec("t", std::to_string(i)).due_at(at(i)));
  for (const JobSpec& job : jobs) refs.push_back({job.topic, job.id});
  engine_.push_all(jobs);
  EXPECT_THAT(engine_.cancel_all(refs), testing::Each(CancelOutcome::kCancelled));
  EXPECT_THAT(engine_.topic_names(), IsEmpty());
}

}  // namespace
}  // namespace delayq::contract
