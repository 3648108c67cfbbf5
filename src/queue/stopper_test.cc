#include "queue/stopper.h"

#include <array>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "tests/support/forwarding_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using support::at;
using support::PendingPop;
using support::Taken;
using testing::IsEmpty;

/// An engine that can stop answering, like one whose disk is full.
class StallingEngine final : public support::ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;
  void flush(Reply<bool> reply) override {
    ++flushes;
    if (fails_to_flush) reply = failing(std::move(reply));
    stalls_flushes ? stalled.push_back([reply = std::move(reply)]() mutable { reply(true); })
                   : ForwardingEngine::flush(std::move(reply));
  }
  void counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) override {
    stalls_counts ? stalled.push_back([reply = std::move(reply)]() mutable { reply(TopicCounts{}); })
                  : ForwardingEngine::counts(now, topic, std::move(reply));
  }
  bool poll(EngineListener& listener) override {
    const bool any = ForwardingEngine::poll(listener);
    if (stalls_flushes || stalls_counts) return any;
    for (auto& answer : std::exchange(stalled, {})) answer();
    return any;
  }

  int flushes = 0;
  bool stalls_flushes = false;
  bool stalls_counts = false;
  bool fails_to_flush = false;
  std::vector<absl::AnyInvocable<void()>> stalled;

 private:
  static Reply<bool> failing(Reply<bool> reply) {
    return [reply = std::move(reply)](const Result<bool>&) mutable {
      reply(Error{ErrorCode::kDiskFull, "journal", "broken"});
    };
  }
};

class StopperTest : public testing::Test {
 protected:
  void stop(Millis grace) {
    queue_.queue().stop(queue_.now(), grace,
                        [this](Result<StopReport> report) { stopped_ = std::move(report); });
  }
  Taken reserve(std::string_view id) {
    queue_.push({.topic = "t", .id = id});
    return queue_.pop_one("t");
  }

  MemoryEngine memory_;
  StallingEngine engine_{memory_};
  support::QueueDriver queue_{engine_};
  std::optional<Result<StopReport>> stopped_;
};

