// Rule 3: a job is (topic, id). The id is unique among delayed, ready and reserved jobs. A push says what to
// do if the id is in use. Done and dead jobs are replaced.
#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

class Rule03Identity : public EngineContract {
 protected:
  /// Brings the job "a" into a live state.
  void bring_to(JobState state) {
    if (state == JobState::kReserved) {
      reserve("a");
    } else {
      engine_.push(JobSpec("t", "a").due_at(state == JobState::kReady ? engine_.now() : at(100)));
    }
    ASSERT_EQ(engine_.state_of("t", "a"), state);
  }

  static constexpr std::array kLive{JobState::kDelayed, JobState::kReady, JobState::kReserved};
};
DELAYQ_OVER_ALL_ENGINES(Rule03Identity);

TEST_P(Rule03Identity, RejectIsAConflictAndChangesNothing) {
  for (const JobState state : kLive) {
    SCOPED_TRACE(name_of(state));
    bring_to(state);
    const std::optional<SeenJob> before = engine_.get("t", "a");
    const PushAnswer answer = engine_.push(JobSpec("t", "a").due_at(at(55)).with_body("other").in_group("g"));
    EXPECT_EQ(answer.outcome, PushOutcome::kConflict);
    EXPECT_EQ(answer.state, state);
    EXPECT_EQ(answer.due, before->due);
    EXPECT_EQ(engine_.get("t", "a"), before);
    engine_.purge("t", state);
  }
}

TEST_P(Rule03Identity, KeepAnswersWithTheExistingOne) {
  for (const JobState state : kLive) {
    SCOPED_TRACE(name_of(state));
    bring_to(state);
    const std::optional<SeenJob> before = engine_.get("t", "a");
    const PushAnswer answer = engine_.push(JobSpec("t", "a").due_at(at(55)).with_body("other").or_keep());
    EXPECT_EQ(answer.outcome, PushOutcome::kKept);
    EXPECT_EQ(answer.state, state);
    EXPECT_EQ(answer.due, before->due);
    EXPECT_EQ(engine_.get("t", "a"), before);
    engine_.purge("t", state);
  }
}

TEST_P(Rule03Identity, ReplaceIsOneStepToAJobWithoutAPast) {
  for (const JobState state : kLive) {
    SCOPED_TRACE(name_of(state));
    bring_to(state);
    engine_.go_to(at(7));
    const PushAnswer answer = engine_.push(
        JobSpec("t", "a").due_at(at(55)).with_body("new").with_options("o").with_priority(9).or_replace());
    EXPECT_EQ(answer.outcome, PushOutcome::kReplaced);
    EXPECT_EQ(answer.state, JobState::kDelayed);
    EXPECT_EQ(answer.due, at(55));
    const std::optional<SeenJob> after = engine_.get("t", "a");
    ASSERT_TRUE(after);
    EXPECT_EQ(after->body, "new");
    EXPECT_EQ(after->options, "o");
    EXPECT_EQ(after->priority, 9U);
    EXPECT_EQ(after->attempts, 0U);
    EXPECT_EQ(after->pushed, at(7));
    EXPECT_EQ(after->outcome, "");
    EXPECT_EQ(engine_.counts("t").by_state, (std::array<uint64_t, kJobStateCount>{1, 0, 0, 0, 0}));
    engine_.purge("t", JobState::kDelayed);
    engine_.go_to(at(0));
  }
}

TEST_P(Rule03Identity, ReplaceDebounces) {
  for (int64_t ms = 0; ms <= 1'000; ms += 100) {
    engine_.go_to(at(ms));
    engine_.tick();
    EXPECT_THAT(engine_.take("t"), IsEmpty());
    engine_.push(JobSpec("t", "a").due_at(at(ms + 150)).with_body(std::to_string(ms)).or_replace());
  }
  engine_.go_to(at(1'150));
  const std::vector<Taken> taken = engine_.take("t", 9);
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].job.body, "1000");
}

