// Rule 9: done and dead jobs are kept for a time and a count per topic; dead jobs can be listed, searched by
// error, redriven one by one or all, and purged.
#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

class Rule09Kept : public EngineContract {
 protected:
  void bury_many(int count) {
    for (int i = 0; i < count; ++i) engine_.push(JobSpec("t", std::to_string(i)).with_body("body"));
    std::vector<NackRequest> requests;
    const std::vector<Taken> taken = engine_.take("t", static_cast<uint32_t>(count));
    for (const Taken& each : taken) {
      NackRequest request;
      request.lease = each.ref();
      request.keep = kKeepAll;
      request.reason = "broken";
      requests.push_back(request);
    }
    EXPECT_THAT(engine_.nack_all(requests), testing::Each(NackOutcome::kDead));
    ASSERT_EQ(engine_.count("t", JobState::kDead), static_cast<uint64_t>(count));
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule09Kept);

TEST_P(Rule09Kept, UntilItsTime) {
  finish("done", {at(100), 10});
  bury("dead", "broken", {at(200), 10});
  EXPECT_LE(engine_.tick(), at(100));
  engine_.go_to(at(99));
  engine_.tick();
  EXPECT_EQ(engine_.state_of("t", "done"), JobState::kDone);
  engine_.go_to(at(100));
  EXPECT_LE(engine_.tick(), at(200));
  EXPECT_EQ(engine_.get("t", "done"), std::nullopt);
  engine_.go_to(at(199));
  engine_.tick();
  EXPECT_EQ(engine_.state_of("t", "dead"), JobState::kDead);
  engine_.go_to(at(200));
  engine_.tick();
  EXPECT_EQ(engine_.get("t", "dead"), std::nullopt);
  EXPECT_THAT(engine_.topic_names(), IsEmpty());
}

TEST_P(Rule09Kept, NotAtAll) {
  for (const Keep& keep : {Keep{}, Keep{at(1'000), 0}, Keep{Moment{}, 10}}) {
    finish("a", keep);
    bury("b", "broken", keep);
    EXPECT_THAT(engine_.topic_names(), IsEmpty());
  }
}

TEST_P(Rule09Kept, NotKeepingOneLeavesTheOthers) {
  finish("a");
  finish("b", kKeepNone);
  EXPECT_THAT(engine_.ids_in("t", JobState::kDone), ElementsAre("a"));
}

TEST_P(Rule09Kept, TheOldestGiveWayToTheCount) {
  for (const char* id : {"a", "b", "c", "d", "e"}) finish(id, {at(1'000), 3});
  EXPECT_THAT(engine_.ids_in("t", JobState::kDone), ElementsAre("c", "d", "e"));
  finish("f", {at(1'000), 1});
  EXPECT_THAT(engine_.ids_in("t", JobState::kDone), ElementsAre("f")) << "the count may shrink at run time";
}

TEST_P(Rule09Kept, OfABatchOnlyTheLastAsManyAsAreKept) {
  finish("before", {at(1'000), 4});
  std::vector<AckRequest> requests;
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g"}) engine_.push(JobSpec("t", id));
  for (const char* id : {"x", "y"}) engine_.push(JobSpec("other", id));
  const std::vector<Taken> taken = engine_.take("t", 10);
  const std::vector<Taken> others = engine_.take("other", 10);
  const auto add = [&](const Taken& each) { requests.push_back({each.ref(), {at(1'000), 4}, {}}); };
  for (const Taken& each : taken) add(each);
  // Leases that are named twice count once.
  for (size_t i = 3; i < taken.size(); ++i) add(taken[i]);
  for (const Taken& each : others) add(each);
  const std::vector<AckOutcome> outcomes = engine_.ack_all(requests);
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), AckOutcome::kAcked), 9);
  EXPECT_THAT(std::vector(outcomes.begin() + 7, outcomes.begin() + 11), testing::Each(AckOutcome::kStale));
  EXPECT_THAT(engine_.ids_in("t", JobState::kDone), ElementsAre("d", "e", "f", "g"));
  EXPECT_THAT(engine_.ids_in("other", JobState::kDone), ElementsAre("x", "y"));
  EXPECT_EQ(engine_.count("t", JobState::kReserved), 0U);
  EXPECT_EQ(engine_.get("t", "a"), std::nullopt);
}

TEST_P(Rule09Kept, TheOldestIsTheFirstThatEndedNotTheFirstPushed) {
  engine_.push_all({JobSpec("t", "a"), JobSpec("t", "b"), JobSpec("t", "c")});
  const std::vector<Taken> taken = engine_.take("t", 3);
  engine_.bury(taken[2], "x", {at(1'000), 2});
  engine_.bury(taken[0], "x", {at(1'000), 2});
  engine_.bury(taken[1], "x", {at(1'000), 2});
  EXPECT_THAT(engine_.ids_in("t", JobState::kDead), ElementsAre("a", "b"));
}

TEST_P(Rule09Kept, CountsArePerStateAndTopic) {
  const Keep one{at(1'000), 1};
  finish("done", one);
  bury("dead", "broken", one);
  engine_.push(JobSpec("u", "other"));
  engine_.ack(engine_.take_one("u"), one);
  EXPECT_THAT(engine_.ids_in("t", JobState::kDone), ElementsAre("done"));
  EXPECT_THAT(engine_.ids_in("t", JobState::kDead), ElementsAre("dead"));
  EXPECT_THAT(engine_.ids_in("u", JobState::kDone), ElementsAre("other"));
}

TEST_P(Rule09Kept, SearchByError) {
  for (int i = 0; i < 300; ++i)
    bury(std::to_string(i), i % 100 == 7 ? "connection refused by host" : "timeout");
  ListRequest request;
  request.topic = "t";
  request.state = JobState::kDead;
  request.outcome_contains = "refused";
  const std::vector<SeenJob> found = engine_.list_all(request);
  EXPECT_THAT(ids_of(found), ElementsAre("7", "107", "207"));
  EXPECT_EQ(found[0].outcome, "connection refused by host");
  request.id_prefix = "1";
  EXPECT_THAT(ids_of(engine_.list_all(request)), ElementsAre("107"));
}

TEST_P(Rule09Kept, TheLastErrorIsKept) {
  engine_.retry(reserve("a"), at(0), "first");
  engine_.retry(engine_.take_one("t"), at(0), "second");
  EXPECT_EQ(engine_.get("t", "a")->outcome, "second");
  engine_.bury(engine_.take_one("t"), "third");
  EXPECT_EQ(engine_.get("t", "a")->outcome, "third");
  EXPECT_EQ(engine_.get("t", "a")->attempts, 3U);
}

TEST_P(Rule09Kept, RedriveByIds) {
  for (const char* id : {"a", "b", "c"}) bury(id, "broken");
  finish("done");
  engine_.push(JobSpec("t", "delayed").due_at(at(100)));
  engine_.ready_news();
  engine_.go_to(at(10));
  EXPECT_EQ(engine_.redrive("t", {"c", "a", "done", "delayed", "nobody", "a"}), 2U);
  engine_.tick();
  EXPECT_TRUE(engine_.ready_news().contains("t"));
  const std::optional<SeenJob> job = engine_.get("t", "a");
  EXPECT_EQ(job->state, JobState::kReady);
  EXPECT_EQ(job->due, at(10));
  EXPECT_EQ(job->attempts, 0U);
  EXPECT_EQ(job->outcome, "broken") << "why it had died is still of interest";
  EXPECT_EQ(job->until, Moment{});
  EXPECT_THAT(engine_.ids_in("t", JobState::kDead), ElementsAre("b"));
  EXPECT_EQ(engine_.redrive("unknown topic", {"a"}), 0U);
}

TEST_P(Rule09Kept, RedriveTheOldest) {
  engine_.push_all({JobSpec("t", "a"), JobSpec("t", "b"), JobSpec("t", "c")});
  const std::vector<Taken> taken = engine_.take("t", 3);
  for (const size_t i : {2, 0, 1}) engine_.bury(taken[i], "broken");
  EXPECT_EQ(engine_.redrive_oldest("t", 2), 2U);
  EXPECT_THAT(engine_.ids_in("t", JobState::kDead), ElementsAre("b"));
  EXPECT_EQ(engine_.redrive_oldest("t", 2), 1U);
  EXPECT_EQ(engine_.redrive_oldest("t", 2), 0U);
  EXPECT_THAT(ids_of(engine_.take("t", 9)), ElementsAre("a", "b", "c")) << "equal times, so in push order";
}

TEST_P(Rule09Kept, RedriveManyInSteps) {
  bury_many(5'000);
  uint64_t redriven = 0;
  for (int calls = 0; calls < 10; ++calls) redriven += engine_.redrive_oldest("t", 700);
  EXPECT_EQ(redriven, 5'000U);
  EXPECT_EQ(engine_.count("t", JobState::kReady), 5'000U);
  EXPECT_THAT(engine_.take("t", 5'000), SizeIs(5'000));
}

TEST_P(Rule09Kept, ARedrivenJobIsNotForgotten) {
  bury("a", "broken", {at(100), 10});
  engine_.redrive("t", {"a"});
  engine_.go_to(at(150));
  engine_.tick();
  EXPECT_EQ(engine_.state_of("t", "a"), JobState::kReady);
}

TEST_P(Rule09Kept, PurgeTakesOneStateOnly) {
  finish("done");
  bury("dead");
  reserve("reserved");
  engine_.push(JobSpec("t", "ready"));
  engine_.push(JobSpec("t", "delayed").due_at(at(100)));
  for (size_t state = 0; state < kJobStateCount; ++state) {
    EXPECT_EQ(engine_.purge("t", static_cast<JobState>(state)), 1U);
    EXPECT_EQ(engine_.purge("t", static_cast<JobState>(state)), 0U);
    EXPECT_EQ(engine_.usage().jobs, kJobStateCount - 1 - state);
  }
  EXPECT_EQ(engine_.purge("unknown topic", JobState::kReady), 0U);
}

TEST_P(Rule09Kept, PurgeInSteps) {
  bury_many(5'000);
  EXPECT_EQ(engine_.purge("t", JobState::kDead, 2'000), 2'000U);
  EXPECT_EQ(engine_.count("t", JobState::kDead), 3'000U);
  EXPECT_EQ(engine_.purge("t", JobState::kDead, 2'000), 2'000U);
  EXPECT_EQ(engine_.purge("t", JobState::kDead, 2'000), 1'000U);
  EXPECT_THAT(engine_.topic_names(), IsEmpty());
}

TEST_P(Rule09Kept, PurgedIdsAreFree) {
  engine_.push(JobSpec("t", "a").due_at(at(100)).in_group("g"));
  engine_.purge("t", JobState::kDelayed);
  EXPECT_EQ(engine_.cancel("t", "a"), CancelOutcome::kUnknown);
  EXPECT_EQ(engine_.cancel_group("g").cancelled, 0U);
  EXPECT_EQ(engine_.push(JobSpec("t", "a")).outcome, PushOutcome::kCreated);
}

TEST_P(Rule09Kept, ThousandsForgottenAtOnce) {
  for (int i = 0; i < 3'000; ++i) engine_.push(JobSpec("t", std::to_string(i)));
  std::vector<AckRequest> requests;
  const std::vector<Taken> taken = engine_.take("t", 3'000);
  for (const Taken& each : taken) requests.push_back({each.ref(), {at(100), 2'500}, {}});
  engine_.ack_all(requests);
  EXPECT_EQ(engine_.count("t", JobState::kDone), 2'500U);
  engine_.go_to(at(100));
  engine_.tick();
  EXPECT_EQ(engine_.usage().jobs, 0U);
  EXPECT_THAT(engine_.topic_names(), IsEmpty());
}

}  // namespace
}  // namespace delayq::contract