TEST_F(StopperTest, WithNothingOutItStopsAtOnce) {
  queue_.push({.topic = "t", .id = "a"});
  stop(Millis{5'000});
  EXPECT_FALSE(stopped_.has_value());
  queue_.run();
  ASSERT_TRUE(stopped_.has_value());
  EXPECT_EQ((*stopped_)->leases_left, 0U);
  EXPECT_EQ(engine_.flushes, 1);
}

TEST_F(StopperTest, NewPushesAndPopsAreRefused) {
  reserve("a");
  stop(Millis{5'000});
  const auto report = queue_.ask<PushReport>("push", [&](auto reply) {
    queue_.queue().push(queue_.now(), std::array{PushRequest{.topic = "t"}}, std::move(reply));
  });
  EXPECT_EQ(report.error().code, ErrorCode::kStopping);
  const PendingPop pop = queue_.begin_pop("t", Millis{100});
  queue_.run();
  EXPECT_EQ(pop.error().code, ErrorCode::kStopping);
}

TEST_F(StopperTest, ItIsReadyUntilItStops) {
  const auto ready = [&] {
    return queue_.ask<void>("ready",
                            [&](auto reply) { queue_.queue().ready(queue_.now(), std::move(reply)); });
  };
  EXPECT_TRUE(ready().ok());
  reserve("a");
  stop(Millis{5'000});
  EXPECT_EQ(ready().error().code, ErrorCode::kStopping);
}

TEST_F(StopperTest, WhoWaitsIsSentHome) {
  const PendingPop idle = queue_.begin_pop("t", Millis{60'000});
  queue_.run();
  const PendingPop busy = queue_.begin_pop("t", Millis{60'000});
  stop(Millis{5'000});
  queue_.run();
  EXPECT_THAT(idle.jobs(), IsEmpty());
  EXPECT_THAT(busy.jobs(), IsEmpty());
}

TEST_F(StopperTest, LetsHandedOutJobsBeFinished) {
  const Taken a = reserve("a");
  const Taken b = reserve("b");
  stop(Millis{5'000});
  EXPECT_EQ(queue_.run(), at(5'000)) << "it asks to be called when the grace period ends";
  EXPECT_FALSE(stopped_.has_value());
  queue_.run_to(at(1'000));
  EXPECT_TRUE(queue_.ack(a.lease).ok());
  queue_.run();
  EXPECT_FALSE(stopped_.has_value());
  EXPECT_TRUE(queue_.nack({.lease = b.lease, .delay = Millis{9'000}}).ok());
  queue_.run();
  ASSERT_TRUE(stopped_.has_value());
  EXPECT_EQ((*stopped_)->leases_left, 0U);
}

TEST_F(StopperTest, TheGracePeriodEnds) {
  const Taken a = reserve("a");
  reserve("b");
  stop(Millis{5'000});
  queue_.run_to(at(4'999));
  EXPECT_FALSE(stopped_.has_value());
  queue_.run_to(at(5'000));
  ASSERT_TRUE(stopped_.has_value());
  EXPECT_EQ((*stopped_)->leases_left, 2U);
  EXPECT_TRUE(queue_.ack(a.lease).ok()) << "the engine is still there";
}

TEST_F(StopperTest, AnEngineThatDoesNotFlushIsGivenUp) {
  engine_.stalls_flushes = true;
  stop(Millis{5'000});
  EXPECT_EQ(queue_.run(), at(0) + Stopper::kLongestFlush);
  queue_.run_to(at(9'999));
  EXPECT_FALSE(stopped_.has_value());
  queue_.run_to(at(10'000));
  ASSERT_TRUE(stopped_.has_value());
  EXPECT_EQ(stopped_->error().detail, "no answer within 10 s");
}

TEST_F(StopperTest, AnAnswerThatComesAfterThatChangesNothing) {
  engine_.stalls_flushes = true;
  stop(Millis{0});
  queue_.run();
  queue_.run_to(at(10'000));
  ASSERT_TRUE(stopped_.has_value());
  stopped_.reset();
  engine_.stalls_flushes = false;
  queue_.run_to(at(11'000));
  EXPECT_FALSE(stopped_.has_value());
}

TEST_F(StopperTest, AnEngineThatDoesNotCountIsGivenUpAndStillFlushed) {
  reserve("a");
  engine_.stalls_counts = true;
  stop(Millis{5'000});
  queue_.run();
  queue_.run_to(at(5'000));
  EXPECT_EQ(engine_.flushes, 0);
  queue_.run_to(at(5'000) + Stopper::kLongestCount);
  EXPECT_EQ(engine_.flushes, 1);
  ASSERT_TRUE(stopped_.has_value());
  EXPECT_TRUE(stopped_->ok()) << "everything is flushed";
}

TEST_F(StopperTest, AnEngineThatAnswersNothingAtAllIsGivenUp) {
  engine_.stalls_counts = engine_.stalls_flushes = true;
  stop(Millis{5'000});
  Moment next = queue_.run();
  for (int i = 0; i < 5 && next != kNever; ++i) next = queue_.run_to(next);
  ASSERT_TRUE(stopped_.has_value());
  EXPECT_EQ(queue_.now(), at(5'000) + Stopper::kLongestCount + Stopper::kLongestFlush);
  EXPECT_EQ(stopped_->error().code, ErrorCode::kUnavailable);
}

TEST_F(StopperTest, AFlushThatFailsIsTold) {
  engine_.fails_to_flush = true;
  stop(Millis{5'000});
  queue_.run();
  ASSERT_TRUE(stopped_.has_value());
  EXPECT_EQ(stopped_->error().code, ErrorCode::kDiskFull);
}

TEST_F(StopperTest, AClockThatGoesBackDoesNotLengthenTheGrace) {
  reserve("a");
  stop(Millis{5'000});
  queue_.run();
  queue_.run_to(at(-3'600'000));
  EXPECT_FALSE(stopped_.has_value());
  queue_.run_to(at(-3'595'000));
  EXPECT_TRUE(stopped_.has_value());
}

TEST_F(StopperTest, ASecondStopIsRefused) {
  reserve("a");
  stop(Millis{5'000});
  const auto second = queue_.ask<StopReport>(
      "stop", [&](auto reply) { queue_.queue().stop(queue_.now(), Millis{1}, std::move(reply)); });
  EXPECT_EQ(second.error().code, ErrorCode::kStopping);
}

}  // namespace
}  // namespace delayq
