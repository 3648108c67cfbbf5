// What the delivery loop is notified of and gets, and which jobs pops do not get any more.
#include <set>

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
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr std::string_view kUrl = "http://receiver.example/hook";
constexpr Millis kLong = std::chrono::minutes{30};

class Told final : public DeliveryListener {
 public:
  void on_deliverable(std::string_view topic, Outlet outlet) override { news_.emplace(topic, outlet); }
  std::set<std::pair<std::string, Outlet>> news() { return std::exchange(news_, {}); }

 private:
  std::set<std::pair<std::string, Outlet>> news_;
};

class Delivering : public testing::Test {
 protected:
  Delivering() { queue_.queue().set_delivery_listener(&told_); }

  std::vector<Taken> take(std::string_view topic, Outlet outlet, uint32_t count = 10) {
    const DeliveryRequest request{.topic = topic, .outlet = outlet, .count = count};
    return support::seen(queue_.must<PopAnswer>("take_for_delivery", [&](auto reply) {
      queue_.queue().take_for_delivery(queue_.now(), request, std::move(reply));
    }));
  }
  uint64_t give_back(const Taken& taken, Moment when) {
    const GiveBackItem item{taken.lease, when};
    return queue_.must<uint64_t>("give_back", [&](auto reply) {
      queue_.queue().give_back(queue_.now(), std::span(&item, 1), std::move(reply));
    });
  }
  static Settings webhook() {
    Settings settings;
    settings.delivery = Delivery::kWebhook;
    settings.callback = std::string(kUrl);
    return settings;
  }

  Told told_;
  MemoryEngine engine_;
  support::QueueDriver queue_{engine_};
};

TEST_F(Delivering, AJobWithItsOwnCallbackIsNotPopped) {
  queue_.push({.topic = "t", .id = "a", .options = {.callback = kUrl}});
  EXPECT_THAT(told_.news(), ElementsAre(Pair("t", Outlet::kCallback)));
  EXPECT_THAT(queue_.pop("t"), IsEmpty());
  EXPECT_THAT(take("t", Outlet::kTopic), IsEmpty());
  EXPECT_THAT(ids_of(take("t", Outlet::kCallback)), ElementsAre("a"));
}

TEST_F(Delivering, APullTopicTellsNobody) {
  queue_.push({.topic = "t", .id = "a"});
  queue_.run();
  EXPECT_THAT(told_.news(), IsEmpty());
  EXPECT_THAT(take("t", Outlet::kTopic), IsEmpty()) << "those are for pops";
  EXPECT_THAT(ids_of(queue_.pop("t")), ElementsAre("a"));
}

TEST_F(Delivering, ATopicThatCallsBackIsTold) {
  queue_.set("t", webhook());
  told_.news();
  queue_.push({.topic = "t", .id = "a", .delay = Millis{50}});
  queue_.run();
  EXPECT_THAT(told_.news(), IsEmpty());
  queue_.run_to(at(50));
  EXPECT_THAT(told_.news(), ElementsAre(Pair("t", Outlet::kTopic)));
  EXPECT_THAT(ids_of(take("t", Outlet::kTopic)), ElementsAre("a"));
}

