#include "delivery/sink.h"

#include <gmock/gmock.h>

#include "core/limits.h"
#include "engine/memory/memory_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq::delivery {
namespace {

using support::at;

/// More may be decided between two sends than the queue takes in one request.
constexpr uint32_t kMany = Limits::kBatchJobs + 1;

class SettlementTest : public testing::Test {
 protected:
  /// Leases of as many jobs, in the order of their pushes.
  std::vector<std::string> take(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) queue_.push({.topic = "t", .body = "x"});
    std::vector<std::string> leases;
    while (leases.size() < count) {
      for (support::Taken& taken : queue_.pop("t", Limits::kPopJobs))
        leases.push_back(std::move(taken.lease));
    }
    return leases;
  }
  void send() {
    EXPECT_TRUE(settlement_.send(queue_.now()));
    queue_.run();
    EXPECT_FALSE(settlement_.send(queue_.now())) << "all of it is told once";
  }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_};
  Settlement settlement_{queue_.queue()};
};

TEST_F(SettlementTest, TellsOfMoreSuccessesThanOneRequestMayHave) {
  for (const std::string& lease : take(kMany)) settlement_.done(lease, "200 in 1 ms");
  send();
  EXPECT_EQ(queue_.stats("t").tallies.of(Tally::kAcked), kMany);
}

TEST_F(SettlementTest, TellsOfMoreFailuresThanOneRequestMayHave) {
  for (const std::string& lease : take(kMany)) settlement_.dead(lease, "410 in 1 ms");
  send();
  EXPECT_EQ(queue_.count("t", JobState::kDead), kMany);
}

TEST_F(SettlementTest, GivesBackMoreThanOneRequestMayHave) {
  for (const std::string& lease : take(kMany)) settlement_.give_back(lease, at(60'000));
  send();
  EXPECT_EQ(queue_.count("t", JobState::kDelayed), kMany);
}

}  // namespace
}  // namespace delayq::delivery
