// A cluster of three masters and three replicas.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/redis/client.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/redis_driver.h"

namespace delayq::net::redis {
namespace {

using support::RedisCluster;
using support::RedisDriver;
using support::RedisProcess;
using support::text_of;

ClientOptions to(const RedisCluster& cluster, size_t seeds) {
  ClientOptions options;
  options.mode = Mode::kCluster;
  for (size_t i = 0; i < seeds; ++i) options.addresses.push_back({"127.0.0.1", cluster.ports()[i]});
  options.backoff = Millis{5};
  options.backoff_cap = Millis{50};
  options.reply_timeout = Millis{1000};
  return options;
}

constexpr Script kAppend{"append", "return redis.call('APPEND', KEYS[1], ARGV[1])"};

TEST(Cluster, SpreadsKeysOverAllMasters) {
  RedisCluster cluster;
  RedisDriver driver(to(cluster, 1));
  driver.connect();
  EXPECT_TRUE(driver.client().is_cluster());
  for (int i = 0; i < 200; ++i) {
    const std::string key = "p:{" + std::to_string(i) + "}:n";
    driver.client().call(key, {"SET", key, "x"}, [&](const auto& reply) { EXPECT_TRUE(reply.ok()); });
    driver.client().run(kAppend, std::vector<std::string_view>{key}, std::vector<std::string_view>{"y"},
                        [&](const auto& reply) { EXPECT_EQ(text_of(reply), "2"); });
  }
  driver.turn_until("all replies", [&] { return driver.client().outstanding() == 0; });
  EXPECT_EQ(driver.client().figures().retries, 0);
  for (size_t i = 0; i < 3; ++i) EXPECT_GT(cluster.nodes()[i]->command({"DBSIZE"}).integer, 20);
  // Without a key: any of them.
  EXPECT_EQ(text_of(driver.call("", {"PING"})), "PONG");
  // News are heard whichever node they are told to.
  std::set<std::string> heard;
  bool is_listening = false;
  driver.client().subscribe(
      "news", [&](std::string_view message) { heard.insert(std::string(message)); },
      [&] { is_listening = true; });
  driver.turn_until("it listens", [&] { return is_listening; });
  for (size_t i = 0; i < 6; ++i) cluster.nodes()[i]->command({"PUBLISH", "news", std::to_string(i)});
  driver.turn_until("all news", [&] { return heard.size() == 6; });
}

/// Tells every master who has the slot from now on.
std::string epoch_at(RedisProcess& node) {
  const std::string info = node.command({"CLUSTER", "INFO"}).text;
  const size_t at = info.find("cluster_current_epoch:");
  return info.substr(at, info.find("\r\n", at) - at);
}

/// As redis-cli does it; and waits until all have heard of the owner's new epoch: one who gets the slot next
/// without knowing it would claim it with the same, and the nodes would never agree.
void give_slot(RedisCluster& cluster, uint16_t slot, size_t to) {
  for (size_t i : {to, size_t{0}, size_t{1}, size_t{2}}) {
    cluster.nodes()[i]->command(
        {"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", RedisCluster::id_of(to)});
  }
  support::wait_until("one epoch at all nodes", [&cluster] {
    return epoch_at(*cluster.nodes()[0]) == epoch_at(*cluster.nodes()[1]) &&
           epoch_at(*cluster.nodes()[1]) == epoch_at(*cluster.nodes()[2]);
  });
}

TEST(Cluster, FollowsASlotThatMoves) {
  RedisCluster cluster;
  RedisDriver driver(to(cluster, 3));
  driver.connect();
  const std::string there = "{a}:there";
  const std::string missing = "{a}:missing";
  const uint16_t slot = slot_of(there);
  const std::string number = std::to_string(slot);
  const size_t from = cluster.owner_of(slot);
  const size_t into = (from + 1) % 3;
  RedisProcess& source = *cluster.nodes()[from];
  RedisProcess& target = *cluster.nodes()[into];
  EXPECT_EQ(text_of(driver.call(there, {"SET", there, "1"})), "OK");

  // While it moves, the source has what is still there, and the target what is not: ASK.
  target.command({"CLUSTER", "SETSLOT", number, "IMPORTING", RedisCluster::id_of(from)});
  source.command({"CLUSTER", "SETSLOT", number, "MIGRATING", RedisCluster::id_of(into)});
  EXPECT_EQ(text_of(driver.call(there, {"GET", there})), "1");
  EXPECT_EQ(driver.client().figures().retries, 0);
  EXPECT_EQ(text_of(driver.call(missing, {"SET", missing, "2"})), "OK");
  EXPECT_EQ(driver.client().figures().retries, 1);
  EXPECT_EQ(text_of(driver.run(kAppend, {missing}, {"3"})), "2");
  EXPECT_EQ(driver.client().figures().retries, 2);
  // Some keys here, some there: TRYAGAIN, until it is given up.
  const auto split = driver.call(there, {"MGET", there, missing});
  ASSERT_FALSE(split.ok());
  EXPECT_EQ(split.error().code, ErrorCode::kUnavailable);

  // Then it is elsewhere: MOVED, once.
  source.command({"MIGRATE", "127.0.0.1", std::to_string(target.port()), there, "0", "1000"});
  give_slot(cluster, slot, into);
  const uint64_t before = driver.client().figures().retries;
  EXPECT_EQ(text_of(driver.call(there, {"GET", there})), "1");
  EXPECT_EQ(driver.client().figures().retries, before + 1);
  EXPECT_EQ(text_of(driver.call(there, {"MGET", there, missing})), "[1 23]");
  EXPECT_EQ(driver.client().figures().retries, before + 1);
}

TEST(Cluster, CountsEachOnceWhileItsSlotMoves) {
  RedisCluster cluster;
  RedisDriver driver(to(cluster, 3));
  driver.connect();
  const std::string key = "{a}:n";
  const std::string slot = std::to_string(slot_of(key));
  int sent = 0;
  int done = 0;
  int refused = 0;
  const auto count_on = [&] {
    for (int i = 0; i < 200; ++i) {
      ++sent;
      driver.client().call(key, {"INCR", key}, [&](const auto& reply) { ++(reply.ok() ? done : refused); });
    }
    driver.turn();
  };
  size_t from = cluster.owner_of(slot_of(key));
  for (int round = 0; round < 6; ++round) {
    const size_t into = (from + 1) % 3;
    RedisProcess& source = *cluster.nodes()[from];
    RedisProcess& target = *cluster.nodes()[into];
    count_on();
    target.command({"CLUSTER", "SETSLOT", slot, "IMPORTING", RedisCluster::id_of(from)});
    count_on();
    source.command({"CLUSTER", "SETSLOT", slot, "MIGRATING", RedisCluster::id_of(into)});
    count_on();
    source.command({"MIGRATE", "127.0.0.1", std::to_string(target.port()), key, "0", "1000"});
    count_on();
    give_slot(cluster, slot_of(key), into);
    count_on();
    from = into;
  }
  driver.turn_until("all replies", [&] { return driver.client().outstanding() == 0; });
  EXPECT_EQ(done + refused, sent);
  EXPECT_GT(driver.client().figures().retries, 0);
  EXPECT_EQ(text_of(driver.insist(key, {"GET", key})), std::to_string(done));
  EXPECT_EQ(refused, 0);
}

TEST(Cluster, GoesOnWhenAMasterIsKilled) {
  RedisCluster cluster;
  // Only the node that will be killed is named: the others are known by then.
  const std::string key = "{a}:n";
  const size_t victim = cluster.owner_of(slot_of(key));
  ClientOptions options = to(cluster, 0);
  options.addresses = {{"127.0.0.1", cluster.ports()[victim]}};
  options.reply_timeout = std::chrono::seconds{5};
  options.connections = 2;
  RedisDriver driver(options);
  driver.connect();
  int times_listening = 0;
  std::string heard;
  driver.client().subscribe(
      "news", [&](std::string_view message) { heard = message; }, [&] { ++times_listening; });
  driver.turn_until("it listens", [&] { return times_listening == 1; });
  EXPECT_EQ(text_of(driver.call(key, {"SET", key, "1"})), "OK");
  EXPECT_EQ(text_of(driver.call(key, {"WAIT", "1", "4000"})), "1");  // of the writes of its connection
  cluster.nodes()[victim]->kill();
  EXPECT_EQ(text_of(driver.insist(key, {"INCR", key})), "2");
  driver.turn_until("all masters are connected", [&] { return driver.client().is_connected(); });
  support::wait_until("every node knows", [&] { return cluster.owner_of(slot_of(key)) != victim; });
  // It listens to one of the others now, if that was the one.
  const size_t other = (victim + 1) % 3;
  driver.turn_until("news", [&] {
    cluster.nodes()[other]->command({"PUBLISH", "news", "hello"});
    driver.turn();
    return heard == "hello";
  });
  // It comes back, as a replica of the one that took its place.
  cluster.nodes()[victim]->start();
  cluster.wait_until_well();
  EXPECT_EQ(text_of(driver.call(key, {"INCR", key})), "3");
}

TEST(Cluster, GoesOnWhenAllOfItWasGone) {
  RedisCluster cluster;
  RedisDriver driver(to(cluster, 6));
  driver.connect();
  const std::string lost = "{a}:n";
  const size_t victim = cluster.owner_of(slot_of(lost));
  std::string kept = "{0}:n";
  for (int i = 1; cluster.owner_of(slot_of(kept)) == victim; ++i) kept = "{" + std::to_string(i) + "}:n";
  // A third of the slots is gone, with its replica: soon the others refuse to work as well.
  cluster.nodes()[victim + 3]->kill();
  cluster.nodes()[victim]->kill();
  driver.turn_until("the cluster is down", [&] {
    const auto reply = driver.call(kept, {"GET", kept});
    return !reply.ok() && reply.error().code == ErrorCode::kUnavailable &&
           reply.error().detail.starts_with("CLUSTERDOWN");
  });
  const auto refused = driver.call(lost, {"GET", lost});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  // Then the rest.
  for (const auto& node : cluster.nodes()) node->kill();
  driver.turn_until("nobody is there", [&] { return !driver.client().is_connected(); });
  for (const auto& node : cluster.nodes()) node->start();
  EXPECT_EQ(text_of(driver.insist(lost, {"INCR", lost})), "1");
  EXPECT_EQ(text_of(driver.insist(kept, {"INCR", kept})), "1");
  driver.connect();
}

}  // namespace
}  // namespace delayq::net::redis
