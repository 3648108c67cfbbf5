#include "queue/stopper.h"

#include <array>

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

class FlushCountingEngine final : public support::ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;
  void flush(Reply<bool> reply) override {
    ++flushes;
    ForwardingEngine::flush(std::move(reply));
  }
  int flushes = 0;
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
  FlushCountingEngine engine_{memory_};
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
