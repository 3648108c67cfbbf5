// A failover that the old master does not notice: for a moment two masters accept commands,
// each with the same jobs.
#include "tests/contract/engine_contract.h"
#include "tests/contract/redis_server.h"

namespace delayq::contract {
namespace {

/// A master with its own server.
struct Side {
  explicit Side(std::string name)
      : server(redis.port(), {.prefix = "p", .server = std::move(name)}),
        driver(server.engine(), [this] { return server.pump(); }) {}

  support::RedisProcess redis;
  RedisServer server;
  support::EngineDriver driver;
};

TEST(RedisSplitBrain, ALeaseOfOneMasterIsNoneAtTheOther) {
  Side old("a");
  Side fresh("b");
  for (Side* side : {&old, &fresh}) {
    side->driver.push(JobSpec("t", "mine"));
    side->driver.push(JobSpec("t", "yours"));
  }
  // In the same millisecond, and each as the first take of its master.
  const Taken mine = old.driver.take_one("t");
  ASSERT_EQ(fresh.driver.cancel("t", mine.job.id), CancelOutcome::kCancelled);
  const Taken yours = fresh.driver.take_one("t");
  ASSERT_NE(mine.job.id, yours.job.id);
  EXPECT_NE(mine.lease, yours.lease);
  EXPECT_EQ(fresh.driver.ack(mine), AckOutcome::kStale) << "it would end another job";
  EXPECT_EQ(fresh.driver.retry(mine, at(0)), NackOutcome::kStale);
  EXPECT_FALSE(fresh.driver.extend(mine, at(90'000)));
  EXPECT_EQ(fresh.driver.ack(yours), AckOutcome::kAcked);
  EXPECT_EQ(old.driver.ack(mine), AckOutcome::kAcked);
}

}  // namespace
}  // namespace delayq::contract
