#include "queue/hand_over.h"

#include <array>

#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "tests/support/forwarding_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using support::at;
using support::ids_of;
using support::PendingPop;
using support::Taken;
using testing::ElementsAre;
using testing::IsEmpty;

/// Counts how often it is asked for jobs, and to extend leases.
class CountingEngine final : public support::ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;
  void take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) override {
    ++takes;
    ForwardingEngine::take(now, request, std::move(reply));
  }
  void extend(Moment now, std::span<const ExtendRequest> leases,
              Reply<std::vector<ExtendAnswer>> reply) override {
    ++extends;
    ForwardingEngine::extend(now, leases, std::move(reply));
  }
  int takes = 0;
  int extends = 0;
};

class HandOverTest : public testing::Test {
 protected:
  void push(std::string_view topic, std::string_view id, Millis delay = {}) {
    queue_.push({.topic = topic, .id = id, .delay = delay});
  }
  PendingPop wait_for(std::vector<std::string_view> topics, Millis wait, uint32_t count = 1) {
    PendingPop pop = queue_.begin_pop({.topics = topics, .count = count, .wait = wait});
    queue_.run();
    return pop;
  }

  MemoryEngine memory_;
  CountingEngine engine_{memory_};
  support::QueueDriver queue_{engine_};
};

constexpr Millis kLongWait = std::chrono::seconds{30};

// ---- without waiting

TEST_F(HandOverTest, GivesWhatIsReadyInOrder) {
  queue_.push({.topic = "t", .id = "second", .at = at(-5)});
  queue_.push({.topic = "t", .id = "first", .priority = 0});
  queue_.push({.topic = "t", .id = "not yet", .delay = Millis{1}});
  EXPECT_THAT(ids_of(queue_.pop("t", 10)), ElementsAre("first", "second"));
  EXPECT_THAT(queue_.pop("t", 10), IsEmpty());
  queue_.go_to(at(1));
  EXPECT_THAT(ids_of(queue_.pop("t", 10)), ElementsAre("not yet"));
}

