// A rate's tokens while they are lent: taken for a call to the engine that is not answered yet.
#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using support::ids_of;
using support::PendingPop;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Millis kLong = std::chrono::minutes{30};
constexpr Millis kDay = std::chrono::hours{24};
constexpr std::string_view kUrl = "http://receiver.example/hook";

/// The engine answers only in queue_.run(): calls before it are pending at the same time.
class LentTokens : public testing::Test {
 protected:
  LentTokens() { queue_.queue().set_delivery_listener(&told_); }

  struct PendingDelivery {
    std::shared_ptr<std::optional<std::vector<support::Taken>>> taken =
        std::make_shared<std::optional<std::vector<support::Taken>>>();
  };
  PendingDelivery begin_delivery(Outlet outlet, uint32_t count) {
    PendingDelivery pending;
    queue_.queue().take_for_delivery(queue_.now(), {.topic = "t", .outlet = outlet, .count = count},
                                     [taken = pending.taken](Result<PopAnswer> answer) {
                                       ASSERT_TRUE(answer.ok());
                                       *taken = support::seen(*answer);
                                     });
    return pending;
  }

  class Told final : public DeliveryListener {
   public:
    void on_deliverable(std::string_view, Outlet) override { ++count; }
    int count = 0;
  };

  Told told_;
  MemoryEngine engine_;
  support::QueueDriver queue_{engine_};
};

TEST_F(LentTokens, AWaitingPopGetsTheJobThoughADeliveryHasTheTokens) {
  queue_.set("t", {.rate = Rate{3, kDay}, .concurrency = 2});
  queue_.push({.topic = "t", .id = "a"});
  const PendingDelivery delivery = begin_delivery(Outlet::kCallback, 10);
  const PendingPop pop = queue_.begin_pop("t", kLong);
  queue_.run();
  EXPECT_THAT(**delivery.taken, IsEmpty());
  ASSERT_TRUE(pop.answered()) << "not tomorrow";
  EXPECT_THAT(ids_of(pop.jobs()), ElementsAre("a"));
}

TEST_F(LentTokens, SoDoesAPopThatDoesNotWait) {
  queue_.set("t", {.rate = Rate{1, kDay}});
  queue_.push({.topic = "t", .id = "a"});
  begin_delivery(Outlet::kCallback, 10);
  const PendingPop pop = queue_.begin_pop("t", Millis{0});
  queue_.run();
  ASSERT_TRUE(pop.answered());
  EXPECT_THAT(ids_of(pop.jobs()), ElementsAre("a"));
}

TEST_F(LentTokens, ThatAreUsedLeaveNothingForOthers) {
  queue_.set("t", {.rate = Rate{1, kDay}});
  queue_.push({.topic = "t", .id = "called", .options = {.callback = kUrl}});
  queue_.push({.topic = "t", .id = "popped"});
  const PendingDelivery delivery = begin_delivery(Outlet::kCallback, 10);
  const PendingPop now = queue_.begin_pop("t", Millis{0});
  const PendingPop later = queue_.begin_pop("t", kLong);
  queue_.run();
  EXPECT_THAT(ids_of(**delivery.taken), ElementsAre("called"));
  ASSERT_TRUE(now.answered());
  EXPECT_THAT(now.jobs(), IsEmpty());
  EXPECT_FALSE(later.answered());
}

TEST_F(LentTokens, WhoStandsInLineIsServedWhenTheyComeBack) {
  queue_.set("t", {.rate = Rate{1, kDay}});
  const PendingPop pop = queue_.begin_pop("t", kLong);
  queue_.run();
  begin_delivery(Outlet::kCallback, 10);
  // The topic is reported as ready while the token is lent.
  const PushRequest request{.topic = "t", .id = "a"};
  queue_.queue().push(queue_.now(), {&request, 1}, [](const auto&) {});
  queue_.run();
  ASSERT_TRUE(pop.answered());
  EXPECT_THAT(ids_of(pop.jobs()), ElementsAre("a"));
}

TEST_F(LentTokens, ADeliveryThatGotFewerIsToldWhenTheyComeBack) {
  queue_.set("t", {.rate = Rate{4, kDay}});
  for (const std::string_view id : {"a", "b", "c", "d"})
    queue_.push({.topic = "t", .id = id, .options = {.callback = kUrl}});
  const PendingPop pop = queue_.begin_pop("t", Millis{0}, 3);
  const PendingDelivery delivery = begin_delivery(Outlet::kCallback, 10);
  told_.count = 0;
  queue_.run();
  EXPECT_THAT(pop.jobs(), IsEmpty());
  EXPECT_THAT(ids_of(**delivery.taken), ElementsAre("a"));
  EXPECT_EQ(told_.count, 1) << "three tokens came back";
}

TEST_F(LentTokens, NobodyGoesRoundInCircles) {
  // All have room by the rate and none by the concurrency: each tries once, and then all wait.
  queue_.set("t", {.rate = Rate{1, kDay}, .concurrency = 1});
  queue_.push({.topic = "t", .id = "running"});
  ASSERT_THAT(ids_of(queue_.pop("t")), ElementsAre("running"));
  queue_.set("t", {.rate = Rate{2, kDay}, .concurrency = 1});
  queue_.push({.topic = "t", .id = "a"});
  queue_.push({.topic = "t", .id = "b", .options = {.callback = kUrl}});
  const PendingPop one = queue_.begin_pop("t", kLong);
  const PendingPop two = queue_.begin_pop("t", kLong);
  begin_delivery(Outlet::kCallback, 10);
  queue_.run();  // fails if the queue never becomes idle
  EXPECT_FALSE(one.answered());
  EXPECT_FALSE(two.answered());
}

TEST_F(LentTokens, AConsumerThatGoesWhileItIsHeldIsGone) {
  queue_.set("t", {.rate = Rate{1, kDay}});
  queue_.push({.topic = "t", .id = "a"});
  begin_delivery(Outlet::kCallback, 10);
  const PendingPop gone = queue_.begin_pop("t", kLong);
  EXPECT_TRUE(queue_.queue().drop_waiter(queue_.now(), gone.waiter()));
  queue_.run();
  EXPECT_THAT(ids_of(queue_.pop("t")), ElementsAre("a"));
}

}  // namespace
}  // namespace delayq