TEST_P(Rule03Identity, ReplacingAReservedJobMakesItsLeaseStale) {
  const Taken old = reserve("a");
  engine_.push(JobSpec("t", "a").with_body("new").or_replace());
  EXPECT_EQ(engine_.ack(old), AckOutcome::kStale);
  EXPECT_EQ(engine_.retry(old, at(1)), NackOutcome::kStale);
  EXPECT_FALSE(engine_.extend(old, at(10'000)));
  const Taken fresh = engine_.take_one("t");
  EXPECT_EQ(fresh.job.body, "new");
  EXPECT_EQ(fresh.job.attempts, 1U);
  EXPECT_EQ(engine_.ack(old), AckOutcome::kStale);
  EXPECT_EQ(engine_.ack(fresh), AckOutcome::kAcked);
}

TEST_P(Rule03Identity, ReplaceLeavesTheOldGroup) {
  engine_.push(JobSpec("t", "a").due_at(at(50)).in_group("old"));
  engine_.push(JobSpec("t", "a").due_at(at(50)).in_group("new").or_replace());
  EXPECT_EQ(engine_.cancel_group("old").cancelled, 0U);
  EXPECT_EQ(engine_.cancel_group("new").cancelled, 1U);
}

TEST_P(Rule03Identity, AReplacedJobIsTheLatestPushed) {
  engine_.push_all({JobSpec("t", "a"), JobSpec("t", "b"), JobSpec("t", "a").or_replace()});
  EXPECT_THAT(ids_of(engine_.take("t", 9)), ElementsAre("b", "a"));
}

TEST_P(Rule03Identity, DoneAndDeadGiveWay) {
  finish("a");
  EXPECT_EQ(engine_.push(JobSpec("t", "a").due_at(at(60))).outcome, PushOutcome::kCreated);
  EXPECT_EQ(engine_.counts("t").by_state, (std::array<uint64_t, kJobStateCount>{1, 0, 0, 0, 0}));
  bury("b");
  EXPECT_EQ(engine_.push(JobSpec("t", "b").due_at(at(60)).or_keep()).outcome, PushOutcome::kCreated);
  EXPECT_EQ(engine_.counts("t").by_state, (std::array<uint64_t, kJobStateCount>{2, 0, 0, 0, 0}));
  EXPECT_THAT(engine_.ids_in("t", JobState::kDead), IsEmpty());
  const std::optional<SeenJob> fresh = engine_.get("t", "b");
  EXPECT_EQ(fresh->attempts, 0U);
  EXPECT_EQ(fresh->outcome, "");
}

TEST_P(Rule03Identity, SupersededJobsDoNotExpireTheirSuccessor) {
  finish("a", {at(100), 10});
  engine_.push(JobSpec("t", "a").due_at(at(500)));
  engine_.go_to(at(400));
  engine_.tick();
  EXPECT_EQ(engine_.state_of("t", "a"), JobState::kDelayed);
}

TEST_P(Rule03Identity, ASecondPushInTheSameBatchSeesTheFirst) {
  const std::vector<PushAnswer> answers = engine_.push_all({
      JobSpec("t", "a").due_at(at(10)).with_body("1"),
      JobSpec("t", "a").due_at(at(20)).with_body("2"),
      JobSpec("t", "a").due_at(at(30)).with_body("3").or_keep(),
      JobSpec("t", "b").due_at(at(40)).with_body("4"),
      JobSpec("t", "b").due_at(at(50)).with_body("5").or_replace(),
  });
  ASSERT_THAT(answers, SizeIs(5));
  EXPECT_EQ(answers[0].outcome, PushOutcome::kCreated);
  EXPECT_EQ(answers[1].outcome, PushOutcome::kConflict);
  EXPECT_EQ(answers[1].due, at(10));
  EXPECT_EQ(answers[2].outcome, PushOutcome::kKept);
  EXPECT_EQ(answers[2].due, at(10));
  EXPECT_EQ(answers[3].outcome, PushOutcome::kCreated);
  EXPECT_EQ(answers[4].outcome, PushOutcome::kReplaced);
  EXPECT_EQ(engine_.get("t", "a")->body, "1");
  EXPECT_EQ(engine_.get("t", "b")->body, "5");
  EXPECT_EQ(engine_.count("t", JobState::kDelayed), 2U);
}

TEST_P(Rule03Identity, ABatchSpansTopics) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 500; ++i) jobs.emplace_back("topic " + std::to_string(i % 50), std::to_string(i));
  for (const PushAnswer& answer : engine_.push_all(jobs)) EXPECT_EQ(answer.outcome, PushOutcome::kCreated);
  for (int i = 0; i < 50; ++i) EXPECT_THAT(engine_.take("topic " + std::to_string(i), 99), SizeIs(10));
}

TEST_P(Rule03Identity, AnEmptyBatchIsAnswered) {
  EXPECT_THAT(engine_.push_all({}), IsEmpty());
  EXPECT_THAT(engine_.ack_all({}), IsEmpty());
  EXPECT_THAT(engine_.nack_all({}), IsEmpty());
  EXPECT_THAT(engine_.cancel_all({}), IsEmpty());
  EXPECT_EQ(engine_.redrive("t", {}), 0U);
}

TEST_P(Rule03Identity, TheSameIdInManyTopicsIsManyJobs) {
  for (int i = 0; i < 40; ++i) {
    const std::string topic = "t" + std::to_string(i);
    EXPECT_EQ(engine_.push(JobSpec(topic, "same").with_body(topic)).outcome, PushOutcome::kCreated);
  }
  EXPECT_THAT(engine_.locate("same"), SizeIs(40));
  EXPECT_EQ(engine_.cancel("t7", "same"), CancelOutcome::kCancelled);
  EXPECT_THAT(engine_.locate("same"), SizeIs(39));
  EXPECT_EQ(engine_.get("t8", "same")->body, "t8");
  EXPECT_EQ(engine_.get("t7", "same"), std::nullopt);
}

TEST_P(Rule03Identity, IdsAreBytes) {
  const std::vector<std::string> ids{"a",
                                     "A",
                                     "aa",
                                     " a",
                                     "a ",
                                     std::string("a\0", 2),
                                     std::string("a\0b", 3),
                                     std::string("\0", 1),
                                     "a/b",
                                     "\xff\xfe\x80",
                                     "длинный 编号",
                                     std::string(255, 'a'),
                                     std::string(254, 'a') + "b",
                                     std::string(255, '\xff')};
  for (const std::string& id : ids) {
    EXPECT_EQ(engine_.push(JobSpec("t", id).due_at(at(10)).with_body("of " + id)).outcome,
              PushOutcome::kCreated);
  }
  EXPECT_EQ(engine_.count("t", JobState::kDelayed), ids.size());
  for (const std::string& id : ids) {
    const std::optional<SeenJob> found = engine_.get("t", id);
    ASSERT_TRUE(found) << support::brief(id);
    EXPECT_EQ(found->body, "of " + id);
    EXPECT_EQ(engine_.push(JobSpec("t", id)).outcome, PushOutcome::kConflict);
    EXPECT_THAT(engine_.locate(id), ElementsAre("t"));
  }
  EXPECT_THAT(engine_.ids_in("t", JobState::kDelayed), lists_delayed(ids));
  for (const std::string& id : ids) EXPECT_EQ(engine_.cancel("t", id), CancelOutcome::kCancelled);
}

TEST_P(Rule03Identity, TopicsAreBytes) {
  const std::vector<std::string> topics{"t", "T", "tt", "t:1", "заказы", std::string(200, 't')};
  for (const std::string& topic : topics) engine_.push(JobSpec(topic, "a").with_body(topic));
  for (const std::string& topic : topics) EXPECT_EQ(engine_.take_one(topic).job.body, topic);
}

TEST_P(Rule03Identity, LocateKnowsLiveJobsOnly) {
  EXPECT_THAT(engine_.locate("a"), IsEmpty());
  finish("a");
  engine_.push(JobSpec("u", "a").due_at(at(100)));
  engine_.push(JobSpec("v", "a"));
  EXPECT_THAT(engine_.locate("a"), ElementsAre("u", "v"));
  engine_.bury(engine_.take_one("v"));
  EXPECT_THAT(engine_.locate("a"), ElementsAre("u"));
  engine_.redrive("v", {"a"});
  EXPECT_THAT(engine_.locate("a"), ElementsAre("u", "v"));
}

TEST_P(Rule03Identity, LocateAmongAllKnowsKeptJobsToo) {
  finish("a");
  EXPECT_THAT(engine_.locate("a", Among::kAll), SizeIs(1));
  engine_.push(JobSpec("u", "a").due_at(at(100)));
  engine_.push(JobSpec("v", "a"));
  engine_.bury(engine_.take_one("v"));
  EXPECT_THAT(engine_.locate("a", Among::kAll), SizeIs(3)) << "done, delayed and dead";
  engine_.cancel("u", "a");
  EXPECT_THAT(engine_.locate("a", Among::kAll), SizeIs(2)) << "of a cancelled job nothing is left";
  EXPECT_THAT(engine_.locate("b", Among::kAll), IsEmpty());
}

TEST_P(Rule03Identity, UniqueAcrossTopicsRefusesAnIdThatWaitsElsewhere) {
  engine_.push(JobSpec("u", "a").due_at(at(100)));
  for (const JobSpec& spec :
       {JobSpec("t", "a"), JobSpec("t", "a").or_replace(), JobSpec("t", "a").or_keep()}) {
    const PushAnswer answer = engine_.push(JobSpec(spec).nowhere_else());
    EXPECT_EQ(answer.outcome, PushOutcome::kConflict);
    EXPECT_EQ(answer.state, JobState::kDelayed);
    EXPECT_EQ(answer.due, at(100));
  }
  EXPECT_EQ(engine_.get("t", "a"), std::nullopt);
}

TEST_P(Rule03Identity, UniqueAcrossTopicsLooksAtItsOwnTopicAsUsual) {
  engine_.push(JobSpec("t", "a").due_at(at(100)));
  EXPECT_EQ(engine_.push(JobSpec("t", "a").nowhere_else()).outcome, PushOutcome::kConflict);
  EXPECT_EQ(engine_.push(JobSpec("t", "a").nowhere_else().or_keep()).outcome, PushOutcome::kKept);
  EXPECT_EQ(engine_.push(JobSpec("t", "a").nowhere_else().or_replace()).outcome, PushOutcome::kReplaced);
}

TEST_P(Rule03Identity, UniqueAcrossTopicsIsNotBlockedByKeptJobs) {
  finish("done");
  bury("dead");
  EXPECT_EQ(engine_.push(JobSpec("u", "done").nowhere_else()).outcome, PushOutcome::kCreated);
  EXPECT_EQ(engine_.push(JobSpec("u", "dead").nowhere_else()).outcome, PushOutcome::kCreated);
}

TEST_P(Rule03Identity, UniqueAcrossTopicsHoldsInsideABatch) {
  const std::vector<PushAnswer> answers = engine_.push_all(
      {JobSpec("t", "a").nowhere_else(), JobSpec("u", "a").nowhere_else(), JobSpec("v", "a")});
  EXPECT_EQ(answers[0].outcome, PushOutcome::kCreated);
  EXPECT_EQ(answers[1].outcome, PushOutcome::kConflict);
  EXPECT_EQ(answers[2].outcome, PushOutcome::kCreated) << "who did not ask is not refused";
}

}  // namespace
}  // namespace delayq::contract
