#include "delivery/fan_out.h"

#include <set>

#include <fmt/format.h>
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
  config.redis.is_there = true;
  return config;
}

class FanningOut : public testing::Test {
 protected:
  FanningOut() { queue_.queue().set_delivery_listener(&fan_out_); }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_, with_redis()};
  Told webhooks_;
  Told redis_;
  std::vector<std::string> stuck_;
  FanOut fan_out_{queue_.queue(), webhooks_, redis_, [this](std::string_view topic, const Error& why) {
                    stuck_.push_back(fmt::format("{}: {}", topic, why.detail));
                  }};
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

TEST_F(FanningOut, WithoutRedisItIsSaidOncePerTopicAndJobsWait) {
  queue_.set("list", {.delivery = Delivery::kRedisList});
  queue_.queue().set_redis_outlet(queue_.now(), {});
  redis_.news();
  webhooks_.news();
  for (const char* id : {"a", "b"}) queue_.push({.topic = "list", .id = id});
  fan_out_.on_deliverable("list", Outlet::kTopic);
  EXPECT_THAT(redis_.news(), IsEmpty());
  EXPECT_THAT(webhooks_.news(), testing::Not(testing::Contains(Pair("list", Outlet::kTopic))));
  ASSERT_THAT(stuck_, testing::SizeIs(1));
  fan_out_.tell_stuck();
  ASSERT_THAT(stuck_, testing::SizeIs(2));
  EXPECT_EQ(
      stuck_.back(),
      "list: delivery = redis_list needs a Redis: say redis_delivery.url in the server's configuration");
}

TEST_F(FanningOut, ARedisThatIsThereAgainIsToldOfAllThatWaits) {
  queue_.set("list", {.delivery = Delivery::kRedisList});
  queue_.queue().set_redis_outlet(queue_.now(), {});
  queue_.push({.topic = "list", .id = "a"});
  redis_.news();
  queue_.queue().set_redis_outlet(queue_.now(), {true, {}});
  EXPECT_THAT(redis_.news(), testing::Contains(Pair("list", Outlet::kTopic)));
  stuck_.clear();
  fan_out_.tell_stuck();
  EXPECT_THAT(stuck_, IsEmpty());
}

TEST_F(FanningOut, KeysOfTheEngineAreNotWrittenTo) {
  queue_.set("list", {.delivery = Delivery::kRedisList, .redis_key = "delayq:{0}:next"});
  queue_.set("delayq:t", {.delivery = Delivery::kRedisStream});
  queue_.set("free", {.delivery = Delivery::kRedisStream, .redis_key = "delayq"});
  redis_.news();
  queue_.queue().set_redis_outlet(queue_.now(), {true, "delayq:"});
  EXPECT_THAT(redis_.news(), testing::Not(testing::Contains(Pair("list", Outlet::kTopic))));
  stuck_.clear();
  fan_out_.tell_stuck();
  EXPECT_THAT(stuck_,
              UnorderedElementsAre(testing::HasSubstr("list: redis_key: keys that begin with delayq:"),
                                   testing::HasSubstr("delayq:t: redis_key")));
}

}  // namespace
}  // namespace delayq::delivery
