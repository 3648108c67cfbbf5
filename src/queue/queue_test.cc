// Tests of the whole queue: engines that fail, clocks that jump, and reproducible runs.
#include "queue/queue.h"

#include <array>

#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "tests/support/forwarding_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using support::at;
using support::ids_of;
using support::kStart;
using support::PendingPop;
using support::Taken;
using testing::ElementsAre;

// ---- an engine that fails

/// Answers every verb with an error while `failing`.
class FailingEngine final : public support::ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;

  void push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) override {
    if (!fail(reply)) ForwardingEngine::push(now, jobs, std::move(reply));
  }
  void take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) override {
    if (!fail(reply)) ForwardingEngine::take(now, request, std::move(reply));
  }
  void ack(Moment now, std::span<const AckRequest> leases, Reply<std::vector<AckOutcome>> reply) override {
    if (!fail(reply)) ForwardingEngine::ack(now, leases, std::move(reply));
  }
  void nack(Moment now, std::span<const NackRequest> leases, Reply<std::vector<NackOutcome>> reply) override {
    ++nacks;
    if (!fail(reply)) ForwardingEngine::nack(now, leases, std::move(reply));
  }
  void extend(Moment now, std::span<const ExtendRequest> leases,
              Reply<std::vector<ExtendAnswer>> reply) override {
    if (!fail(reply)) ForwardingEngine::extend(now, leases, std::move(reply));
  }
  void cancel(Moment now, std::span<const JobRef> jobs, Reply<std::vector<CancelOutcome>> reply) override {
    if (!fail(reply)) ForwardingEngine::cancel(now, jobs, std::move(reply));
  }
  void cancel_group(Moment now, const GroupCancelRequest& request, Reply<GroupCancelAnswer> reply) override {
    if (!fail(reply)) ForwardingEngine::cancel_group(now, request, std::move(reply));
  }
  void reschedule(Moment now, std::span<const RescheduleRequest> jobs,
                  Reply<std::vector<RescheduleOutcome>> reply) override {
    if (!fail(reply)) ForwardingEngine::reschedule(now, jobs, std::move(reply));
  }
  void redrive_oldest(Moment now, std::string_view topic, uint32_t max, Reply<uint64_t> reply) override {
    if (!fail(reply)) ForwardingEngine::redrive_oldest(now, topic, max, std::move(reply));
  }
  void purge(Moment now, std::string_view topic, JobState state, uint32_t max,
             Reply<uint64_t> reply) override {
    if (!fail(reply)) ForwardingEngine::purge(now, topic, state, max, std::move(reply));
  }
  void locate(Moment now, std::string_view id, Among among, Reply<std::vector<std::string>> reply) override {
    if (!fail(reply)) ForwardingEngine::locate(now, id, among, std::move(reply));
  }
  void list(Moment now, const ListRequest& request, Reply<JobPage> reply) override {
    if (!fail(reply)) ForwardingEngine::list(now, request, std::move(reply));
  }
  void counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) override {
    if (!fail(reply)) ForwardingEngine::counts(now, topic, std::move(reply));
  }
  void topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicPage> reply) override {
    if (!fail(reply)) ForwardingEngine::topics(now, cursor, limit, std::move(reply));
  }
  void store_settings(std::string_view topic, std::string_view settings, Reply<bool> reply) override {
    if (!fail(reply)) ForwardingEngine::store_settings(topic, settings, std::move(reply));
  }
  void load_settings(Reply<std::vector<TopicSettings>> reply) override {
    if (!fail(reply)) ForwardingEngine::load_settings(std::move(reply));
  }
  void flush(Reply<bool> reply) override {
    if (!fail(reply)) ForwardingEngine::flush(std::move(reply));
  }
  bool poll(EngineListener& listener) override {
    auto errors = std::exchange(errors_, {});
    for (auto& give : errors) give();
    return ForwardingEngine::poll(listener) || !errors.empty();
  }

  bool failing = false;
  int nacks = 0;

 private:
  template <class T>
  bool fail(Reply<T>& reply) {
    if (!failing) return false;
    errors_.push_back([reply = std::move(reply)]() mutable {
      reply(Error{ErrorCode::kUnavailable, "engine", "the journal has failed"});
    });
    return true;
  }

  std::vector<absl::AnyInvocable<void()>> errors_;
};

class FailingQueue : public testing::Test {
 protected:
  template <class T, class Verb>
  ErrorCode code_of(Verb verb) {
    return queue_.ask<T>("verb", std::move(verb)).error().code;
  }

  MemoryEngine memory_;
  FailingEngine engine_{memory_};
  support::QueueDriver queue_{engine_};
};

