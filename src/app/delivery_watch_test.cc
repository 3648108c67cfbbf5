#include <vector>

#include <gmock/gmock.h>

#include "app/kafka.h"
#include "app/redis_delivery.h"

namespace delayq {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class DeliveryWatchTest : public testing::Test {
 protected:
  DeliveryWatchTest() { watch.begin(net::redis::Mode::kStandalone, {"redis_delivery.url", true}); }

  void look(bool is_connected, std::string_view error, std::chrono::milliseconds later = {}) {
    now += later;
    watch.look(now, is_connected, error);
  }
  static resp::Value hello(std::string mode) {
    resp::Value value{.type = resp::Value::Type::kArray, .text = {}, .items = {}};
    for (std::string text : {std::string("mode"), std::move(mode)})
      value.items.push_back({.type = resp::Value::Type::kBulk, .text = std::move(text), .items = {}});
    return value;
  }

  std::vector<std::string> lines;
  DeliveryWatch watch{[this](bool is_bad, std::string_view what) {
    lines.push_back((is_bad ? "bad " : "good ") + std::string(what));
  }};
  DeliveryWatch::Clock::time_point now{};
};

TEST_F(DeliveryWatchTest, what_cannot_be_reached_is_told_once_after_a_moment) {
  look(false, "");
  look(false, "127.0.0.1:1: Connection refused");
  EXPECT_THAT(lines, IsEmpty()) << "it may be starting";
  look(false, "127.0.0.1:1: Connection refused", std::chrono::seconds{1});
  look(false, "127.0.0.1:1: Connection refused", std::chrono::seconds{1});
  EXPECT_THAT(lines, ElementsAre("bad redis delivery: jobs wait until Redis takes them: 127.0.0.1:1: "
                                 "Connection refused; is redis_delivery.url right?"));
  look(true, "127.0.0.1:1: Connection refused");
  look(true, "127.0.0.1:1: Connection refused");
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[1], "good redis delivery: Redis takes jobs again");
}

TEST_F(DeliveryWatchTest, a_connection_that_is_soon_back_is_nothing_to_tell) {
  look(true, "");
  look(false, "closed");
  look(true, "closed", std::chrono::milliseconds{900});
  look(false, "closed", std::chrono::minutes{1});
  look(true, "closed");
  EXPECT_THAT(lines, IsEmpty());
}

TEST_F(DeliveryWatchTest, what_no_waiting_mends_is_told_at_once_with_what_would_be_right) {
  look(false, "127.0.0.1:1: AUTH: WRONGPASS invalid username-password pair");
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0],
              AllOf(HasSubstr("WRONGPASS"), HasSubstr("USER:PASSWORD"), HasSubstr("in redis_delivery.url")));
  watch.begin(net::redis::Mode::kStandalone, {"redis_delivery.url", true});
  look(false, "127.0.0.1:1: it is a replica, not a master");
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[1], HasSubstr("name its master in redis_delivery.url"));
}

TEST_F(DeliveryWatchTest, of_the_engines_own_only_what_becomes_of_jobs_is_told) {
  watch.begin(net::redis::Mode::kStandalone, {});
  look(false, "127.0.0.1:1: Connection refused");
  look(false, "127.0.0.1:1: Connection refused", std::chrono::minutes{1});
  EXPECT_THAT(lines, IsEmpty()) << "the engine says it";
  watch.wrote("127.0.0.1:1: Connection refused");
  EXPECT_THAT(lines, SizeIs(1));
}

TEST_F(DeliveryWatchTest, what_writing_and_looking_both_see_is_told_once) {
  watch.wrote("127.0.0.1:1: it closed the connection");
  look(false, "127.0.0.1:1: it closed the connection");
  look(false, "127.0.0.1:1: it closed the connection", std::chrono::seconds{9});
  ASSERT_THAT(lines, SizeIs(1));
  look(true, "");
  EXPECT_THAT(lines, SizeIs(1)) << "a connection is not yet a job that was taken";
  watch.wrote("");
  watch.wrote("");
  EXPECT_THAT(lines, SizeIs(2));
}

TEST_F(DeliveryWatchTest, a_member_of_a_cluster_is_told_once) {
  watch.greeted(hello("standalone"));
  EXPECT_THAT(lines, IsEmpty());
  watch.greeted(hello("cluster"));
  watch.greeted(hello("cluster"));
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr("set redis_delivery.url to redis-cluster://"));
  watch.begin(net::redis::Mode::kCluster, {"redis_delivery.url", true});
  watch.greeted(hello("cluster"));
  EXPECT_THAT(lines, SizeIs(1));
}

TEST_F(DeliveryWatchTest, why_no_broker_of_kafka_can_be_reached_is_told_again_when_it_is_another_reason) {
  KafkaWatch kafka{[this](bool is_bad, std::string_view what) {
    lines.push_back((is_bad ? "bad " : "good ") + std::string(what));
  }};
  const auto see = [&](bool is_connected, std::string_view error) {
    now += std::chrono::seconds{1};
    kafka.look(now, is_connected, error);
  };
  see(false, "b:1: Connection refused (after 1ms in state CONNECT)");
  see(false, "b:1: Connection refused (after 1ms in state CONNECT)");
  see(false, "b:1: Connection refused (after 2ms in state CONNECT)");
  see(false, "b:1: Authentication failed (after 3ms in state AUTH_REQ)");
  see(false, "b:1: Connection refused (after 1ms in state CONNECT)");
  EXPECT_THAT(lines,
              ElementsAre(HasSubstr("bad kafka delivery: jobs wait until a broker can be reached: b:1: "
                                    "Connection refused"),
                          HasSubstr("bad kafka delivery: still no broker: b:1: Authentication failed")));
  for (int i = 0; i < 100; ++i) see(false, std::to_string(i));
  EXPECT_THAT(lines, SizeIs(4)) << "not without end";
  see(true, "");
  EXPECT_EQ(lines.back(), "good kafka delivery: a broker can be reached again");
  EXPECT_THAT(lines, SizeIs(5));
}

TEST_F(DeliveryWatchTest, a_missing_right_is_told_once_for_each_key) {
  watch.refused("RPUSH", "orders", "WRONGTYPE Operation against a key");
  EXPECT_THAT(lines, IsEmpty()) << "that is the job's outcome";
  for (int i = 0; i < 3; ++i) watch.refused("RPUSH", "orders", "NOPERM no");
  watch.refused("XADD", "other", "NOPERM no");
  EXPECT_THAT(lines,
              ElementsAre("bad redis delivery: RPUSH orders: NOPERM no; the user of redis_delivery.url needs "
                          "~orders +rpush",
                          "bad redis delivery: XADD other: NOPERM no; the user of redis_delivery.url needs "
                          "~other +xadd"));
  for (int i = 0; i < 1000; ++i) watch.refused("XADD", std::to_string(i), "NOPERM no");
  EXPECT_THAT(lines, SizeIs(100)) << "not without end";
}

}  // namespace
}  // namespace delayq