TEST_F(Delivering, APopOfATopicThatCallsBackIsRefused) {
  queue_.set("t", webhook());
  const PendingPop pop = queue_.begin_pop("t", kLong);
  queue_.run();
  EXPECT_EQ(pop.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(pop.error().detail, HasSubstr("delivery = webhook"));
}

TEST_F(Delivering, FromPullToWebhookAndBackWhileJobsAreReady) {
  const PendingPop waiting = queue_.begin_pop("t", kLong);
  queue_.run();
  queue_.set("t", webhook());
  queue_.run();
  EXPECT_EQ(waiting.error().code, ErrorCode::kInvalid) << "who waits would wait for nothing";
  queue_.push({.topic = "t", .id = "a"});
  told_.news();
  queue_.set("t", {});
  EXPECT_THAT(take("t", Outlet::kTopic), IsEmpty());
  EXPECT_THAT(ids_of(queue_.pop("t")), ElementsAre("a"));
  queue_.push({.topic = "t", .id = "b"});
  queue_.run();
  told_.news();
  queue_.set("t", webhook());
  EXPECT_THAT(told_.news(), testing::Contains(Pair("t", Outlet::kTopic)));
  EXPECT_THAT(ids_of(take("t", Outlet::kTopic)), ElementsAre("b"));
}

TEST_F(Delivering, PauseHoldsBothAndResumeTells) {
  queue_.pause("t");
  queue_.push({.topic = "t", .id = "a", .options = {.callback = kUrl}});
  EXPECT_THAT(take("t", Outlet::kCallback), IsEmpty());
  told_.news();
  queue_.resume("t");
  EXPECT_THAT(told_.news(), ElementsAre(Pair("t", Outlet::kCallback)));
  EXPECT_THAT(ids_of(take("t", Outlet::kCallback)), ElementsAre("a"));
}

TEST_F(Delivering, TheRateOfATopicCountsAndARefillTells) {
  queue_.set("t", {.rate = Rate{2, std::chrono::seconds{2}}});
  for (int i = 0; i < 3; ++i) queue_.push({.topic = "t", .options = {.callback = kUrl}});
  EXPECT_THAT(take("t", Outlet::kCallback), testing::SizeIs(2));
  queue_.run();
  told_.news();
  queue_.run_to(at(999));
  EXPECT_THAT(told_.news(), IsEmpty());
  queue_.run_to(at(1'000));
  EXPECT_THAT(told_.news(), ElementsAre(Pair("t", Outlet::kCallback)));
  EXPECT_THAT(take("t", Outlet::kCallback), testing::SizeIs(1));
}

TEST_F(Delivering, TheConcurrencyOfATopicCountsBothAndAnEndTells) {
  queue_.set("t", {.concurrency = 1});
  queue_.push({.topic = "t", .id = "popped"});
  queue_.push({.topic = "t", .id = "called", .options = {.callback = kUrl}});
  const Taken popped = queue_.pop_one("t");
  EXPECT_THAT(take("t", Outlet::kCallback), IsEmpty());
  told_.news();
  EXPECT_TRUE(queue_.ack(popped.lease).ok());
  queue_.run();
  EXPECT_THAT(told_.news(), ElementsAre(Pair("t", Outlet::kCallback)));
  EXPECT_THAT(ids_of(take("t", Outlet::kCallback)), ElementsAre("called"));
}

TEST_F(Delivering, GivenBackIsUncounted) {
  queue_.push({.topic = "t", .id = "a", .options = {.callback = kUrl}});
  const std::vector<Taken> first = take("t", Outlet::kCallback);
  EXPECT_EQ(give_back(first.at(0), at(500)), 1U);
  EXPECT_EQ(give_back(first.at(0), at(500)), 0U) << "its lease is over";
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kDelayed);
  told_.news();
  queue_.run_to(at(500));
  EXPECT_THAT(told_.news(), ElementsAre(Pair("t", Outlet::kCallback)));
  EXPECT_EQ(take("t", Outlet::kCallback).at(0).job.attempts, 1U);
}

TEST_F(Delivering, WhatIsReadyAtTheStartIsTold) {
  queue_.set("hook", webhook());
  queue_.push({.topic = "hook"});
  queue_.push({.topic = "own", .options = {.callback = kUrl}});
  queue_.push({.topic = "pulled"});
  Told told;
  Queue second(engine_, QueueConfig{}, 1);
  second.set_delivery_listener(&told);
  bool started = false;
  second.start(queue_.now(), [&](const Status& status) { started = status.ok(); });
  while (!started) second.poll(queue_.now());
  const auto news = told.news();
  EXPECT_TRUE(news.contains({"hook", Outlet::kTopic}));
  EXPECT_TRUE(news.contains({"own", Outlet::kCallback}));
  EXPECT_FALSE(news.contains({"pulled", Outlet::kTopic}));
}

TEST_F(Delivering, ATopicThatCallsBackMustSayWhere) {
  const auto set = [&](Settings settings) {
    return queue_.ask<void>("set", [&](auto reply) {
      queue_.queue().set_settings(queue_.now(), "t", settings, std::move(reply));
    });
  };
  Settings nowhere;
  nowhere.delivery = Delivery::kWebhook;
  EXPECT_THAT(set(nowhere).error().detail, HasSubstr("callback is missing"));
  queue_.set("*", {.callback = std::string(kUrl)});
  EXPECT_TRUE(set(nowhere).ok()) << "the defaults say where";
}

TEST_F(Delivering, WhoGotLessBecauseTheJobsAreLargeIsToldAgain) {
  queue_.set("t", webhook());
  const std::string body(size_t{1} << 20, 'x');
  for (int i = 10; i < 20; ++i) queue_.push({.topic = "t", .id = std::to_string(i), .body = body});
  told_.news();
  EXPECT_EQ(take("t", Outlet::kTopic, 100).size(), 8U);
  EXPECT_THAT(told_.news(), ElementsAre(Pair("t", Outlet::kTopic)));
  EXPECT_THAT(ids_of(take("t", Outlet::kTopic, 100)), ElementsAre("18", "19"));
  EXPECT_THAT(told_.news(), IsEmpty());
}

}  // namespace
}  // namespace delayq
