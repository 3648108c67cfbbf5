#include "delivery/fan_out.h"

#include <set>

#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq::delivery {
namespace {

using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class Told final : public DeliveryListener {
 public:
  void on_deliverable(std::string_view topic, Outlet outlet) override { news_.emplace(topic, outlet); }
  std::set<std::pair<std::string, Outlet>> news() { return std::exchange(news_, {}); }

 private:
  std::set<std::pair<std::string, Outlet>> news_;
};

QueueConfig with_redis() {
  QueueConfig config;
  config.delivers_to_redis = true;
  return config;
}

class FanningOut : public testing::Test {
 protected:
  FanningOut() { queue_.queue().set_delivery_listener(&fan_out_); }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_, with_redis()};
  Told webhooks_;
  Told redis_;
  FanOut fan_out_{queue_.queue(), webhooks_, &redis_};
};

TEST_F(FanningOut, EachIsToldOfItsOwnTopics) {
  queue_.set("hook", {.delivery = Delivery::kWebhook, .callback = "http://x.example/"});
  queue_.set("list", {.delivery = Delivery::kRedisList});
  queue_.set("stream", {.delivery = Delivery::kRedisStream});
  webhooks_.news();
  redis_.news();
  for (const char* topic : {"hook", "list", "stream", "pulled"}) queue_.push({.topic = topic, .id = "a"});
  EXPECT_THAT(webhooks_.news(), UnorderedElementsAre(Pair("hook", Outlet::kTopic)));
  EXPECT_THAT(redis_.news(),
              UnorderedElementsAre(Pair("list", Outlet::kTopic), Pair("stream", Outlet::kTopic)));
}

TEST_F(FanningOut, AJobsOwnCallbackIsCalledWhereverItsTopicGoes) {
  queue_.set("list", {.delivery = Delivery::kRedisList});
  redis_.news();
  queue_.push({.topic = "list", .id = "a", .options = {.callback = "http://x.example/"}});
  EXPECT_THAT(webhooks_.news(), UnorderedElementsAre(Pair("list", Outlet::kCallback)));
  EXPECT_THAT(redis_.news(), IsEmpty());
}

TEST_F(FanningOut, WhoHasItNowIsToldWhenThatChanges) {
  queue_.set("t", {.delivery = Delivery::kRedisList});
  queue_.push({.topic = "t", .id = "a"});
  redis_.news();
  queue_.set("t", {.delivery = Delivery::kWebhook, .callback = "http://x.example/"});
  EXPECT_THAT(webhooks_.news(), testing::Contains(Pair("t", Outlet::kTopic)));
  queue_.set("t", {.delivery = Delivery::kRedisStream});
  EXPECT_THAT(redis_.news(), testing::Contains(Pair("t", Outlet::kTopic)));
}

TEST_F(FanningOut, WithoutRedisNobodyIsTold) {
  FanOut alone(queue_.queue(), webhooks_, nullptr);
  queue_.queue().set_delivery_listener(&alone);
  queue_.set("list", {.delivery = Delivery::kRedisList});
  queue_.push({.topic = "list", .id = "a"});
  EXPECT_THAT(webhooks_.news(), testing::Not(testing::Contains(Pair("list", Outlet::kTopic))));
  queue_.queue().set_delivery_listener(&fan_out_);
}

}  // namespace
}  // namespace delayq::delivery
