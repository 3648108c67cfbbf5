// Rule 2: a job leaves only by ack, cancel, or becoming dead (and then it is kept); what was stored comes
// back as it was.
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
  const std::vector<Taken> taken = engine_.take("t", 99);
  ASSERT_EQ(taken.size(), jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) EXPECT_TRUE(taken[i].job.body == jobs[i].body) << "job " << i;
}

TEST_P(Rule02NothingLost, WhateverFailsTheNumberOfJobsStays) {
  constexpr int kJobs = 300;
  for (int i = 0; i < kJobs; ++i) engine_.push(JobSpec("t", std::to_string(i)).due_at(at(i)));
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
              uint64_t{kJobs});
  }
  for (int i = 0; i < kJobs; ++i) EXPECT_TRUE(engine_.get("t", std::to_string(i))) << "job " << i;
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
  EXPECT_EQ(engine_.engine().usage().jobs, 0U);
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

class Rule02Reopened : public EngineContract {
 protected:
  /// Everything that can be seen of a topic.
  std::vector<SeenJob> whole(std::string_view topic) {
    std::vector<SeenJob> all;
    for (size_t state = 0; state < kJobStateCount; ++state) {
      ListRequest request;
      request.topic = topic;
      request.state = static_cast<JobState>(state);
      request.with_bodies = true;
      for (SeenJob& job : engine_.list_all(request)) all.push_back(std::move(job));
    }
    return all;
  }

  /// A topic with jobs of every state and every history, and two more.
  void fill() {
    for (int i = 0; i < 20; ++i) {
      const std::string id = std::to_string(i);
      engine_.push(JobSpec("t", "delayed " + id).due_at(at(5'000 + i)).with_body("d" + id).in_group("g"));
      finish("done " + id);
      bury("dead " + id, "reason " + id);
      engine_.retry(reserve("retried " + id), at(6'000), "later");
    }
    for (int i = 0; i < 20; ++i) reserve("reserved " + std::to_string(i), std::chrono::hours{1});
    for (int i = 0; i < 20; ++i) {
      engine_.push(JobSpec("t", "ready " + std::to_string(i)).with_priority(static_cast<uint32_t>(i % 3)));
    }
    engine_.push(JobSpec("u", "moved").due_at(at(100)).with_body(all_bytes()));
    engine_.reschedule("u", "moved", at(200));
    engine_.push(JobSpec("u", "replaced").with_body("old"));
    engine_.push(JobSpec("u", "replaced").due_at(at(300)).with_body("new").or_replace());
    engine_.push(JobSpec("v", "taken back").due_at(at(100)));
    engine_.cancel("v", "taken back");
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Rule02Reopened);
DELAYQ_OVER_DURABLE_ENGINES(Rule02Reopened);

TEST_P(Rule02Reopened, EverythingIsStillThereInTheSameOrder) {
  fill();
  const std::vector<SeenJob> t = whole("t");
  const std::vector<SeenJob> u = whole("u");
  ASSERT_THAT(t, SizeIs(120));
  reopen();
  EXPECT_EQ(whole("t"), t);
  EXPECT_EQ(whole("u"), u);
  EXPECT_THAT(engine_.topic_names(), ElementsAre("t", "u"));
  reopen();
  EXPECT_EQ(whole("t"), t) << "after the second time";
}

TEST_P(Rule02Reopened, LifeGoesOn) {
  const Taken held = reserve("held", std::chrono::hours{1});
  const Taken cancelled = reserve("cancelled", std::chrono::hours{1});
  fill();
  EXPECT_EQ(engine_.cancel("t", "cancelled"), CancelOutcome::kReserved);
  reopen();
  EXPECT_EQ(engine_.ack(held), AckOutcome::kAcked) << "a lease outlives a restart in order";
  EXPECT_EQ(engine_.retry(cancelled, at(1)), NackOutcome::kCancelled);
  EXPECT_EQ(engine_.push(JobSpec("t", "delayed 3")).outcome, PushOutcome::kConflict);
  EXPECT_EQ(engine_.push(JobSpec("t", "dead 3").due_at(at(99'999))).outcome, PushOutcome::kCreated);
  EXPECT_EQ(engine_.cancel_group("g").cancelled, 20U);
  EXPECT_THAT(engine_.locate("moved"), ElementsAre("u"));
  engine_.go_to(at(5'999));
  engine_.tick();
  EXPECT_EQ(engine_.count("t", JobState::kDelayed), 21U) << "20 retried and the one that superseded";
  engine_.go_to(at(6'000));
  EXPECT_EQ(engine_.count("t", JobState::kReady), 40U);
}

TEST_P(Rule02Reopened, OrderOfHandOverAndOfDeath) {
  fill();
  reopen();
  std::vector<std::string> ids = ids_of(engine_.take("t", 4));
  EXPECT_THAT(ids, ElementsAre("ready 0", "ready 3", "ready 6", "ready 9"));
  EXPECT_EQ(engine_.redrive_oldest("t", 2), 2U);
  EXPECT_EQ(engine_.state_of("t", "dead 0"), JobState::kReady);
  EXPECT_EQ(engine_.state_of("t", "dead 1"), JobState::kReady);
  EXPECT_EQ(engine_.state_of("t", "dead 2"), JobState::kDead);
}

TEST_P(Rule02Reopened, ALeaseThatRanOutMeanwhileIsTold) {
  const Taken taken = reserve("a", Millis{500});
  reopen();
  engine_.go_to(at(500));
  engine_.tick();
  const std::vector<LeaseInfo> expired = engine_.expired_news();
  ASSERT_THAT(expired, SizeIs(1));
  EXPECT_EQ(expired[0].lease, taken.lease);
}

TEST_P(Rule02Reopened, SettingsAndDueTimes) {
  engine_.store_settings("t", std::string("paused\0yes", 10));
  engine_.store_settings("gone", "x");
  engine_.store_settings("gone", "");
  engine_.push(JobSpec("t", "a").due_at(at(100)));
  reopen();
  const std::vector<TopicSettings> settings = engine_.load_settings();
  ASSERT_THAT(settings, SizeIs(1));
  EXPECT_EQ(settings[0].topic, "t");
  EXPECT_EQ(settings[0].settings, std::string("paused\0yes", 10));
  engine_.go_to(at(99));
  EXPECT_THAT(engine_.take("t"), IsEmpty());
  EXPECT_LE(engine_.tick(), at(100));
  engine_.go_to(at(100));
  EXPECT_THAT(ids_of(engine_.take("t")), ElementsAre("a"));
}

}  // namespace
}  // namespace delayq::contract
