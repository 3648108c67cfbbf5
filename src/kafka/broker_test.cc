#include <array>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "kafka/admin.h"
#include "kafka/consumer.h"
#include "kafka/producer.h"
#include "kafka/reader.h"
#include "tests/support/kafka_process.h"
#include "tests/support/redis_process.h"

namespace delayq::kafka {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr Millis kPatience = seconds{30};

/// One broker for all tests here: it takes seconds to start.
class WithBroker : public testing::Test {
 protected:
  static support::KafkaProcess& broker() {
    static support::KafkaProcess broker;
    return broker;
  }
  static std::unique_ptr<Admin> admin() {
    auto opened = open_admin(broker().client());
    EXPECT_TRUE(opened.ok());
    return std::move(*opened);
  }
  static std::unique_ptr<Producer> producer(ProducerOptions options = {}) {
    options.client = broker().client();
    auto opened = open_producer(std::move(options));
    EXPECT_TRUE(opened.ok());
    return std::move(*opened);
  }
  static std::vector<Confirmation> settle(Producer& producer) {
    std::vector<Confirmation> confirmed;
    support::wait_until(
        "all records are confirmed",
        [&] {
          producer.poll(confirmed);
          return producer.outstanding() == 0;
        },
        60);
    return confirmed;
  }
};

TEST_F(WithBroker, TopicsAreCreatedOnceAndDescribed) {
  const auto there = admin();
  const std::array wanted{
      NewTopic{"described", 3, 1, {{"retention.ms", "7200000"}, {"cleanup.policy", "compact,delete"}}},
      NewTopic{"kept", 1, -1, {{"retention.ms", "-1"}}}};
  ASSERT_TRUE(there->create(wanted, kPatience).ok());
  EXPECT_TRUE(there->create(wanted, kPatience).ok()) << "they exist: that is fine";
  std::vector<TopicFacts> found;
  support::wait_until("both are described", [&] {
    const auto facts = there->describe(std::array<std::string, 3>{"kept", "missing", "described"}, kPatience);
    if (facts.ok()) found = *facts;
    return found.size() == 2;
  });
  EXPECT_EQ(found[0].name, "kept");
  EXPECT_EQ(found[0].retention, std::nullopt);
  EXPECT_EQ(found[1].partitions, 3);
  EXPECT_EQ(found[1].replication, 1);
  EXPECT_EQ(found[1].retention, Millis{hours{2}});
  EXPECT_EQ(found[1].cleanup, "compact,delete");
}

TEST_F(WithBroker, ATopicThatCannotBeIsRefusedByItsName) {
  const auto there = admin();
  const Status bad = there->create(std::array{NewTopic{"bad", 1, 1, {{"retention.ms", "soon"}}}}, kPatience);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(bad.error().detail, HasSubstr("bad: "));
  const Status copies = there->create(std::array{NewTopic{"copies", 1, 3, {}}}, kPatience);
  ASSERT_FALSE(copies.ok());
  EXPECT_THAT(copies.error().detail, HasSubstr("copies: "));
}

TEST_F(WithBroker, AMissingTopicFailsAndIsFoundWhenItIsThere) {
  const auto there = producer({.client = {}, .topic_wait = seconds{1}});
  ASSERT_TRUE(there->send({.topic = "later", .value = "x"}, 1).ok());
  const auto missed = settle(*there);
  ASSERT_NE(missed.at(0).error, nullptr);
  EXPECT_EQ(missed[0].error->code, ErrorCode::kNotFound);
  EXPECT_THAT(missed[0].error->detail, HasSubstr("Unknown topic"));
  broker().create({"later", 1, 1, {}});
  support::wait_until(
      "a record arrives",
      [&] {
        if (!there->send({.topic = "later", .value = "x"}, 2).ok()) return false;
        return settle(*there).at(0).error == nullptr;
      },
      60);
}

TEST_F(WithBroker, ARecordThatIsTooLargeForItsTopicIsTheOnlyOneThatFails) {
  broker().create({"small", 1, 1, {{"max.message.bytes", "1000"}}});
  const auto there = producer();
  const std::string large(5'000, 'x');
  ASSERT_TRUE(there->send({.topic = "small", .value = large}, 1).ok());
  const auto first = settle(*there);
  ASSERT_NE(first.at(0).error, nullptr);
  EXPECT_EQ(first[0].error->code, ErrorCode::kTooLarge);
  ASSERT_TRUE(there->send({.topic = "small", .value = "x"}, 2).ok());
  EXPECT_EQ(settle(*there).at(0).error, nullptr);
}

TEST_F(WithBroker, RecordsSurviveARestartOfTheBrokerWithoutGapsOrRepetition) {
  broker().create({"restarted", 1, 1, {}});
  const auto there = producer({.client = {}, .timeout = seconds{60}});
  const auto send = [&](uint64_t from) {
    for (uint64_t i = from; i < from + 500; ++i)
      ASSERT_TRUE(there->send({.topic = "restarted", .value = "x"}, i).ok());
  };
  send(0);
  broker().kill();
  send(500);
  std::vector<Confirmation> confirmed;
  support::wait_until("it is seen that the broker is away", [&] {
    there->poll(confirmed);
    return !there->is_connected();
  });
  broker().start();
  for (Confirmation& each : settle(*there)) confirmed.push_back(std::move(each));
  EXPECT_EQ(confirmed.size(), 1'000U);
  EXPECT_TRUE(there->is_connected());
  for (const Confirmation& each : confirmed) {
    ASSERT_EQ(each.error, nullptr) << each.error->detail;
    EXPECT_EQ(each.offset, static_cast<int64_t>(each.token));
  }
}

TEST_F(WithBroker, SingleRecordsAreReadOneAfterAnotherWithoutAPause) {
  broker().create({"single", 1, 1, {}});
  const auto there = producer();
  constexpr int64_t kRecords = 600;
  for (int64_t i = 0; i < kRecords; ++i)
    ASSERT_TRUE(there->send({.topic = "single", .value = std::to_string(i)}, 1).ok());
  settle(*there);
  const auto reader = std::move(*open_reader({.client = broker().client()}));
  constexpr Moment kNow{};
  constexpr int64_t kReads = 60;
  int64_t answered = 0;
  // With a pause of up to a second each it takes half a minute.
  support::wait_until(
      "all are read",
      [&] {
        reader->poll(kNow);
        if (reader->outstanding() > 0 || answered == kReads) return answered == kReads;
        const int64_t offset = answered * 317 % kRecords;
        reader->read(kNow, "single", 0, offset, [&, offset](const Result<std::optional<std::string>>& value) {
          ASSERT_TRUE(value.ok()) << value.error().detail;
          EXPECT_EQ(*value, std::to_string(offset));
          ++answered;
        });
        return false;
      },
      10);
}

TEST_F(WithBroker, NeighboursThatWereRemovedAreAllFoundMissing) {
  broker().create({"removed", 1, 1, {{"retention.ms", "1"}}});
  const auto there = producer();
  constexpr int64_t kRecords = 10;
  for (int64_t i = 0; i < kRecords; ++i) ASSERT_TRUE(there->send({.topic = "removed", .value = "x"}, 1).ok());
  settle(*there);
  const auto reader = std::move(*open_reader({.client = broker().client()}));
  constexpr Moment kNow{};
  int64_t missing = 0;
  const auto read = [&](int64_t offset) {
    reader->read(kNow, "removed", 0, offset, [&](const Result<std::optional<std::string>>& value) {
      ASSERT_TRUE(value.ok()) << value.error().detail;
      missing += value->has_value() ? 0 : 1;
    });
  };
  const auto all_missing = [&](int64_t count) {
    reader->poll(kNow);
    return missing == count;
  };
  support::wait_until(
      "the retention has removed them",
      [&] {
        if (reader->outstanding() == 0 && missing == 0) read(kRecords - 1);
        return all_missing(1);
      },
      60);
  for (int64_t i = 0; i < kRecords; ++i) read(i);
  support::wait_until("none is waited for", [&] { return all_missing(1 + kRecords); });
}

TEST_F(WithBroker, AConsumerLeavesItsGroupWhileRecordsAreOnTheirWay) {
  broker().create({"left", 4, 1, {}});
  const auto there = producer();
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(there->send({.topic = "left", .value = "x"}, 1).ok());
  }
  settle(*there);
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    const auto consumer =
        std::move(*open_consumer({.client = broker().client(), .group = "leaving", .topics = {"left"}}));
    support::wait_until("partitions are assigned",
                        [&] { return consumer->poll(1, 1).rebalance.has_value(); });
    consumer->close();
    support::wait_until("it has left", [&] {
      if (consumer->poll(1, 1).rebalance) consumer->let_go();
      return consumer->is_closed();
    });
  }
}

}  // namespace
}  // namespace delayq::kafka
