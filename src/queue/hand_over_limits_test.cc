// Pause, rate and concurrency (rule 11), through the whole queue.
#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using support::at;
using support::ids_of;
using support::PendingPop;
using support::Taken;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Millis kLongLease = std::chrono::minutes{30};

class HandOverLimits : public testing::Test {
 protected:
  void push_many(std::string_view topic, int count) {
    for (int i = 0; i < count; ++i) queue_.push({.topic = topic});
  }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_};
};

// ---- pause

TEST_F(HandOverLimits, PauseStopsHandOverNotPushing) {
  queue_.pause("t");
  EXPECT_TRUE(queue_.stats("t").settings.paused);
  queue_.push({.topic = "t", .id = "a"});
  EXPECT_THAT(queue_.pop("t"), IsEmpty());
  const PendingPop waiting = queue_.begin_pop("t", kLongLease);
  queue_.run();
  EXPECT_FALSE(waiting.answered());
  queue_.resume("t");
  queue_.run();
  EXPECT_THAT(ids_of(waiting.jobs()), ElementsAre("a"));
  EXPECT_EQ(queue_.queue().settings("t"), Settings{}) << "a topic without settings again";
}

TEST_F(HandOverLimits, AWaiterOfAPausedTopicIsWokenByItsOthers) {
  queue_.pause("a");
  queue_.push({.topic = "a", .id = "held"});
  const std::string_view topics[] = {"a", "b"};
  const PendingPop waiting = queue_.begin_pop({.topics = topics, .wait = kLongLease});
  queue_.run();
  queue_.push({.topic = "b", .id = "free"});
  queue_.run();
  EXPECT_THAT(ids_of(waiting.jobs()), ElementsAre("free"));
}

TEST_F(HandOverLimits, AllTopicsCanBePausedAndOneResumed) {
  queue_.set("*", {.paused = true});
  queue_.push({.topic = "a", .id = "1"});
  queue_.push({.topic = "b", .id = "2"});
  const PendingPop waiting = queue_.begin_pop("b", kLongLease);
  EXPECT_THAT(queue_.pop("a"), IsEmpty());
  queue_.resume("a");
  EXPECT_THAT(ids_of(queue_.pop("a")), ElementsAre("1"));
  EXPECT_FALSE(waiting.answered());
  queue_.set("*", {});
  queue_.run();
  EXPECT_THAT(ids_of(waiting.jobs()), ElementsAre("2"));
}

// ---- rate

