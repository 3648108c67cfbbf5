#include "delivery/redis_sink.h"

#include <gmock/gmock.h>

#include "delivery/delivery_loop.h"
#include "engine/memory/memory_engine.h"
#include "tests/support/fake_redis_target.h"
#include "tests/support/queue_driver.h"

namespace delayq::delivery {
namespace {

using std::chrono::seconds;
using support::at;
using support::SeenJob;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

QueueConfig with_a_redis() {
  QueueConfig config;
  config.redis.is_there = true;
  return config;
}

Error away() { return {ErrorCode::kUnavailable, {}, "connection refused"}; }
Error refusal() { return {ErrorCode::kInvalid, {}, "WRONGTYPE Operation against a key"}; }

class Pushing : public testing::Test {
 protected:
  Pushing() {
    loop_.add(sink_);
    queue_.queue().set_delivery_listener(&loop_);
    sink_.set_log([this](std::string_view why) { logged_.emplace_back(why); });
  }

  /// Until nothing moves any more. Returns when the loop wants to be called next.
  Moment settle() {
    Moment next = kNever;
    for (int rounds = 0; rounds < 10'000; ++rounds) {
      queue_.queue().tick(queue_.now());
      next = loop_.tick(queue_.now());
      const bool queue_moved = queue_.queue().poll(queue_.now());
      const bool loop_moved = loop_.poll(queue_.now());
      if (!queue_moved && !loop_moved) return next;
    }
    ADD_FAILURE() << "it never comes to rest";
    return next;
  }
  Moment settle_at(Moment moment) {
    queue_.go_to(moment);
    return settle();
  }
  void set(std::string_view topic, Settings settings) {
    if (!settings.delivery) settings.delivery = Delivery::kRedisList;
    if (!settings.redis_content) settings.redis_content = RedisContent::kId;
    if (!settings.backoff) settings.backoff = StepBackoff{{seconds{1}}};
    queue_.set(topic, settings);
  }
  void push(std::string_view topic, std::string_view id) { queue_.push({.topic = topic, .id = id}); }
  SeenJob job(std::string_view topic, std::string_view id) { return *queue_.get(topic, id); }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_, with_a_redis()};
  support::FakeRedisTarget target_;
  std::vector<std::string> logged_;
  RedisSink sink_{target_, {.in_flight = 1'000, .lease = seconds{30}}};
  DeliveryLoop loop_{queue_.queue(), 1};
};

TEST_F(Pushing, AListGetsABatchInOneCommandAndTheJobsAreDone) {
  set("t", {.redis_key = "orders"});
  for (const char* id : {"a", "b", "c"}) push("t", id);
  settle();
  ASSERT_THAT(target_.open(), SizeIs(1));
  EXPECT_EQ(target_.open()[0].key, "orders");
  EXPECT_THAT(target_.open()[0].words, ElementsAre("RPUSH", "orders", "a", "b", "c"));
  EXPECT_EQ(job("t", "a").state, JobState::kReserved) << "it is done when Redis has it, not before";
  target_.answer(std::string("17"));
  settle();
  EXPECT_EQ(job("t", "c").state, JobState::kDone);
  EXPECT_EQ(job("t", "c").outcome, "RPUSH orders: 17");
  EXPECT_EQ(sink_.figures().delivered, 3U);
  EXPECT_EQ(sink_.figures().in_flight, 0U);
}

TEST_F(Pushing, AStreamGetsACommandForEach) {
  set("t", {.delivery = Delivery::kRedisStream, .redis_maxlen = 500});
  push("t", "a");
  push("t", "b");
  settle();
  ASSERT_THAT(target_.open(), SizeIs(2));
  EXPECT_THAT(target_.open()[0].words, ElementsAre("XADD", "t", "MAXLEN", "~", "500", "*", "id", "a"));
  target_.answer(std::string("1700-0"));
  target_.answer(refusal());
  settle();
  EXPECT_EQ(job("t", "a").outcome, "XADD t: 1700-0");
  EXPECT_EQ(job("t", "b").state, JobState::kDelayed) << "each has its own answer";
}

TEST_F(Pushing, TheWholeJobIsWrittenAsJson) {
  set("t", {.delivery = Delivery::kRedisStream, .redis_content = RedisContent::kJob});
  queue_.push({.topic = "t", .id = "a", .group = "g", .body = R"({"uid":1})", .priority = 7});
  settle();
  ASSERT_THAT(target_.open(), SizeIs(1));
  const auto& words = target_.open()[0].words;
  ASSERT_THAT(words, SizeIs(7));
  EXPECT_EQ(words[5], "job");
  EXPECT_THAT(words[6],
              testing::StartsWith(R"({"topic":"t","id":"a","body":{"uid":1},"attempt":1,"due_at":")"));
  EXPECT_THAT(words[6], testing::EndsWith(R"("priority":7,"group":"g"})"));
}

TEST_F(Pushing, BodiesThatAreNoJsonAreWrittenOtherwise) {
  Job job;
  job.body = "plain \"text\"";
  EXPECT_THAT(job_text(job), HasSubstr(R"("body_text":"plain \"text\"")"));
  job.body = "\xff\x01";
  EXPECT_THAT(job_text(job), HasSubstr(R"("body_base64":"/wE=")"));
}

TEST_F(Pushing, WhatRedisRefusesFollowsTheRetryPolicy) {
  set("t", {.attempts = 2});
  push("t", "a");
  settle();
  target_.answer(refusal());
  settle();
  EXPECT_EQ(job("t", "a").state, JobState::kDelayed);
  EXPECT_EQ(job("t", "a").attempts, 1U);
  EXPECT_THAT(job("t", "a").outcome, HasSubstr("RPUSH t: WRONGTYPE"));
  settle_at(at(1'000));
  target_.answer(refusal());
  settle();
  EXPECT_EQ(job("t", "a").state, JobState::kDead);
  EXPECT_EQ(sink_.figures().failed, 2U);
}

TEST_F(Pushing, WhileRedisIsAwayNothingIsUsedUpAndTheOrderStays) {
  set("t", {.attempts = 1});
  for (const char* id : {"a", "b", "c"}) push("t", id);
  settle();
  target_.answer(away());
  const Moment next = settle();
  EXPECT_THAT(target_.open(), IsEmpty()) << "it rests";
  EXPECT_EQ(job("t", "a").state, JobState::kReady);
  EXPECT_EQ(job("t", "a").attempts, 0U);
  EXPECT_GT(next, queue_.now());
  EXPECT_LE(next, queue_.now() + Millis{100});
  push("t", "d");
  settle_at(next);
  ASSERT_THAT(target_.open(), SizeIs(1));
  EXPECT_THAT(target_.open()[0].words, ElementsAre("RPUSH", "t", "a", "b", "c", "d"));
  target_.answer(std::string("4"));
  settle();
  EXPECT_EQ(job("t", "a").state, JobState::kDone);
  EXPECT_THAT(logged_, ElementsAre("connection refused", "")) << "once each";
}

TEST_F(Pushing, TheRestsGrowUpToABound) {
  set("t", {});
  push("t", "a");
  Millis longest{};
  for (int round = 0; round < 20; ++round) {
    const Moment next = settle();
    if (target_.open().empty()) {
      longest = std::max(longest, next - queue_.now());
      settle_at(next);
    }
    ASSERT_THAT(target_.open(), SizeIs(1)) << "round " << round;
    target_.answer(away());
  }
  EXPECT_GT(longest, seconds{3});
  EXPECT_LE(longest, seconds{5});
  EXPECT_THAT(logged_, SizeIs(1));
}

TEST_F(Pushing, NothingIsTakenWithoutAConnection) {
  set("t", {});
  target_.set_connected(false);
  push("t", "a");
  const Moment next = settle();
  EXPECT_EQ(job("t", "a").state, JobState::kReady);
  EXPECT_LE(next, queue_.now() + seconds{1}) << "it looks again by itself";
  target_.set_connected(true);
  settle();
  EXPECT_THAT(target_.open(), SizeIs(1));
}

TEST_F(Pushing, ARedisThatIsFullIsWaitedFor) {
  set("t", {.attempts = 1});
  push("t", "a");
  settle();
  target_.answer(Error{ErrorCode::kOverloaded, {}, "OOM command not allowed"});
  settle();
  EXPECT_EQ(job("t", "a").state, JobState::kReady);
}

TEST_F(Pushing, NoMoreIsTakenThanMayBeUnderWay) {
  set("t", {});
  for (int i = 0; i < 1'500; ++i) push("t", "job" + std::to_string(i));
  settle();
  EXPECT_EQ(sink_.figures().in_flight, 1'000U);
  target_.answer_all(std::string("1"));
  settle();
  EXPECT_EQ(sink_.figures().in_flight, 500U);
  target_.answer_all(std::string("1"));
  settle();
  EXPECT_EQ(sink_.figures().delivered, 1'500U);
}

TEST_F(Pushing, ATopicThatIsSetToPullIsLeftAlone) {
  set("t", {.concurrency = 1});
  push("t", "a");
  push("t", "b");
  settle();
  queue_.set("t", {.delivery = Delivery::kPull});
  target_.answer_all(std::string("1"));
  settle();
  EXPECT_THAT(target_.open(), IsEmpty());
  EXPECT_THAT(queue_.pop("t"), SizeIs(1));
}

TEST_F(Pushing, AStopGivesBackWhatIsNotAnswered) {
  set("t", {});
  push("t", "a");
  settle();
  loop_.stop(queue_.now(), seconds{2});
  push("t", "b");
  settle();
  EXPECT_EQ(job("t", "a").state, JobState::kReserved);
  EXPECT_EQ(job("t", "b").state, JobState::kReady);
  settle_at(at(1'800));
  EXPECT_EQ(job("t", "a").state, JobState::kReady);
  EXPECT_EQ(job("t", "a").attempts, 0U);
  target_.answer_all(std::string("1"));
  settle();
  EXPECT_EQ(job("t", "a").state, JobState::kReady) << "the answer came too late";
}

TEST_F(Pushing, LeasesAreRenewedWhileRedisHasNotAnswered) {
  set("t", {.attempts = 1});
  for (int i = 0; i < 3; ++i) push("t", "job" + std::to_string(i));
  Moment next = settle();
  for (int rounds = 0; queue_.now() < at(300'000); ++rounds) {
    ASSERT_LT(rounds, 100) << "it looks seldom";
    ASSERT_LT(next, queue_.now() + seconds{30}) << "it comes by itself";
    next = settle_at(next);
  }
  EXPECT_THAT(target_.open(), SizeIs(1)) << "written once";
  EXPECT_EQ(job("t", "job0").state, JobState::kReserved);
  target_.answer_all(std::string("3"));
  EXPECT_EQ(settle(), kNever) << "nothing is left to renew";
  EXPECT_EQ(queue_.count("t", JobState::kDone), 3U);
  EXPECT_EQ(job("t", "job0").attempts, 1U);
}

TEST_F(Pushing, AJobWhoseTakeWasAnsweredTooLateIsNotWritten) {
  set("t", {.attempts = 1});
  push("t", "a");
  queue_.queue().tick(queue_.now());
  loop_.tick(queue_.now());  // asks for it; the answer comes with the queue's next poll
  queue_.go_to(at(20'000));
  settle();
  ASSERT_THAT(target_.open(), SizeIs(1));
  EXPECT_EQ(sink_.figures().given_back, 1U) << "given back, and taken anew";
  EXPECT_GE(job("t", "a").until, at(45'000));
  EXPECT_EQ(job("t", "a").attempts, 1U);
}

TEST_F(Pushing, LargeJobsAreTakenInPartsUntilNoneIsLeft) {
  set("t", {});
  const std::string body(size_t{1} << 20, 'x');
  for (int i = 0; i < 20; ++i) queue_.push({.topic = "t", .body = body});
  settle();
  ASSERT_THAT(target_.open(), SizeIs(3));
  EXPECT_THAT(target_.open()[0].words, SizeIs(2 + 8)) << "8 MiB of bodies are one answer";
  while (!target_.open().empty()) target_.answer(std::string("1"));
  settle();
  EXPECT_EQ(queue_.count("t", JobState::kDone), 20U);
}

}  // namespace
}  // namespace delayq::delivery