TEST_F(HandOverTest, ALeaseNamesItsTopicAndHasADeadline) {
  push("t", "a");
  const Taken taken = queue_.pop_one("t");
  EXPECT_TRUE(taken.lease.starts_with("t/"));
  EXPECT_EQ(taken.job.until, at(60'000)) << "the default";
  EXPECT_EQ(taken.job.attempts, 1U);
}

TEST_F(HandOverTest, AJobsOwnLeaseNeedsOneCallOfTheEngine) {
  queue_.push({.topic = "t", .options = {.lease = Millis{5'000}}});
  queue_.push({.topic = "t", .options = {.name = "plain"}});
  EXPECT_EQ(queue_.pop("t", 2).at(0).job.until, at(5'000));
  EXPECT_EQ(engine_.takes, 1);
  EXPECT_EQ(engine_.extends, 0);
}

TEST_F(HandOverTest, TheLeaseIsTheCallersThenTheJobsThenTheTopics) {
  queue_.set("t", {.lease = Millis{20'000}});
  const std::string_view topic = "t";
  const auto until = [&](std::optional<Millis> callers, std::optional<Millis> jobs) {
    queue_.push({.topic = "t", .options = {.lease = jobs}});
    const std::vector<Taken> popped = queue_.pop(PopRequest{.topics = {&topic, 1}, .lease = callers});
    return popped.at(0).job.until;
  };
  EXPECT_EQ(until({}, {}), at(20'000));
  EXPECT_EQ(until({}, Millis{5'000}), at(5'000));
  EXPECT_EQ(until(Millis{7'000}, Millis{5'000}), at(7'000));

  // The engine has the same deadline.
  EXPECT_EQ(queue_.count("t", JobState::kReserved), 3U);
  queue_.run_to(at(5'000));
  EXPECT_EQ(queue_.count("t", JobState::kReserved), 2U);
}

TEST_F(HandOverTest, TheFirstTopicGoesBeforeTheSecond) {
  push("b", "b1");
  push("a", "a1");
  push("b", "b2");
  const std::string_view topics[] = {"a", "b", "empty"};
  EXPECT_THAT(ids_of(queue_.pop(PopRequest{.topics = topics, .count = 2})), ElementsAre("a1", "b1"));
  EXPECT_THAT(ids_of(queue_.pop(PopRequest{.topics = topics, .count = 2})), ElementsAre("b2"));
}

TEST_F(HandOverTest, AutoAckIsDoneAtOnceAndHasNoLease) {
  push("t", "a");
  const std::string_view topic = "t";
  const std::vector<Taken> popped = queue_.pop(PopRequest{.topics = {&topic, 1}, .auto_ack = true});
  ASSERT_THAT(ids_of(popped), ElementsAre("a"));
  EXPECT_EQ(popped[0].lease, "");
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kDone);
}

TEST_F(HandOverTest, RequestsOutOfRangeAreRefused) {
  const std::string_view topic = "t";
  const std::string_view bad = "no/topic";
  const std::vector<std::string_view> many(Limits::kPopTopics + 1, topic);
  const std::pair<PopRequest, const char*> cases[] = {
      {{.topics = {}}, "topics"},
      {{.topics = many}, "topics"},
      {{.topics = {&bad, 1}}, "topic"},
      {{.topics = {&topic, 1}, .count = 0}, "count"},
      {{.topics = {&topic, 1}, .count = Limits::kPopJobs + 1}, "count"},
      {{.topics = {&topic, 1}, .wait = Millis{-1}}, "wait"},
      {{.topics = {&topic, 1}, .wait = std::chrono::hours{2}}, "wait"},
      {{.topics = {&topic, 1}, .lease = Millis{1}}, "lease"},
  };
  for (const auto& [request, field] : cases) {
    const PendingPop pop = queue_.begin_pop(request);
    EXPECT_EQ(pop.waiter(), 0U) << field;
    queue_.run();
    EXPECT_EQ(pop.error().code, ErrorCode::kInvalid) << field;
    EXPECT_THAT(pop.error().detail, testing::StartsWith(field));
  }
}

// ---- waiting

TEST_F(HandOverTest, AWaiterIsWokenByThePush) {
  const PendingPop pop = wait_for({"t"}, kLongWait);
  EXPECT_FALSE(pop.answered());
  push("t", "a");
  queue_.run();
  EXPECT_THAT(ids_of(pop.jobs()), ElementsAre("a"));
}

TEST_F(HandOverTest, AWaiterIsWokenWhenAJobFallsDueAndNotBefore) {
  push("t", "a", Millis{500});
  const PendingPop pop = wait_for({"t"}, kLongWait);
  EXPECT_EQ(queue_.run_to(at(499)), at(500)) << "the queue asks to be called then";
  EXPECT_FALSE(pop.answered());
  queue_.run_to(at(500));
  EXPECT_THAT(ids_of(pop.jobs()), ElementsAre("a"));
  EXPECT_EQ(pop.jobs()[0].job.until, at(60'500)) << "the lease begins at the hand-over";
}

TEST_F(HandOverTest, NobodyPollsWhileNothingHappens) {
  const PendingPop pop = wait_for({"t", "u"}, kLongWait);
  const int takes = engine_.takes;
  for (int64_t second = 1; second < 30; ++second) queue_.run_to(at(second * 1'000));
  EXPECT_EQ(engine_.takes, takes);
  EXPECT_FALSE(pop.answered());
}

TEST_F(HandOverTest, AWaiterGivesUpWithNothingAtItsTime) {
  const PendingPop pop = wait_for({"t"}, Millis{700});
  EXPECT_LE(queue_.run_to(at(699)), at(700));
  EXPECT_FALSE(pop.answered());
  queue_.run_to(at(700));
  EXPECT_THAT(pop.jobs(), IsEmpty());
  EXPECT_EQ(queue_.totals().waiters, 0U);
}

TEST_F(HandOverTest, OneJobWakesOneWaiterTheFirst) {
  const PendingPop first = wait_for({"t"}, kLongWait);
  const PendingPop second = wait_for({"t"}, kLongWait);
  const int takes = engine_.takes;
  push("t", "a");
  queue_.run();
  EXPECT_THAT(ids_of(first.jobs()), ElementsAre("a"));
  EXPECT_FALSE(second.answered());
  EXPECT_LE(engine_.takes - takes, 2) << "one gets it, and one looks whether there is more";
  push("t", "b");
  queue_.run();
  EXPECT_THAT(ids_of(second.jobs()), ElementsAre("b"));
}

TEST_F(HandOverTest, AHundredWaitersAndAHundredJobsInOrder) {
  std::vector<PendingPop> pops;
  for (int i = 0; i < 100; ++i) pops.push_back(wait_for({"t"}, kLongWait));
  std::vector<PushRequest> jobs(100, PushRequest{.topic = "t"});
  queue_.must<PushReport>("push",
                          [&](auto reply) { queue_.queue().push(queue_.now(), jobs, std::move(reply)); });
  queue_.run();
  std::string last;
  for (const PendingPop& pop : pops) {
    ASSERT_EQ(pop.jobs().size(), 1U);
    EXPECT_LT(last, pop.jobs()[0].job.id) << "first come, first served";
    last = pop.jobs()[0].job.id;
  }
}

TEST_F(HandOverTest, AWaiterThatWantsManyTakesWhatThereIs) {
  const PendingPop pop = wait_for({"t"}, kLongWait, 10);
  const PushRequest jobs[] = {{.topic = "t", .id = "a"}, {.topic = "t", .id = "b"}};
  queue_.must<PushReport>("push",
                          [&](auto reply) { queue_.queue().push(queue_.now(), jobs, std::move(reply)); });
  queue_.run();
  EXPECT_THAT(ids_of(pop.jobs()), ElementsAre("a", "b"));
}

TEST_F(HandOverTest, AnyOfItsTopicsWakesAWaiter) {
  const PendingPop pop = wait_for({"a", "b", "c"}, kLongWait);
  push("b", "x");
  queue_.run();
  EXPECT_THAT(ids_of(pop.jobs()), ElementsAre("x"));
  push("a", "y");
  push("c", "z");
  queue_.run();
  EXPECT_EQ(queue_.state_of("a", "y"), JobState::kReady) << "it is answered once";
  EXPECT_EQ(queue_.state_of("c", "z"), JobState::kReady);
}

TEST_F(HandOverTest, WhoCanWaitDoesNotPassThoseWhoWait) {
  const PendingPop first = wait_for({"t"}, kLongWait);
  push("t", "a", Millis{100});
  // The clock reaches the due time. Before the next tick, a second consumer pops.
  queue_.go_to(at(100));
  const PendingPop second = queue_.begin_pop("t", kLongWait);
  queue_.run();
  EXPECT_THAT(ids_of(first.jobs()), ElementsAre("a"));
  EXPECT_FALSE(second.answered());
}

TEST_F(HandOverTest, AWaiterThatWasTriedInVainKeepsItsPlace) {
  const PendingPop first = wait_for({"t"}, kLongWait);
  const PendingPop second = wait_for({"t"}, kLongWait);
  // The job is gone again before the woken waiter takes it.
  queue_.queue().push(queue_.now(), std::array{PushRequest{.topic = "t", .id = "a"}}, [](const auto&) {});
  const JobRef job{"t", "a"};
  queue_.queue().cancel(queue_.now(), {&job, 1}, [](const auto&) {});
  queue_.run();
  EXPECT_FALSE(first.answered());
  push("t", "b");
  queue_.run();
  EXPECT_THAT(ids_of(first.jobs()), ElementsAre("b"));
  EXPECT_FALSE(second.answered());
}

// ---- waiters that are gone

TEST_F(HandOverTest, ADroppedWaiterIsNeverHandedAJob) {
  const PendingPop gone = wait_for({"t"}, kLongWait);
  const PendingPop stays = wait_for({"t"}, kLongWait);
  EXPECT_TRUE(queue_.queue().drop_waiter(queue_.now(), gone.waiter()));
  EXPECT_FALSE(queue_.queue().drop_waiter(queue_.now(), gone.waiter()));
  push("t", "a");
  queue_.run();
  EXPECT_FALSE(gone.answered());
  EXPECT_THAT(ids_of(stays.jobs()), ElementsAre("a"));
  EXPECT_FALSE(queue_.queue().drop_waiter(queue_.now(), stays.waiter())) << "it was answered";
}

TEST_F(HandOverTest, AJobOnTheWayToADroppedWaiterGoesBackUncounted) {
  queue_.push({.topic = "t", .id = "a", .at = at(-50)});
  const PendingPop gone = queue_.begin_pop("t", kLongWait);
  EXPECT_TRUE(queue_.queue().drop_waiter(queue_.now(), gone.waiter()));
  EXPECT_FALSE(queue_.queue().drop_waiter(queue_.now(), gone.waiter()));
  const PendingPop next = queue_.begin_pop("t", kLongWait);
  queue_.run();
  EXPECT_FALSE(gone.answered());
  ASSERT_THAT(ids_of(next.jobs()), ElementsAre("a"));
  EXPECT_EQ(next.jobs()[0].job.attempts, 1U) << "the try that reached nobody does not count";
  EXPECT_EQ(next.jobs()[0].job.due, at(-50)) << "and it kept its place in line";
  EXPECT_EQ(queue_.stats("t").tallies.of(Tally::kPopped), 1U);
}

TEST_F(HandOverTest, JobsOfSeveralTopicsGoBackToo) {
  push("a", "1");
  push("b", "2");
  const std::string_view topics[] = {"a", "b"};
  const PendingPop gone = queue_.begin_pop({.topics = topics, .count = 5, .wait = kLongWait});
  queue_.queue().poll(queue_.now());  // the first topic has answered, the second is being asked
  EXPECT_TRUE(queue_.queue().drop_waiter(queue_.now(), gone.waiter()));
  queue_.run();
  EXPECT_FALSE(gone.answered());
  EXPECT_EQ(queue_.state_of("a", "1"), JobState::kReady);
  EXPECT_EQ(queue_.state_of("b", "2"), JobState::kReady);
  EXPECT_EQ(queue_.totals().waiters, 0U);
}

TEST_F(HandOverTest, WaitersHaveABound) {
  QueueConfig config;
  config.limits.waiters = 2;
  MemoryEngine memory;
  support::QueueDriver queue{memory, config};
  const PendingPop first = queue.begin_pop("t", kLongWait);
  const PendingPop second = queue.begin_pop("t", kLongWait);
  const PendingPop third = queue.begin_pop("t", kLongWait);
  queue.run();
  EXPECT_EQ(third.error().code, ErrorCode::kOverloaded);
  EXPECT_GT(third.error().retry_after, Millis{0});
  queue.queue().drop_waiter(queue.now(), first.waiter());
  const PendingPop fourth = queue.begin_pop("t", kLongWait);
  queue.run();
  EXPECT_FALSE(fourth.answered()) << "there is room again";
}

// ---- no wake is lost

/// Delays the answers to takes of one topic until the test releases them.
class SlowTopicEngine final : public support::ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;
  void take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) override {
    if (request.topic != slow) return ForwardingEngine::take(now, request, std::move(reply));
    ForwardingEngine::take(now, request, [this, reply = std::move(reply)](Result<TakeAnswer> answer) mutable {
      held.push_back(
          [reply = std::move(reply), answer = std::move(answer)]() mutable { reply(std::move(answer)); });
    });
  }
  bool poll(EngineListener& listener) override {
    const bool any = ForwardingEngine::poll(listener);
    if (!release) return any;
    auto ready = std::exchange(held, {});
    for (auto& give : ready) give();
    return any || !ready.empty();
  }
  std::string slow = "slow";
  bool release = false;
  std::vector<absl::AnyInvocable<void()>> held;
};

TEST(HandOverRaces, AJobThatComesWhileAWaiterIsBusyElsewhereIsFound) {
  MemoryEngine memory;
  SlowTopicEngine engine{memory};
  support::QueueDriver queue{engine};
  const std::string_view topics[] = {"quick", "slow"};
  const PendingPop pop = queue.begin_pop({.topics = topics, .wait = kLongWait});
  queue.run();
  ASSERT_EQ(engine.held.size(), 1U) << "quick was empty; slow is being asked";
  queue.push({.topic = "quick", .id = "a"});
  queue.run();
  EXPECT_FALSE(pop.answered());
  engine.release = true;
  queue.run();
  EXPECT_THAT(ids_of(pop.jobs()), ElementsAre("a"));
}

TEST(HandOverRaces, TwoTopicsWokenWhileAWaiterIsBusy) {
  MemoryEngine memory;
  SlowTopicEngine engine{memory};
  support::QueueDriver queue{engine};
  const std::string_view topics[] = {"slow", "a", "b"};
  const PendingPop pop = queue.begin_pop({.topics = topics, .wait = kLongWait});
  queue.run();
  // Both are woken; the job of `a` is gone again, that of `b` stays.
  queue.push({.topic = "a", .id = "1"});
  queue.push({.topic = "b", .id = "2"});
  queue.run();
  EXPECT_EQ(queue.cancel("a", "1"), CancelOutcome::kCancelled);
  engine.release = true;
  queue.run();
  EXPECT_THAT(ids_of(pop.jobs()), ElementsAre("2"));
}

TEST(HandOverRaces, WhoPassedByThoseInLineIsServedAfterThem) {
  MemoryEngine memory;
  SlowTopicEngine engine{memory};
  support::QueueDriver queue{engine};
  queue.pause("t");
  for (const char* id : {"a", "b", "c"}) queue.push({.topic = "t", .id = id});
  const PendingPop first = queue.begin_pop("t", kLongWait);
  const PendingPop second = queue.begin_pop("t", kLongWait);
  queue.run();
  queue.queue().resume(queue.now(), "t", [](const Status&) {});
  // The first is being served, the second stands in line, so the third goes on to the other topic.
  const std::string_view topics[] = {"t", "slow"};
  const PendingPop third = queue.begin_pop({.topics = topics, .wait = kLongWait});
  queue.run();
  EXPECT_THAT(ids_of(first.jobs()), ElementsAre("a"));
  EXPECT_THAT(ids_of(second.jobs()), ElementsAre("b"));
  EXPECT_FALSE(third.answered()) << "it asks slow";
  engine.release = true;
  queue.run();
  ASSERT_TRUE(third.answered());
  EXPECT_THAT(ids_of(third.jobs()), ElementsAre("c"));
}

TEST(HandOverRaces, AWaiterThatIsBusyAtItsTimeIsAnsweredAfterwards) {
  MemoryEngine memory;
  SlowTopicEngine engine{memory};
  support::QueueDriver queue{engine};
  const PendingPop pop = queue.begin_pop("slow", Millis{100});
  queue.run_to(at(200));
  EXPECT_FALSE(pop.answered());
  engine.release = true;
  queue.run();
  EXPECT_THAT(pop.jobs(), IsEmpty());
}

TEST(HandOverRaces, RoomThatComesWhileAWaiterIsBusyElsewhereIsFound) {
  MemoryEngine memory;
  SlowTopicEngine engine{memory};
  support::QueueDriver queue{engine};
  queue.set("narrow", {.concurrency = 1});
  queue.push({.topic = "narrow", .id = "running"});
  const Taken running = queue.pop_one("narrow");
  queue.push({.topic = "narrow", .id = "next"});
  const std::string_view topics[] = {"narrow", "slow"};
  const PendingPop pop = queue.begin_pop({.topics = topics, .wait = kLongWait});
  queue.run();
  EXPECT_TRUE(queue.ack(running.lease).ok()) << "while the waiter asks slow";
  engine.release = true;
  queue.run();
  EXPECT_THAT(ids_of(pop.jobs()), ElementsAre("next"));
}

TEST_F(HandOverTest, AWaiterDroppedBetweenItsTimeAndThePollIsNotAnswered) {
  const PendingPop pop = wait_for({"t"}, Millis{100});
  queue_.go_to(at(100));
  queue_.queue().tick(queue_.now());
  EXPECT_TRUE(queue_.queue().drop_waiter(queue_.now(), pop.waiter()));
  queue_.run();
  EXPECT_FALSE(pop.answered());
  EXPECT_EQ(queue_.totals().waiters, 0U);
}

// ---- from inside an answer

TEST_F(HandOverTest, AnAnswerMayCallVerbs) {
  push("t", "a");
  push("t", "b");
  Queue& queue = queue_.queue();
  std::vector<std::string> order;
  const std::string_view topic = "t";
  const PopRequest request{.topics = {&topic, 1}};
  queue.pop(queue_.now(), request, [&](const Result<PopAnswer>& first) {
    order.emplace_back(first->jobs[0].job.id);
    const AckItem item{.lease = first->jobs[0].lease};
    queue.ack(queue_.now(), {&item, 1}, [&](const auto& acked) {
      EXPECT_TRUE((*acked)[0].ok());
      order.emplace_back("acked");
    });
    queue.pop(queue_.now(), {}, [&](const auto& refused) {
      EXPECT_FALSE(refused.ok());
      order.emplace_back("refused");
    });
    order.emplace_back("end of answer");
  });
  queue_.run();
  EXPECT_EQ(order[0], "a");
  EXPECT_EQ(order[1], "end of answer") << "no answer comes from inside the call that asked";
  EXPECT_THAT(order, testing::UnorderedElementsAre("a", "end of answer", "acked", "refused"));
}

}  // namespace
}  // namespace delayq