TEST_F(FailingQueue, IsNotReady) {
  const auto ready = [&](auto reply) { queue_.queue().ready(queue_.now(), std::move(reply)); };
  EXPECT_TRUE(queue_.ask<void>("ready", ready).ok());
  engine_.failing = true;
  EXPECT_EQ(code_of<void>(ready), ErrorCode::kUnavailable);
}

TEST_F(FailingQueue, BatchesTellTheErrorForEachItemThatWasAsked) {
  queue_.push({.topic = "t", .id = "a"});
  const Taken taken = queue_.pop_one("t");
  engine_.failing = true;
  EXPECT_EQ(queue_.try_push({.topic = "t"}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(queue_.try_push({.topic = "bad topic"}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(queue_.ack(taken.lease).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(queue_.nack({.lease = taken.lease}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(queue_.extend({.lease = taken.lease}).error().code, ErrorCode::kUnavailable);
  const JobRef job{"t", "a"};
  const auto cancelled = queue_.must<std::vector<Result<CancelOutcome>>>("cancel", [&](auto reply) {
    queue_.queue().cancel(queue_.now(), {&job, 1}, std::move(reply));
  });
  EXPECT_EQ(cancelled[0].error().code, ErrorCode::kUnavailable);
  const RescheduleItem move{.job = job, .delay = Millis{1}};
  const auto moved = queue_.must<std::vector<Result<RescheduleOutcome>>>("reschedule", [&](auto reply) {
    queue_.queue().reschedule(queue_.now(), {&move, 1}, std::move(reply));
  });
  EXPECT_EQ(moved[0].error().code, ErrorCode::kUnavailable);

  engine_.failing = false;
  EXPECT_EQ(queue_.totals().unanswered_bytes, 0U);
  EXPECT_EQ(queue_.totals().tallies.of(Tally::kPushed), 1U);
  EXPECT_TRUE(queue_.ack(taken.lease).ok());
}

TEST_F(FailingQueue, SingleVerbsTellTheError) {
  engine_.failing = true;
  Queue& queue = queue_.queue();
  EXPECT_EQ(code_of<CancelOutcome>([&](auto reply) { queue.cancel_by_id(kStart, "a", std::move(reply)); }),
            ErrorCode::kUnavailable);
  EXPECT_EQ(code_of<GroupCancelAnswer>(
                [&](auto reply) { queue.cancel_group(kStart, "g", kAllTopics, std::move(reply)); }),
            ErrorCode::kUnavailable);
  EXPECT_EQ(code_of<uint64_t>([&](auto reply) { queue.redrive_all(kStart, "t", std::move(reply)); }),
            ErrorCode::kUnavailable);
  EXPECT_EQ(
      code_of<uint64_t>([&](auto reply) { queue.redrive_by_error(kStart, "t", "x", std::move(reply)); }),
      ErrorCode::kUnavailable);
  EXPECT_EQ(code_of<uint64_t>([&](auto reply) { queue.purge(kStart, "t", {}, std::move(reply)); }),
            ErrorCode::kUnavailable);
  EXPECT_EQ(code_of<TopicStats>([&](auto reply) { queue.stats(kStart, "t", std::move(reply)); }),
            ErrorCode::kUnavailable);
  EXPECT_EQ(code_of<TotalStats>([&](auto reply) { queue.totals(kStart, std::move(reply)); }),
            ErrorCode::kUnavailable);
  EXPECT_EQ(code_of<TopicSummaries>([&](auto reply) { queue.topics(kStart, "", 5, std::move(reply)); }),
            ErrorCode::kUnavailable);
  EXPECT_EQ(code_of<void>([&](auto reply) { queue.pause(kStart, "t", std::move(reply)); }),
            ErrorCode::kUnavailable);
  EXPECT_EQ(code_of<void>([&](auto reply) { queue.start(kStart, std::move(reply)); }),
            ErrorCode::kUnavailable);
}

TEST_F(FailingQueue, EverybodyWhoWaitsLearnsIt) {
  std::vector<PendingPop> pops;
  for (int i = 0; i < 3; ++i) pops.push_back(queue_.begin_pop("t", Millis{60'000}));
  queue_.run();
  engine_.failing = true;
  const support::JobSpec job("t", "a");
  memory_.push(queue_.now(), std::array{job.view()}, [](const auto&) {});
  queue_.run();
  for (const PendingPop& pop : pops) EXPECT_EQ(pop.error().code, ErrorCode::kUnavailable);
}

TEST_F(FailingQueue, WhatWasFoundBeforeTheErrorIsHandedOver) {
  queue_.push({.topic = "a", .id = "1"});
  const std::string_view topics[] = {"a", "b"};
  const PendingPop pop = queue_.begin_pop({.topics = topics, .count = 5});
  engine_.failing = true;  // the second topic's take
  queue_.run();
  EXPECT_THAT(ids_of(pop.jobs()), ElementsAre("1"));
}

TEST_F(FailingQueue, LeasesThatRanOutAreTriedAgainOnceASecond) {
  queue_.set("t", {.lease = Millis{1'000}});
  queue_.push({.topic = "t", .id = "a"});
  queue_.pop_one("t");
  engine_.failing = true;
  // The engine reports it once; after that the queue must remember it.
  queue_.go_to(at(1'000));
  queue_.queue().tick(queue_.now());
  for (int polls = 0; polls < 10; ++polls) queue_.queue().poll(queue_.now());
  EXPECT_EQ(engine_.nacks, 1);
  engine_.failing = false;
  queue_.queue().poll(queue_.now());
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kReserved);
  queue_.run_to(at(2'000));
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kDelayed);
  EXPECT_EQ(queue_.stats("t").tallies.of(Tally::kExpired), 1U);
}

TEST_F(FailingQueue, AGracefulStopTellsThatTheFlushFailed) {
  std::optional<Result<StopReport>> stopped;
  engine_.failing = true;
  queue_.queue().stop(queue_.now(), Millis{500},
                      [&](Result<StopReport> report) { stopped = std::move(report); });
  queue_.run();
  EXPECT_FALSE(stopped.has_value()) << "the engine may recover within the grace period";
  queue_.run_to(at(500));
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->error().code, ErrorCode::kUnavailable);
}

// ---- clocks that jump

class JumpingClock : public testing::Test {
 protected:
  MemoryEngine engine_;
  support::QueueDriver queue_{engine_};
};

TEST_F(JumpingClock, AWaiterDoesNotWaitLongerWhenTheClockGoesBack) {
  const PendingPop pop = queue_.begin_pop("t", Millis{10'000});
  queue_.run();
  queue_.run_to(at(-3'600'000));
  EXPECT_FALSE(pop.answered());
  EXPECT_EQ(queue_.run_to(at(-3'590'001)), at(-3'590'000));
  queue_.run_to(at(-3'590'000));
  EXPECT_TRUE(pop.answered());
}

TEST_F(JumpingClock, AJobIsNotEarlyWhenTheClockGoesBack) {
  queue_.push({.topic = "t", .id = "a", .delay = Millis{5'000}});
  queue_.run_to(at(-60'000));
  EXPECT_EQ(queue_.pop("t").size(), 0U);
  queue_.run_to(at(4'999));
  EXPECT_EQ(queue_.pop("t").size(), 0U);
  queue_.run_to(at(5'000));
  EXPECT_EQ(queue_.pop("t").size(), 1U);
}

TEST_F(JumpingClock, ALeapAheadMakesEverythingDueAtOnce) {
  queue_.push({.topic = "t", .id = "a", .delay = Millis{5'000}});
  const PendingPop pop = queue_.begin_pop("t", Millis{10'000});
  queue_.run();
  queue_.go_to(kStart + std::chrono::days{400});
  queue_.run();
  EXPECT_TRUE(pop.answered());
}

// ---- the same again

std::vector<std::string> life_of_a_queue(uint64_t seed) {
  MemoryEngine engine;
  Queue queue{engine, {}, seed};
  Moment now = kStart;
  const auto settle = [&] {
    queue.tick(now);
    while (queue.poll(now)) {
    }
  };
  std::vector<std::string> log;
  queue.start(now, [](const Status&) {});
  settle();
  for (int i = 0; i < 50; ++i) {
    queue.push(now, std::array{PushRequest{.topic = "a"}, PushRequest{.topic = "b"}},
               [&](const Result<PushReport>& report) {
                 for (const auto& job : report->jobs) log.emplace_back(job->id);
               });
    const std::string_view topics[] = {"b", "a"};
    queue.pop(now, {.topics = topics, .count = 2, .wait = Millis{50}}, [&](const Result<PopAnswer>& popped) {
      for (const TakenJob& taken : popped->jobs) {
        log.emplace_back(taken.lease);
        const NackItem item{.lease = taken.lease};
        queue.nack(now, {&item, 1}, [&](const auto& nacked) {
          log.push_back(std::to_string(to_unix_ms((*nacked)[0]->retry_at.value())));
        });
      }
    });
    settle();
    now += Millis{997};
  }
  return log;
}

TEST(Repeatability, TheSameSeedGivesTheSameAnswersInTheSameOrder) {
  EXPECT_EQ(life_of_a_queue(1), life_of_a_queue(1));
  EXPECT_NE(life_of_a_queue(1), life_of_a_queue(2));
}

}  // namespace
}  // namespace delayq
