// A group under Sentinel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/redis_driver.h"
#include "tests/support/redis_sentinels.h"

namespace delayq::net::redis {
namespace {

using support::RedisDriver;
using support::RedisProcess;
using support::RedisSentinels;
using support::text_of;
using testing::HasSubstr;

ClientOptions to(const RedisSentinels& group) {
  ClientOptions options;
  options.mode = Mode::kSentinel;
  options.master_name = RedisSentinels::kMasterName;
  for (const uint16_t port : group.sentinel_ports()) options.addresses.push_back({"127.0.0.1", port});
  options.backoff = Millis{5};
  options.backoff_cap = Millis{50};
  options.reply_timeout = Millis{1000};
  return options;
}

TEST(Sentinel, FollowsTheMasterWhenItIsKilled) {
  RedisSentinels group;
  RedisDriver driver(to(group));
  int times_listening = 0;
  std::string heard;
  driver.client().subscribe(
      "news", [&](std::string_view message) { heard = message; }, [&] { ++times_listening; });
  driver.connect();
  EXPECT_EQ(text_of(driver.call("k", {"SET", "k", "before"})), "OK");
  RedisSentinels::wait_for_replicas(*group.servers()[0], 2);
  driver.turn_until("it listens", [&] { return times_listening == 1; });

  group.servers()[0]->kill();
  EXPECT_EQ(text_of(driver.insist("k", {"SET", "n", "after"})), "OK");
  EXPECT_EQ(text_of(driver.call("k", {"GET", "k"})), "before");
  RedisProcess& master = group.master();
  EXPECT_NE(master.port(), group.servers()[0]->port());
  EXPECT_EQ(text_of(master.command({"GET", "n"})), "after");
  driver.turn_until("it listens again", [&] { return times_listening >= 2; });
  master.command({"PUBLISH", "news", "hello"});
  driver.turn_until("news", [&] { return heard == "hello"; });
}

TEST(Sentinel, FollowsTheMasterWhenItHangs) {
  RedisSentinels group;
  RedisDriver driver(to(group));
  driver.connect();
  RedisProcess& former = *group.servers()[0];
  former.pause();
  EXPECT_EQ(text_of(driver.insist("n", {"SET", "n", "1"})), "OK");
  RedisProcess& master = group.master();
  EXPECT_NE(master.port(), former.port());
  // It wakes up and believes for a while that it is the master; nobody writes there any more.
  former.resume();
  for (int i = 2; i <= 20; ++i) EXPECT_EQ(text_of(driver.call("n", {"INCR", "n"})), std::to_string(i));
  EXPECT_EQ(text_of(master.command({"GET", "n"})), "20");
}

TEST(Sentinel, GoesOnWhenOneSentinelAfterTheOtherIsGone) {
  RedisSentinels group;
  RedisDriver driver(to(group));
  driver.connect();
  group.sentinels()[0]->kill();
  EXPECT_EQ(text_of(driver.call("k", {"SET", "k", "1"})), "OK");
  // The master moves because somebody asks the sentinels for it; the one that the client has talked to is
  // gone.
  EXPECT_EQ(text_of(group.sentinels()[1]->command({"SENTINEL", "FAILOVER", RedisSentinels::kMasterName})),
            "OK");
  const uint16_t former = group.servers()[0]->port();
  support::wait_until("a new master", [&] {
    driver.turn();
    return group.sentinels()[1]->command({"SENTINEL", "MASTERS"}).items.size() == 1 &&
           group.master().port() != former;
  });
  support::wait_until("a write to the new master", [&] {
    return driver.call("n", {"SET", "n", "2"}).ok() && group.master().command({"GET", "n"}).text == "2";
  });
}

TEST(Sentinel, NeverWritesToAReplica) {
  RedisSentinels group;
  ClientOptions options = to(group);
  // Straight to a replica, without asking a sentinel: it must not be taken for a master.
  options.mode = Mode::kStandalone;
  options.addresses = {{"127.0.0.1", group.servers()[1]->port()}};
  RedisDriver replica(options);
  replica.turn_until("it says why", [&] { return !replica.client().last_error().empty(); });
  EXPECT_THAT(std::string(replica.client().last_error()), HasSubstr("it is a replica, not a master"));
  EXPECT_FALSE(replica.client().is_connected());
  // Where several servers are named, the master among them is found.
  options.addresses.push_back({"127.0.0.1", group.servers()[2]->port()});
  options.addresses.push_back({"127.0.0.1", group.servers()[0]->port()});
  RedisDriver any(options);
  any.connect();
  EXPECT_EQ(text_of(any.call("k", {"SET", "k", "1"})), "OK");
  // A master that becomes a replica under an open connection.
  group.servers()[0]->command({"REPLICAOF", "127.0.0.1", std::to_string(group.servers()[1]->port())});
  const auto refused = any.call("k", {"SET", "k", "2"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  any.turn_until("it noticed", [&] { return !any.client().is_connected(); });
}

TEST(Sentinel, HasItsOwnPassword) {
  RedisSentinels group;
  for (const auto& sentinel : group.sentinels())
    sentinel->command({"ACL", "SETUSER", "default", "resetpass", ">guard"});
  ClientOptions options = to(group);
  RedisDriver stranger(options);
  stranger.turn_until("it says why", [&] { return !stranger.client().last_error().empty(); });
  EXPECT_THAT(std::string(stranger.client().last_error()), HasSubstr("NOAUTH"));
  options.sentinel_password = "guard";
  RedisDriver driver(options);
  driver.connect();
  EXPECT_EQ(text_of(driver.call("k", {"SET", "k", "1"})), "OK");
}

TEST(Sentinel, SaysThatNobodyKnowsTheName) {
  RedisSentinels group;
  ClientOptions options = to(group);
  options.master_name = "nobody";
  RedisDriver driver(options);
  driver.turn_until("it says why", [&] { return !driver.client().last_error().empty(); });
  EXPECT_THAT(std::string(driver.client().last_error()), HasSubstr("it knows no master \"nobody\""));
  EXPECT_FALSE(driver.call("k", {"GET", "k"}).ok());
}

}  // namespace
}  // namespace delayq::net::redis