TEST_F(HandOverLimits, ARateBoundsHandOver) {
  queue_.set("t", {.rate = Rate{3, Millis{3'000}}});
  push_many("t", 10);
  EXPECT_THAT(queue_.pop("t", 10), SizeIs(3));
  EXPECT_THAT(queue_.pop("t", 10), IsEmpty());
  queue_.go_to(at(999));
  EXPECT_THAT(queue_.pop("t", 10), IsEmpty());
  queue_.go_to(at(2'000));
  EXPECT_THAT(queue_.pop("t", 10), SizeIs(2));
}

TEST_F(HandOverLimits, AWaiterIsServedWhenATokenComes) {
  queue_.set("t", {.rate = Rate{1, Millis{1'000}}});
  push_many("t", 3);
  const PendingPop first = queue_.begin_pop("t", kLongLease);
  const PendingPop second = queue_.begin_pop("t", kLongLease);
  const PendingPop third = queue_.begin_pop("t", kLongLease);
  EXPECT_EQ(queue_.run(), at(1'000)) << "the queue asks to be called when there is a token";
  EXPECT_TRUE(first.answered());
  EXPECT_FALSE(second.answered());
  EXPECT_EQ(queue_.run_to(at(1'000)), at(2'000));
  EXPECT_TRUE(second.answered());
  EXPECT_FALSE(third.answered());
  queue_.run_to(at(2'000));
  EXPECT_TRUE(third.answered());
}

TEST_F(HandOverLimits, TokensForJobsThatWereNotThereAreNotLost) {
  queue_.set("t", {.rate = Rate{5, Millis{60'000}}});
  push_many("t", 2);
  EXPECT_THAT(queue_.pop("t", 5), SizeIs(2));
  push_many("t", 5);
  EXPECT_THAT(queue_.pop("t", 5), SizeIs(3));
}

TEST_F(HandOverLimits, ARateCanBeChangedWhileSomebodyWaitsForIt) {
  queue_.set("t", {.rate = Rate{1, std::chrono::hours{24}}});
  push_many("t", 3);
  EXPECT_THAT(queue_.pop("t"), SizeIs(1));
  const PendingPop waiting = queue_.begin_pop("t", kLongLease);
  queue_.run();
  queue_.set("t", {.rate = Rate{10, Millis{1'000}}});
  queue_.run_to(at(100));
  EXPECT_TRUE(waiting.answered()) << "not tomorrow";
  const PendingPop next = queue_.begin_pop("t", kLongLease);
  queue_.run();
  EXPECT_FALSE(next.answered());
  queue_.set("t", {});
  queue_.run();
  EXPECT_TRUE(next.answered()) << "at once, since there is no limit any more";
}

TEST_F(HandOverLimits, AClockThatGoesBackDoesNotHoldUpALimitedTopic) {
  queue_.set("t", {.rate = Rate{1, Millis{1'000}}});
  push_many("t", 2);
  EXPECT_THAT(queue_.pop("t"), SizeIs(1));
  const PendingPop waiting = queue_.begin_pop("t", kLongLease);
  queue_.run();
  queue_.run_to(at(-3'600'000));
  EXPECT_FALSE(waiting.answered());
  queue_.run_to(at(-3'599'000));
  EXPECT_TRUE(waiting.answered());
}

// ---- concurrency

TEST_F(HandOverLimits, ConcurrencyBoundsHowManyAreReserved) {
  queue_.set("t", {.concurrency = 2});
  push_many("t", 5);
  const std::vector<Taken> two = queue_.pop("t", 10);
  EXPECT_THAT(two, SizeIs(2));
  EXPECT_THAT(queue_.pop("t", 10), IsEmpty());
  EXPECT_TRUE(queue_.ack(two[0].lease).ok());
  EXPECT_THAT(queue_.pop("t", 10), SizeIs(1));
}

/// However a lease ends, a consumer that waits for room in the concurrency limit is served.
class LeaseEnds : public HandOverLimits, public testing::WithParamInterface<std::string> {};

TEST_P(LeaseEnds, WakesWhoeverWaitsForTheRoom) {
  queue_.set("t", {.lease = Millis{1'000}, .concurrency = 1});
  queue_.push({.topic = "t", .id = "running"});
  const Taken running = queue_.pop_one("t");
  queue_.push({.topic = "t", .id = "next"});
  const PendingPop waiting = queue_.begin_pop("t", kLongLease);
  queue_.run();
  ASSERT_FALSE(waiting.answered());

  const std::string& how = GetParam();
  if (how == "ack") (void)queue_.ack(running.lease);
  if (how == "nack") (void)queue_.nack({.lease = running.lease});
  if (how == "expiry") queue_.run_to(at(1'000));
  if (how == "replace") {
    queue_.push({.topic = "t", .id = "running", .delay = Millis{9'000}, .on_conflict = OnConflict::kReplace});
  }
  if (how == "purge") {
    queue_.must<uint64_t>("purge", [&](auto reply) {
      queue_.queue().purge(queue_.now(), "t", JobState::kReserved, std::move(reply));
    });
  }
  if (how == "higher_limit") queue_.set("t", {.concurrency = 2});
  queue_.run();
  ASSERT_TRUE(waiting.answered());
  EXPECT_THAT(ids_of(waiting.jobs()), ElementsAre("next"));
}

INSTANTIATE_TEST_SUITE_P(Ways, LeaseEnds,
                         testing::Values("ack", "nack", "expiry", "replace", "purge", "higher_limit"),
                         [](const auto& way) { return way.param; });

}  // namespace
}  // namespace delayq
