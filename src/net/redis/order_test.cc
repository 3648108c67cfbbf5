// Commands with keys of one hash tag are carried out in the order in which they were given, also when Redis
// refuses some of them at first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/random.h"
#include "net/redis/client.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/redis_driver.h"

namespace delayq::net::redis {
namespace {

using support::RedisCluster;
using support::RedisDriver;
using support::RedisProcess;
using support::text_of;
using support::to;

constexpr Script kAppendToList{"append", "return redis.call('RPUSH', KEYS[1], ARGV[1])"};
constexpr Script kAlso{"also", "return redis.call('RPUSH', KEYS[1], ARGV[1], 'also')"};

/// Writes numbers to the end of a list, by scripts and by plain commands.
class Writer {
 public:
  Writer(RedisDriver& driver, std::string key) : driver_(driver), key_(std::move(key)) {}

  void write(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(sent_++);
      driver_.client().run(kAppendToList, std::vector<std::string_view>{key_},
                           std::vector<std::string_view>{number}, [this](const auto& reply) {
                             EXPECT_TRUE(reply.ok()) << text_of(reply);
                             ++answered_;
                           });
    }
  }
  void wait() {
    driver_.turn_until("all replies", [this] { return answered_ == sent_; });
  }
  void finish() {
    wait();
    const auto all = driver_.call(key_, {"LRANGE", key_, "0", "-1"});
    ASSERT_TRUE(all.ok());
    ASSERT_EQ(all->items.size(), static_cast<size_t>(sent_));
    for (size_t i = 0; i < all->items.size(); ++i) ASSERT_EQ(all->items[i].text, std::to_string(i));
  }

 private:
  RedisDriver& driver_;
  std::string key_;
  int sent_ = 0;
  int answered_ = 0;
};

TEST(Order, HoldsWhenTheServerForgetsItsScriptsInTheMiddle) {
  RedisProcess redis;
  RedisDriver driver(to(redis.port()));
  driver.connect();
  Writer writer(driver, "k");
  for (int round = 0; round < 60; ++round) {
    writer.write(round % 40 + 1);
    driver.turn();
    writer.write(1'000);  // more than one read has the replies of
    if (round % 3 == 0) redis.command({"SCRIPT", "FLUSH"});
  }
  writer.finish();
  EXPECT_GT(driver.client().figures().retries, 0U);
}

/// Eight writers, each with a hash tag of its own.
void write_by_many(RedisDriver& driver, const std::function<void(int round)>& between) {
  std::vector<std::unique_ptr<Writer>> writers;
  for (int i = 0; i < 8; ++i)
    writers.push_back(std::make_unique<Writer>(driver, "{" + std::to_string(i) + "}:list"));
  for (int round = 0; round < 40; ++round) {
    for (const auto& writer : writers) writer->write(100);
    between(round);
    driver.turn();
  }
  for (const auto& writer : writers) writer->finish();
}

TEST(Order, HoldsPerHashTagWithSeveralConnections) {
  RedisProcess redis;
  ClientOptions options = to(redis.port());
  options.connections = 3;
  RedisDriver driver(options);
  driver.connect();
  EXPECT_EQ(driver.client().figures().connects, 3U);
  write_by_many(driver, [](int) {});
}

TEST(Order, HoldsForAllHashTagsOfAConnectionThatForgetsItsScripts) {
  RedisProcess redis;
  RedisDriver driver(to(redis.port()));
  driver.connect();
  write_by_many(driver, [&](int round) {
    if (round % 4 == 0) redis.command({"SCRIPT", "FLUSH"});
  });
  EXPECT_GT(driver.client().figures().retries, 0U);
}

TEST(Order, HoldsWhileASlotMoves) {
  RedisCluster cluster({"--cluster-node-timeout", "30000"});  // a busy machine is no reason for a failover
  ClientOptions options = to(cluster.ports()[0]);
  options.mode = Mode::kCluster;
  RedisDriver driver(options);
  driver.connect();
  const std::string key = "{a}:list";
  const std::string slot = std::to_string(slot_of(key));
  Writer writer(driver, key);
  size_t from = cluster.owner_of(slot_of(key));
  const auto tell = [&](size_t node, std::string_view what, size_t other) {
    cluster.nodes()[node]->command({"CLUSTER", "SETSLOT", slot, what, RedisCluster::id_of(other)});
  };
  const auto go_on = [&] {
    writer.write(300);
    driver.turn();
    writer.write(300);
  };
  for (int round = 0; round < 9; ++round) {
    const size_t into = (from + 1) % 3;
    go_on();
    tell(into, "IMPORTING", from);
    tell(from, "MIGRATING", into);
    go_on();
    const std::string port = std::to_string(cluster.nodes()[into]->port());
    cluster.nodes()[from]->command({"MIGRATE", "127.0.0.1", port, key, "0", "5000"});
    go_on();
    for (const size_t node : {into, from, size_t{3} - from - into}) tell(node, "NODE", into);
    go_on();
    writer.wait();  // a pipeline may meet one move, not the next as well
    cluster.wait_until_agreed();
    from = into;
  }
  writer.finish();
  EXPECT_GT(driver.client().figures().retries, 0U);
}

TEST(Order, OfTwoScriptsThatTheServerForgot) {
  RedisProcess redis;
  RedisDriver driver(to(redis.port()));
  driver.connect();
  ASSERT_TRUE(driver.run(kAppendToList, {"k"}, {"0"}).ok());
  ASSERT_TRUE(driver.run(kAlso, {"k"}, {"1"}).ok());
  redis.command({"SCRIPT", "FLUSH"});
  const auto send = [&](const Script& script, std::string_view word) {
    driver.client().run(script, std::vector<std::string_view>{"k"}, std::vector<std::string_view>{word},
                        [](const auto& reply) { EXPECT_TRUE(reply.ok()); });
  };
  send(kAlso, "2");
  send(kAppendToList, "3");
  send(kAlso, "4");
  driver.turn_until("all replies", [&] { return driver.client().outstanding() == 0; });
  EXPECT_EQ(text_of(driver.call("k", {"LRANGE", "k", "0", "-1"})), "[0 1 also 2 also 3 4 also]");
}

}  // namespace
}  // namespace delayq::net::redis
