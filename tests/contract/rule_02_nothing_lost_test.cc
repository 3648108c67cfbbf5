// Rule 2: a job leaves only by ack, cancel, or becoming dead (and then it is kept); its data
// comes back unchanged.
#include <algorithm>

#include "core/random.h"
#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

std::string all_bytes() {
  std::string bytes;
  for (int value = 0; value < 256; ++value) bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string random_bytes(size_t size, uint64_t seed) {
  Random random(seed);
  std::string bytes(size, '\0');
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<char>(random.next()); });
  return bytes;
}

class Rule02NothingLost : public EngineContract {};
DELAYQ_OVER_ALL_ENGINES(Rule02NothingLost);

TEST_P(Rule02NothingLost, EveryFieldComesBack) {
  const JobSpec spec = JobSpec("t", "a")
                           .due_at(at(77))
                           .with_body("body")
                           .with_options("options")
                           .in_group("group")
                           .with_priority(3);
  engine_.go_to(at(5));
  engine_.push(spec);
  SeenJob expected;
  expected.topic = "t";
  expected.id = "a";
  expected.group = "group";
  expected.body = "body";
  expected.options = "options";
  expected.state = JobState::kDelayed;
  expected.priority = 3;
  expected.due = at(77);
  expected.pushed = at(5);
  EXPECT_EQ(engine_.get("t", "a"), expected);

  engine_.go_to(at(80));
  expected.state = JobState::kReserved;
  expected.attempts = 1;
  expected.until = at(1'080);
  EXPECT_EQ(engine_.take_one("t", Millis{1'000}).job, expected);
  EXPECT_EQ(engine_.get("t", "a"), expected);
}

TEST_P(Rule02NothingLost, FieldsOfEveryState) {
  engine_.retry(reserve("delayed"), at(100), "no route");
  SeenJob job = engine_.get("t", "delayed").value();
  EXPECT_EQ(job.state, JobState::kDelayed);
  EXPECT_EQ(job.due, at(100));
  EXPECT_EQ(job.until, Moment{});
  EXPECT_EQ(job.attempts, 1U);
  EXPECT_EQ(job.outcome, "no route");

  engine_.ack(reserve("done"), {at(900), 5}, "fine");
  job = engine_.get("t", "done").value();
  EXPECT_EQ(job.state, JobState::kDone);
  EXPECT_EQ(job.until, at(900));
  EXPECT_EQ(job.outcome, "fine");

  engine_.bury(reserve("dead"), "broken", {at(950), 5});
  job = engine_.get("t", "dead").value();
  EXPECT_EQ(job.state, JobState::kDead);
  EXPECT_EQ(job.until, at(950));
  EXPECT_EQ(job.outcome, "broken");
  EXPECT_EQ(job.attempts, 1U);
}

TEST_P(Rule02NothingLost, BodiesOfAnySizeAndBytes) {
  const std::vector<std::string> bodies{"",
                                        std::string(1, '\0'),
                                        all_bytes(),
                                        random_bytes(4'095, 1),
                                        random_bytes(65'537, 2),
                                        random_bytes(size_t{1} << 20, 3)};
  for (size_t i = 0; i < bodies.size(); ++i)
    engine_.push(JobSpec("t", std::to_string(i)).with_body(bodies[i]));
  for (size_t i = 0; i < bodies.size(); ++i) {
    const std::optional<SeenJob> found = engine_.get("t", std::to_string(i));
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->body == bodies[i]) << "get, body of " << bodies[i].size() << " bytes";
  }
  const std::vector<Taken> taken = engine_.take("t", 99);
  ASSERT_EQ(taken.size(), bodies.size());
  for (size_t i = 0; i < bodies.size(); ++i) {
    EXPECT_TRUE(taken[i].job.body == bodies[i]) << "take, body of " << bodies[i].size() << " bytes";
  }
}

TEST_P(Rule02NothingLost, ManyLargeBodiesInOneBatch) {
  std::vector<JobSpec> jobs;
  for (uint64_t i = 0; i < 24; ++i) {
    jobs.push_back(JobSpec("t", std::to_string(i)).with_body(random_bytes(size_t{1} << 19, i)));
  }
  engine_.push_all(jobs);
  // More than one reply may have (rule 12).
  std::vector<Taken> taken = engine_.take("t", 99);
  for (Taken& each : engine_.take("t", 99)) taken.push_back(std::move(each));
  ASSERT_EQ(taken.size(), jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) EXPECT_TRUE(taken[i].job.body == jobs[i].body) << "job " << i;
}

TEST_P(Rule02NothingLost, WhateverFailsTheNumberOfJobsStays) {
  constexpr int kPushed = 300;
  for (int i = 0; i < kPushed; ++i) engine_.push(JobSpec("t", std::to_string(i)).due_at(at(i)));
  Random random(7);
  for (int64_t ms = 0; ms < 2'000; ms += 50) {
    engine_.go_to(at(ms));
    engine_.tick();
    for (const LeaseInfo& lease : engine_.expired_news()) {
      NackRequest request;
      request.lease = {lease.topic, lease.lease};
      request.retry_at = at(ms + 100);
      request.expired = true;
      engine_.nack_all({request});
    }
    TakeRequest request;
    request.topic = "t";
    request.count = 40;
    request.lease_until = at(ms + 120);
    for (const Taken& taken : engine_.take(request)) {
      if (random.chance(1, 3)) engine_.retry(taken, at(ms + 70), "again");
      if (random.chance(1, 9)) engine_.bury(taken, "enough");
    }
    const TopicCounts counts = engine_.counts("t");
    ASSERT_EQ(counts.of(JobState::kDelayed) + counts.of(JobState::kReady) + counts.of(JobState::kReserved) +
                  counts.of(JobState::kDead),
              uint64_t{kPushed});
  }
  for (int i = 0; i < kPushed; ++i) EXPECT_TRUE(engine_.get("t", std::to_string(i))) << "job " << i;
}

TEST_P(Rule02NothingLost, OnlyAckCancelAndPurgeTakeAway) {
  engine_.push_all({JobSpec("t", "acked"), JobSpec("t", "cancelled").due_at(at(50)),
                    JobSpec("t", "purged").due_at(at(60))});
  engine_.ack(engine_.take_one("t"), kKeepNone);
  EXPECT_EQ(engine_.cancel("t", "cancelled"), CancelOutcome::kCancelled);
  EXPECT_EQ(engine_.purge("t", JobState::kDelayed), 1U);
  for (const char* id : {"acked", "cancelled", "purged"}) EXPECT_EQ(engine_.get("t", id), std::nullopt) << id;
  engine_.go_to(at(1'000'000));
  engine_.tick();
  EXPECT_THAT(engine_.take("t", 9), IsEmpty()) << "what is gone does not come back";
  EXPECT_EQ(engine_.usage().jobs, 0U);
}

TEST_P(Rule02NothingLost, FlushComesAfterEverything) {
  int order = 0;
  int pushed = 0;
  const JobSpec spec("t", "a");
  const std::vector<NewJob> jobs{spec.view()};
  engine_.engine().push(at(0), jobs, [&](auto answer) {
    ASSERT_TRUE(answer.ok());
    pushed = ++order;
  });
  engine_.flush();
  EXPECT_EQ(pushed, 1) << "flush answered before the push that came first";
}

TEST_P(Rule02NothingLost, RequestsNeedToLiveOnlyForTheCall) {
  int answers = 0;
  {
    auto topic = std::make_unique<std::string>("topic");
    auto id = std::make_unique<std::string>("some id");
    auto body = std::make_unique<std::string>(1'000, 'x');
    NewJob job;
    job.topic = *topic;
    job.id = *id;
    job.body = *body;
    job.due = at(0);
    engine_.engine().push(at(0), {&job, 1}, [&](auto answer) { answers += answer.ok() ? 1 : 0; });
    topic->assign("XXXXX");
    id->assign("YYYYYYY");
    body->assign(1'000, 'z');
  }
  engine_.flush();
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(engine_.take_one("topic").job.body, std::string(1'000, 'x'));
}

TEST_P(Rule02NothingLost, AnAnswerMayCallVerbs) {
  int steps = 0;
  const JobSpec first("t", "first");
  const JobSpec second("t", "second");
  const std::vector<NewJob> first_views{first.view()};
  const std::vector<NewJob> second_views{second.view()};
  Engine& engine = engine_.engine();
  engine.push(at(0), first_views, [&](auto) {
    ++steps;
    engine.push(at(0), second_views, [&](auto) { ++steps; });
  });
  engine_.flush();
  engine_.flush();
  EXPECT_EQ(steps, 2);
  EXPECT_THAT(ids_of(engine_.take("t", 9)), ElementsAre("first", "second"));
}

}  // namespace
}  // namespace delayq::contract
