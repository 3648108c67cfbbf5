// Rule 2 for durable engines: every change that was replied to is there after a restart
// and after a power loss.
#include <set>

#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

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

  /// A topic with jobs in every state and with every history, and two more topics.
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
    engine_.push(JobSpec("u", "moved").due_at(at(100)).with_body(std::string("\0\xff\n", 3)));
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

class Rule02PowerLoss : public EngineContract {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Rule02PowerLoss);
DELAYQ_OVER_DURABLE_ENGINES(Rule02PowerLoss);

TEST_P(Rule02PowerLoss, WhatWasAnsweredIsThere) {
  const Keep keep = kKeepAll;
  engine_.push_all({JobSpec("t", "pushed").due_at(at(100)).with_body("body").in_group("g"),
                    JobSpec("t", "moved").due_at(at(100)), JobSpec("t", "cancelled").due_at(at(100)),
                    JobSpec("t", "replaced").due_at(at(100)).with_body("old")});
  engine_.reschedule("t", "moved", at(200));
  engine_.cancel("t", "cancelled");
  engine_.push(JobSpec("t", "replaced").due_at(at(100)).with_body("new").or_replace());
  finish("acked", keep);
  bury("dead", "broken", keep);
  engine_.retry(reserve("retried"), at(300), "later");
  engine_.store_settings("t", "settings");
  lose_power();
  EXPECT_EQ(engine_.get("t", "pushed")->body, "body");
  EXPECT_EQ(engine_.get("t", "moved")->due, at(200));
  EXPECT_EQ(engine_.get("t", "cancelled"), std::nullopt) << "what was cancelled does not come back";
  EXPECT_EQ(engine_.get("t", "replaced")->body, "new");
  EXPECT_EQ(engine_.state_of("t", "acked"), JobState::kDone) << "what was acked does not come back";
  EXPECT_EQ(engine_.state_of("t", "dead"), JobState::kDead);
  EXPECT_EQ(engine_.get("t", "dead")->outcome, "broken");
  const std::optional<SeenJob> retried = engine_.get("t", "retried");
  EXPECT_EQ(retried->due, at(300));
  EXPECT_EQ(retried->attempts, 1U);
  EXPECT_EQ(retried->outcome, "later");
  EXPECT_THAT(engine_.load_settings(), SizeIs(1));
  EXPECT_EQ(engine_.cancel_group("g").cancelled, 1U);
}

TEST_P(Rule02PowerLoss, AJobThatWasHandedOutIsNotLost) {
  const Taken taken = reserve("a", std::chrono::hours{1});
  lose_power();
  const std::optional<SeenJob> job = engine_.get("t", "a");
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->state == JobState::kReady || job->state == JobState::kReserved)
      << "the record of a lease need not be durable";
  if (job->state == JobState::kReady) {
    EXPECT_EQ(engine_.ack(taken), AckOutcome::kStale);
  } else {
    EXPECT_EQ(engine_.ack(taken), AckOutcome::kAcked);
  }
}

TEST_P(Rule02PowerLoss, ADeadlineThatWasAnsweredHolds) {
  const Taken taken = reserve("a", std::chrono::minutes{1});
  const Moment until = engine_.now() + std::chrono::minutes{30};
  ASSERT_TRUE(engine_.extend(taken, until));
  lose_power();
  const std::optional<SeenJob> job = engine_.get("t", "a");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->state, JobState::kReserved);
  EXPECT_EQ(job->until, until);
  EXPECT_EQ(engine_.ack(taken), AckOutcome::kAcked);
}

TEST_P(Rule02PowerLoss, AnAutoAckThatWasAnsweredIsAtMostOnce) {
  engine_.push(JobSpec("t", "a"));
  TakeRequest request;
  request.topic = "t";
  request.auto_ack = true;
  ASSERT_THAT(engine_.take(request), SizeIs(1));
  lose_power();
  EXPECT_THAT(engine_.take("t"), IsEmpty());
}

TEST_P(Rule02PowerLoss, AgainAndAgainInTheMiddleOfPushes) {
  std::set<std::string> answered;
  for (int life = 0; life < 20; ++life) {
    for (int i = 0; i < 30; ++i) {
      const JobSpec job = JobSpec("t", std::to_string(life) + "." + std::to_string(i))
                              .due_at(at(1'000))
                              .with_body(std::string(static_cast<size_t>(i) * 50, 'x'));
      const std::vector<NewJob> batch{job.view()};
      engine_.engine().push(at(0), batch, [&answered, id = job.id](const auto& answer) {
        if (answer.ok()) answered.insert(id);
      });
      if (i % 3 == 0) engine_.engine().poll(engine_);
      if (i % 5 <= life % 5) subject_->pump();
    }
    lose_power();
    const std::vector<std::string> listed = engine_.ids_in("t", JobState::kDelayed);
    const std::set<std::string> found(listed.begin(), listed.end());
    ASSERT_TRUE(found.size() == listed.size() || !GetParam().lists_delayed_in_order)
        << "nothing comes back twice";
    for (const std::string& id : answered)
      ASSERT_TRUE(found.contains(id)) << "lost " << id << " in life " << life;
  }
  EXPECT_GT(answered.size(), 100U) << "or this test shows nothing";
}

}  // namespace
}  // namespace delayq::contract
