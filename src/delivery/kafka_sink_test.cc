#include "delivery/kafka_sink.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "delivery/delivery_loop.h"
#include "delivery/sink.h"
#include "engine/memory/memory_engine.h"
#include "queue/carried_record.h"
#include "tests/support/fake_producer.h"
#include "tests/support/queue_driver.h"

namespace delayq::delivery {
namespace {

using std::chrono::seconds;
using support::at;
using support::FakeProducer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

QueueConfig with_kafka() {
  QueueConfig config;
  config.has_kafka = true;
  return config;
}

Error missing() { return {ErrorCode::kNotFound, "kafka", "orders: Unknown topic"}; }

class ToKafka : public testing::Test {
 protected:
  explicit ToKafka(KafkaSinkOptions options = {}) : sink_(options) {
    sink_.set_producer(&producer_);
    loop_.add(sink_);
    queue_.queue().set_delivery_listener(&loop_);
    sink_.set_log([this](std::string_view topic, std::string_view why) {
      logged_.push_back(fmt::format("{}: {}", topic, why));
    });
  }

  /// Until nothing moves any more. Returns when the loop wants to be called next.
  Moment settle() {
    Moment next = kNever;
    for (int rounds = 0; rounds < 10'000; ++rounds) {
      loop_.hear();
      queue_.queue().tick(queue_.now());
      next = loop_.tick(queue_.now());
      const bool queue_moved = queue_.queue().poll(queue_.now());
      const bool loop_moved = loop_.poll(queue_.now());
      if (!queue_moved && !loop_moved) return next;
    }
    ADD_FAILURE() << "it never comes to rest";
    return next;
  }
  Moment settle_at(Moment moment) {
    queue_.go_to(moment);
    return settle();
  }
  void set(std::string_view topic, Settings settings) {
    settings.delivery = Delivery::kKafkaTopic;
    if (!settings.backoff) settings.backoff = StepBackoff{{seconds{1}}};
    queue_.set(topic, settings);
  }
  void push(std::string_view topic, std::string_view id) {
    queue_.push({.topic = topic, .id = id, .body = "body of it", .at = at(0)});
  }
  std::vector<std::string> open_topics() const {
    std::vector<std::string> topics;
    for (const auto& made : producer_.open()) topics.push_back(made.topic);
    return topics;
  }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_, with_kafka()};
  FakeProducer producer_;
  KafkaSink sink_;
  std::vector<std::string> logged_;
  DeliveryLoop loop_{queue_.queue(), 1};
};

TEST_F(ToKafka, ARecordHasTheBodyTheIdAsItsKeyAndFourHeaders) {
  set("order", {});
  push("order", "7");
  settle();
  ASSERT_THAT(producer_.open(), SizeIs(1));
  const FakeProducer::Made& made = producer_.open()[0];
  EXPECT_EQ(made.topic, "order");
  EXPECT_EQ(made.key, "7");
  EXPECT_EQ(made.value, "body of it");
  const std::string due = made.headers.at("delayq-job-due");
  EXPECT_THAT(made.headers,
              UnorderedElementsAre(Pair("delayq-job-id", "7"), Pair("delayq-job-topic", "order"),
                                   Pair("delayq-job-due", due), Pair("delayq-job-attempt", "1")));
  EXPECT_THAT(due, testing::EndsWith(".000Z"));
}

TEST_F(ToKafka, SettingsChooseTopicKeyAndContent) {
  set("a", {.kafka_topic = "elsewhere", .kafka_key = KafkaKey::kGroup, .kafka_content = KafkaContent::kId});
  set("b", {.kafka_key = KafkaKey::kNone, .kafka_content = KafkaContent::kJob});
  queue_.push({.topic = "a", .id = "1", .group = "customer", .body = "x", .at = at(0)});
  queue_.push({.topic = "a", .id = "2", .body = "x", .at = at(0)});
  queue_.push({.topic = "b", .id = "3", .body = "x", .at = at(0)});
  settle();
  ASSERT_THAT(producer_.open(), SizeIs(3));
  EXPECT_EQ(producer_.open()[0].topic, "elsewhere");
  EXPECT_EQ(producer_.open()[0].key, "customer");
  EXPECT_EQ(producer_.open()[0].value, "1");
  EXPECT_EQ(producer_.open()[0].headers.at("delayq-job-topic"), "a");
  EXPECT_EQ(producer_.open()[1].key, std::nullopt);
  EXPECT_EQ(producer_.open()[2].key, std::nullopt);
  EXPECT_THAT(producer_.open()[2].value.value_or(""), HasSubstr(R"("id":"3")"));
}

TEST_F(ToKafka, OurHeadersCanBeLeftOutButNotThoseOfTheJob) {
  CarriedRecord record;
  record.headers = {{"trace", "1"}};
  std::string carried;
  ASSERT_TRUE(encode_carried_record(record, carried).ok());
  for (const auto& [topic, headers] :
       {std::pair{"id", KafkaHeaders::kId}, std::pair{"none", KafkaHeaders::kNone}}) {
    set(topic, {.kafka_headers = headers});
    push(topic, "plain");
    queue_.push({.topic = topic, .id = "came", .at = at(0), .options = {.carried = carried}});
    settle();
  }
  ASSERT_THAT(producer_.open(), SizeIs(4));
  EXPECT_THAT(producer_.open()[0].headers, ElementsAre(Pair("delayq-job-id", "plain")));
  EXPECT_THAT(producer_.open()[1].headers, ElementsAre(Pair("delayq-job-id", "came"), Pair("trace", "1")));
  EXPECT_THAT(producer_.open()[2].headers, IsEmpty());
  EXPECT_THAT(producer_.open()[3].headers, ElementsAre(Pair("trace", "1")));
}

TEST_F(ToKafka, AJobThatWasARecordLeavesAsItCame) {
  set("order", {});
  CarriedRecord record;
  record.key = "customer";
  record.headers = {{"trace", "1"}, {"delayq-job-id", "of an earlier job"}, {"none", std::nullopt}};
  std::string carried;
  ASSERT_TRUE(encode_carried_record(record, carried).ok());
  JobOptions options{.kafka_topic = "elsewhere", .carried = carried};
  queue_.push({.topic = "order", .id = "1", .body = "x", .at = at(0), .options = options});
  std::string keyless;
  ASSERT_TRUE(encode_carried_record({.key = {}, .is_tombstone = true, .headers = {}}, keyless).ok());
  queue_.push({.topic = "order", .id = "2", .at = at(0), .options = {.carried = keyless}});
  settle();
  ASSERT_THAT(producer_.open(), SizeIs(2));
  const FakeProducer::Made& first = producer_.open()[0];
  EXPECT_EQ(first.topic, "elsewhere");
  EXPECT_EQ(first.key, "customer");
  EXPECT_EQ(first.value, "x");
  EXPECT_EQ(first.headers.at("trace"), "1");
  EXPECT_EQ(first.headers.at("none"), "(none)");
  EXPECT_EQ(first.headers.at("delayq-job-id"), "1");
  const FakeProducer::Made& second = producer_.open()[1];
  EXPECT_EQ(second.topic, "order");
  EXPECT_EQ(second.key, std::nullopt);
  EXPECT_EQ(second.value, std::nullopt) << "a tombstone stays one";
  producer_.confirm_all();
  settle();
  EXPECT_EQ(queue_.get("order", "1")->outcome, "elsewhere[3]@40");
}

TEST_F(ToKafka, AJobIsDoneWhenItIsConfirmedAndSaysWhereItIs) {
  set("order", {});
  push("order", "7");
  settle();
  EXPECT_EQ(queue_.state_of("order", "7"), JobState::kReserved);
  producer_.confirm();
  settle();
  EXPECT_EQ(queue_.state_of("order", "7"), JobState::kDone);
  EXPECT_EQ(queue_.get("order", "7")->outcome, "order[3]@40");
  EXPECT_EQ(sink_.figures().delivered, 1U);
}

TEST_F(ToKafka, AMissingTopicFailsTheJobAndTheNextAttemptSaysSo) {
  set("order", {});
  push("order", "7");
  settle();
  producer_.fail(missing());
  settle();
  EXPECT_EQ(queue_.state_of("order", "7"), JobState::kDelayed);
  EXPECT_EQ(queue_.get("order", "7")->outcome, "kafka: orders: Unknown topic");
  settle_at(at(2'000));
  ASSERT_THAT(producer_.open(), SizeIs(1));
  EXPECT_EQ(producer_.open()[0].headers.at("delayq-job-attempt"), "2");
  EXPECT_EQ(sink_.figures().failed, 1U);
}

TEST_F(ToKafka, WhatIsRefusedInABatchIsWrittenAgainAloneAndOnlyTheCulpritFails) {
  const Error too_large{ErrorCode::kTooLarge, "kafka", "order: too large"};
  set("order", {});
  for (const char* id : {"a", "large", "c"}) push("order", id);
  settle();
  ASSERT_THAT(producer_.open(), SizeIs(3));
  producer_.fail_all(too_large);
  std::vector<std::string> seen;
  for (int rounds = 0; rounds < 3; ++rounds) {
    settle();
    ASSERT_THAT(producer_.open(), SizeIs(1)) << "one by one";
    seen.push_back(producer_.open()[0].headers.at("delayq-job-id"));
    EXPECT_EQ(producer_.open()[0].headers.at("delayq-job-attempt"), "1") << "that was not counted";
    if (seen.back() == "large") {
      producer_.fail(too_large);
    } else {
      producer_.confirm();
    }
  }
  settle();
  EXPECT_THAT(seen, ElementsAre("a", "large", "c"));
  EXPECT_EQ(queue_.state_of("order", "a"), JobState::kDone);
  EXPECT_EQ(queue_.state_of("order", "c"), JobState::kDone);
  EXPECT_EQ(queue_.state_of("order", "large"), JobState::kDelayed);
  for (const char* id : {"d", "e"}) push("order", id);
  settle();
  EXPECT_THAT(producer_.open(), SizeIs(2)) << "in batches again";
}

TEST_F(ToKafka, ARecordThatIsRefusedAtOnceFails) {
  set("order", {});
  producer_.set_refusal(missing());
  push("order", "7");
  settle();
  EXPECT_EQ(queue_.state_of("order", "7"), JobState::kDelayed);
  EXPECT_EQ(queue_.get("order", "7")->attempts, 1U);
}

TEST_F(ToKafka, WithoutABrokerNothingIsTaken) {
  set("order", {});
  producer_.set_connected(false);
  push("order", "7");
  const Moment next = settle();
  EXPECT_EQ(queue_.state_of("order", "7"), JobState::kReady);
  EXPECT_LE(next, queue_.now() + seconds{1}) << "it looks again";
  EXPECT_FALSE(sink_.figures().connected);
  producer_.set_connected(true);
  settle_at(next);
  EXPECT_THAT(producer_.open(), SizeIs(1));
}

TEST_F(ToKafka, JobsComeBackUncountedWhenTheBrokerStaysAway) {
  set("order", {});
  for (const char* id : {"a", "b", "c"}) push("order", id);
  settle();
  ASSERT_THAT(producer_.open(), SizeIs(3));
  producer_.set_connected(false);
  producer_.fail_all(FakeProducer::away());
  settle();
  for (const char* id : {"a", "b", "c"}) {
    EXPECT_EQ(queue_.state_of("order", id), JobState::kReady);
    EXPECT_EQ(queue_.get("order", id)->attempts, 0U);
  }
  EXPECT_EQ(sink_.figures().given_back, 3U);
  producer_.set_connected(true);
  EXPECT_THAT(producer_.open(), IsEmpty());
  settle_at(queue_.now() + seconds{5});
  ASSERT_THAT(producer_.open(), SizeIs(3));
  EXPECT_EQ(producer_.open()[0].value, "body of it");
  EXPECT_EQ(producer_.open()[0].headers.at("delayq-job-id"), "a") << "in their places in line";
  EXPECT_THAT(logged_, IsEmpty()) << "whoever watches the connection tells it";
}

TEST_F(ToKafka, ATopicWhoseLeadersAreAwayRestsAloneAndThatIsToldOnce) {
  set("stuck", {});
  set("free", {});
  for (const char* id : {"a", "b"}) push("stuck", id);
  settle();
  producer_.fail_all(FakeProducer::away());
  settle();
  push("free", "c");
  push("stuck", "d");
  settle();
  EXPECT_THAT(open_topics(), ElementsAre("free"));
  producer_.confirm_all();
  EXPECT_THAT(logged_, ElementsAre("stuck: timed out"));
  settle_at(queue_.now() + seconds{2});
  EXPECT_THAT(open_topics(), ElementsAre("stuck", "stuck", "stuck"));
  producer_.fail_all(FakeProducer::away());
  settle();
  EXPECT_THAT(open_topics(), IsEmpty());
  settle_at(queue_.now() + seconds{1});
  EXPECT_THAT(open_topics(), IsEmpty()) << "each rest is longer";
  settle_at(queue_.now() + seconds{2});
  producer_.confirm_all();
  settle();
  EXPECT_EQ(queue_.state_of("stuck", "a"), JobState::kDone);
  EXPECT_EQ(queue_.get("stuck", "a")->attempts, 1U);
  EXPECT_THAT(logged_, ElementsAre("stuck: timed out", "stuck: "));
}

TEST_F(ToKafka, AFullBufferGivesJobsBackToTheirPlacesInLine) {
  set("order", {});
  producer_.set_most(2);
  for (const char* id : {"a", "b", "c", "d"}) push("order", id);
  settle();
  EXPECT_THAT(producer_.open(), SizeIs(2));
  EXPECT_EQ(queue_.count("order", JobState::kReady), 2U);
  producer_.confirm_all();
  for (int rounds = 0; rounds < 10 && queue_.count("order", JobState::kDone) < 4; ++rounds) {
    settle_at(queue_.now() + seconds{1});
    producer_.confirm_all();
  }
  EXPECT_EQ(queue_.count("order", JobState::kDone), 4U);
  EXPECT_EQ(queue_.get("order", "d")->attempts, 1U);
}

TEST_F(ToKafka, ABrokenProducerIsReplaced) {
  set("order", {});
  push("order", "a");
  settle();
  producer_.set_broken(true);
  producer_.fail_all(FakeProducer::away());
  settle();
  EXPECT_EQ(queue_.state_of("order", "a"), JobState::kReady);
  FakeProducer other;
  sink_.set_producer(&other);
  settle_at(queue_.now() + seconds{5});
  EXPECT_THAT(other.open(), SizeIs(1));
  sink_.set_producer(&producer_);
}

TEST_F(ToKafka, AStopWithoutABrokerGivesEverythingBackAtOnce) {
  set("order", {});
  push("order", "a");
  settle();
  producer_.set_connected(false);
  loop_.stop(queue_.now(), seconds{10});
  settle();
  EXPECT_EQ(queue_.state_of("order", "a"), JobState::kReady);
  EXPECT_EQ(queue_.get("order", "a")->attempts, 0U);
}

TEST_F(ToKafka, AStopLetsTheBrokerConfirmWhatIsUnderWay) {
  set("order", {});
  push("order", "a");
  settle();
  loop_.stop(queue_.now(), seconds{10});
  settle();
  EXPECT_EQ(queue_.state_of("order", "a"), JobState::kReserved);
  producer_.confirm_all();
  settle();
  EXPECT_EQ(queue_.state_of("order", "a"), JobState::kDone);
}

class Narrow : public ToKafka {
 protected:
  Narrow() : ToKafka({.in_flight = 4}) {}
};

TEST_F(Narrow, OneTopicHasAtMostHalfOfTheRoom) {
  set("slow", {});
  set("quick", {});
  for (const char* id : {"a", "b", "c", "d", "e"}) push("slow", id);
  settle();
  EXPECT_THAT(open_topics(), ElementsAre("slow", "slow"));
  push("quick", "f");
  settle();
  EXPECT_THAT(open_topics(), ElementsAre("slow", "slow", "quick"));
  producer_.confirm();
  settle();
  EXPECT_THAT(open_topics(), ElementsAre("slow", "quick", "slow")) << "goes on as there is room";
  for (int rounds = 0; rounds < 10; ++rounds) {
    producer_.confirm_all();
    settle();
  }
  EXPECT_EQ(queue_.count("slow", JobState::kDone), 5U);
  EXPECT_EQ(queue_.count("quick", JobState::kDone), 1U);
}

TEST_F(Narrow, SeveralTopicsCanShareATopicInKafka) {
  set("a", {.kafka_topic = "all"});
  set("b", {.kafka_topic = "all"});
  for (const char* id : {"1", "2", "3"}) push("a", id), push("b", id);
  for (int rounds = 0; rounds < 10; ++rounds) {
    settle();
    EXPECT_LE(producer_.open().size(), 2U);
    producer_.confirm_all();
  }
  EXPECT_EQ(queue_.count("a", JobState::kDone), 3U);
  EXPECT_EQ(queue_.count("b", JobState::kDone), 3U);
}

}  // namespace
}  // namespace delayq::delivery
