#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "queue/topics.h"
#include "tests/support/engine_driver.h"
#include "tests/support/forwarding_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using testing::HasSubstr;

TEST(SettingsBook, ATopicGoesBeforeStoredDefaultsBeforeConfiguredOnesBeforeBuiltIn) {
  MemoryEngine engine;
  QueueConfig config;
  config.defaults = {.attempts = 2, .lease = Millis{2'000}, .concurrency = 2};
  support::QueueDriver queue{engine, config};
  queue.set("*", {.lease = Millis{3'000}, .concurrency = 3});
  queue.set("t", {.concurrency = 4});
  const EffectiveSettings& effective = queue.queue().effective_settings("t");
  EXPECT_EQ(effective.concurrency, 4U);
  EXPECT_EQ(effective.lease, Millis{3'000});
  EXPECT_EQ(effective.attempts, 2U);
  EXPECT_EQ(effective.priority, kDefaultPriority);

  queue.set("*", {});
  EXPECT_EQ(queue.queue().effective_settings("t").lease, Millis{2'000})
      << "a change of the defaults reaches all topics";
  EXPECT_EQ(queue.queue().effective_settings("another").concurrency, 2U);
  queue.set("t", {});
  EXPECT_EQ(queue.queue().effective_settings("t").concurrency, 2U);
}

TEST(SettingsBook, OtherConfiguredDefaultsReachAllTopicsThatSayNothingElse) {
  MemoryEngine engine;
  QueueConfig config;
  config.defaults = {.attempts = 2, .lease = Millis{2'000}, .paused = true};
  support::QueueDriver queue{engine, config};
  queue.set("*", {.attempts = 3});
  queue.set("t", {.concurrency = 4});
  queue.push({.topic = "t", .id = "a"});
  EXPECT_THAT(queue.pop("t"), testing::IsEmpty());

  queue.queue().set_configured_defaults(queue.now(), {.attempts = 9, .lease = Millis{5'000}});
  EXPECT_EQ(queue.queue().effective_settings("t").lease, Millis{5'000});
  EXPECT_EQ(queue.queue().effective_settings("t").attempts, 3U) << "what is stored goes first";
  EXPECT_EQ(queue.queue().effective_settings("another").lease, Millis{5'000});
  EXPECT_EQ(queue.queue().settings("*"), Settings{.attempts = 3});
  EXPECT_EQ(queue.pop("t").size(), 1U) << "nobody says paused any more";
}

/// An engine whose stored settings another server may change, and which delays its answers.
class SharedNotes final : public support::ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;
  void load_settings(Reply<std::vector<TopicSettings>> reply) override {
    ++loads;
    if (!is_slow) return ForwardingEngine::load_settings(std::move(reply));
    slow.push_back(std::move(reply));
  }
  void go_on() {
    is_slow = false;
    for (auto& reply : std::exchange(slow, {})) ForwardingEngine::load_settings(std::move(reply));
  }
  bool poll(EngineListener& listener) override {
    if (std::exchange(is_changed, false)) listener.on_settings_changed();
    return ForwardingEngine::poll(listener);
  }
  bool is_changed = false;
  bool is_slow = false;
  int loads = 0;
  std::vector<Reply<std::vector<TopicSettings>>> slow;
};

TEST(SettingsBook, ManyChangesElsewhereAreReadTogether) {
  MemoryEngine memory;
  SharedNotes engine{memory};
  support::QueueDriver queue{engine};
  engine.loads = 0;
  engine.is_slow = true;
  for (int i = 0; i < 10; ++i) {
    engine.is_changed = true;
    queue.run();
  }
  EXPECT_EQ(engine.loads, 1);
  {
    support::QueueDriver other{memory};
    other.set("t", {.concurrency = 3});
  }
  engine.go_on();
  queue.run();
  EXPECT_EQ(engine.loads, 2) << "once more, for what changed meanwhile";
  EXPECT_EQ(queue.queue().effective_settings("t").concurrency, 3U);
}

TEST(SettingsBook, WhatAnotherServerSetHoldsHereToo) {
  MemoryEngine memory;
  SharedNotes engine{memory};
  support::QueueDriver queue{engine};
  queue.set("t", {.paused = true});
  queue.set("u", {.concurrency = 1});
  queue.push({.topic = "t", .id = "a"});
  EXPECT_THAT(queue.pop("t"), testing::IsEmpty());
  {
    support::QueueDriver other{memory};
    other.set("t", {});
    other.set("*", {.lease = Millis{777}});
    other.set("v", {.concurrency = 2});
  }
  engine.is_changed = true;
  queue.run();
  EXPECT_EQ(queue.pop("t").size(), 1U) << "it is paused no more";
  EXPECT_EQ(queue.queue().settings("t"), Settings{});
  EXPECT_EQ(queue.queue().settings("u"), Settings{.concurrency = 1});
  EXPECT_EQ(queue.queue().effective_settings("v").concurrency, 2U);
  EXPECT_EQ(queue.queue().effective_settings("u").lease, Millis{777});
}

TEST(SettingsBook, SettingsSurviveARestart) {
  MemoryEngine engine;
  const Settings settings{
      .attempts = 3, .paused = true, .delivery = Delivery::kPull, .callback = "http://x.example/"};
  {
    support::QueueDriver queue{engine};
    queue.set("t", settings);
    queue.set("*", {.lease = Millis{777}});
    queue.set("gone", {.paused = true});
    queue.resume("gone");
    queue.push({.topic = "t", .id = "a"});
  }
  support::QueueDriver queue{engine};
  EXPECT_EQ(queue.queue().settings("t"), settings);
  EXPECT_EQ(queue.queue().settings("*"), Settings{.lease = Millis{777}});
  EXPECT_EQ(queue.queue().settings("gone"), Settings{});
  EXPECT_THAT(queue.pop("t"), testing::IsEmpty()) << "it is still paused";
}

TEST(SettingsBook, SettingsOutOfRangeAreRefusedAndNothingChanges) {
  MemoryEngine engine;
  support::QueueDriver queue{engine};
  queue.set("t", {.lease = Millis{500}});
  const auto set = [&](std::string_view name, Settings settings) {
    return queue.ask<void>("set_settings", [&](auto reply) {
      queue.queue().set_settings(queue.now(), name, std::move(settings), std::move(reply));
    });
  };
  const Status refused = set("t", {.lease = Millis{1}});
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(refused.error().op, "settings");
  EXPECT_EQ(queue.queue().settings("t").lease, Millis{500});
  EXPECT_THAT(set("no/topic", {}).error().detail, HasSubstr("topic"));
}

TEST(SettingsBook, JobsGoToRedisOnlyWhereThereIsOne) {
  const auto set = [](bool has_redis) {
    MemoryEngine engine;
    QueueConfig config;
    config.redis.is_there = has_redis;
    support::QueueDriver queue{engine, config};
    return queue.ask<void>("set_settings", [&](auto reply) {
      queue.queue().set_settings(queue.now(), "t", {.delivery = Delivery::kRedisStream}, std::move(reply));
    });
  };
  EXPECT_TRUE(set(true).ok());
  const Status refused = set(false);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().detail,
              HasSubstr("delivery = redis_stream needs a Redis: say redis_delivery.url"));
}

TEST(SettingsBook, JobsGoToKafkaOnlyWhereThereIsOneAndTheTopicHasANameThere) {
  const auto set = [](bool has_kafka, std::string_view topic, Settings settings) {
    MemoryEngine engine;
    QueueConfig config;
    config.has_kafka = has_kafka;
    support::QueueDriver queue{engine, config};
    settings.delivery = Delivery::kKafkaTopic;
    return queue.ask<void>("set_settings", [&](auto reply) {
      queue.queue().set_settings(queue.now(), topic, settings, std::move(reply));
    });
  };
  EXPECT_TRUE(set(true, "orders", {}).ok());
  EXPECT_TRUE(set(true, "订单", {.kafka_topic = "orders"}).ok());
  const Status nameless = set(true, "订单", {});
  EXPECT_EQ(nameless.error().field, "kafka_topic");
  EXPECT_THAT(nameless.error().detail, HasSubstr("kafka_topic is missing"));
  const Status refused = set(false, "orders", {});
  EXPECT_EQ(refused.error().field, "delivery");
  EXPECT_THAT(refused.error().detail, HasSubstr("delivery = kafka_topic needs Kafka: say kafka.brokers"));
}

TEST(SettingsBook, StoredSettingsThatCannotBeReadAreToldAndTheOthersHold) {
  MemoryEngine engine;
  support::EngineDriver before{engine};
  before.store_settings("bad", "garbage");
  before.store_settings("good", encode_settings({.concurrency = 9}));
  Queue queue{engine, {}, 1};
  std::optional<Status> started;
  queue.start(support::kStart, [&started](Status status) { started = std::move(status); });
  while (queue.poll(support::kStart)) {
  }
  ASSERT_TRUE(started.has_value());
  EXPECT_EQ(started->error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(started->error().detail, HasSubstr("\"bad\""));
  EXPECT_EQ(queue.effective_settings("good").concurrency, 9U);
}

}  // namespace
}  // namespace delayq
