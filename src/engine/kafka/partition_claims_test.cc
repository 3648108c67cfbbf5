// Groups of partitions that servers claim: over a real Redis, with times that the test chooses.
#include "engine/kafka/partition_claims.h"

#include <set>

#include <gmock/gmock.h>

#include "tests/support/redis_driver.h"
#include "tests/support/redis_process.h"

namespace delayq::kafka {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

/// Notes what is assigned.
class NotedConsumer final : public AssignedConsumer {
 public:
  std::set<std::string> reading;
  std::vector<std::string> changes;

  void assign(std::span<const PartitionId> partitions) override { note("+", partitions); }
  void unassign(std::span<const PartitionId> partitions, bool is_lost) override {
    note(is_lost ? "!" : "-", partitions);
  }
  Polled poll(size_t, size_t) override { return {}; }
  bool may_have_more() const override { return false; }
  void pause(std::span<const PartitionId>) override {}
  void resume(std::span<const PartitionId>) override {}
  void commit(std::span<const Position>) override {}
  void let_go() override {}
  void close() override {}
  bool is_closed() const override { return false; }
  std::optional<int64_t> end_of(const PartitionId&) const override { return std::nullopt; }
  std::string_view trouble() const override { return {}; }

 private:
  void note(const std::string& change, std::span<const PartitionId> partitions) {
    for (const PartitionId& each : partitions) {
      const std::string name = each.topic + std::to_string(each.partition);
      EXPECT_EQ(reading.contains(name), change != "+") << name;
      change == "+" ? (void)reading.insert(name) : (void)reading.erase(name);
      changes.push_back(change + name);
    }
  }
};

class PartitionClaimsTest : public testing::Test {
 protected:
  struct Server {
    NotedConsumer consumer;
    std::unique_ptr<PartitionClaims> claims;
    std::set<std::string> reading() const { return consumer.reading; }
  };

  static support::RedisProcess& redis() {
    static support::RedisProcess process;
    return process;
  }
  PartitionClaimsTest() {
    static int tests = 0;
    prefix_ = "claims" + std::to_string(++tests);
    driver_.connect();
  }
  std::unique_ptr<Server> start(const std::string& name,
                                std::vector<std::vector<int32_t>> groups = {{0, 1}, {2}}) {
    auto server = std::make_unique<Server>();
    server->claims = std::make_unique<PartitionClaims>(
        driver_.client(), server->consumer,
        ClaimOptions{.prefix = prefix_, .server = name, .topics = {"a", "b"}, .groups = std::move(groups)});
    return server;
  }
  /// One round of each, and its reply.
  void round(std::initializer_list<Server*> servers) {
    now_ += seconds{2};
    for (Server* each : servers) {
      each->claims->tick(now_);
      settle();
    }
  }
  void settle() {
    driver_.turn_until("the reply", [this] { return driver_.client().outstanding() == 0; });
  }
  std::string owner(const std::string& group) {
    return support::text_of(redis().command({"GET", prefix_ + ":{delay}:partitions:" + group}));
  }

  std::string prefix_;
  support::RedisDriver driver_{support::to(redis().port())};
  Moment now_ = from_unix_ms(1'700'000'000'000);
};

TEST_F(PartitionClaimsTest, ASingleServerReadsEverything) {
  const auto a = start("a");
  round({a.get()});
  EXPECT_THAT(a->reading(), ElementsAre("a0", "a1", "a2", "b0", "b1", "b2"));
  EXPECT_EQ(a->claims->held(), 2U);
  EXPECT_EQ(owner("[0,1]"), "a");
  round({a.get()});
  EXPECT_EQ(a->consumer.changes.size(), 6U) << "nothing changes";
}

TEST_F(PartitionClaimsTest, TwoServersHaveOneGroupEachAndNoneIsReadTwice) {
  const auto a = start("a");
  round({a.get()});
  const auto b = start("b");
  round({b.get()});
  EXPECT_THAT(b->reading(), IsEmpty());
  round({a.get()});
  EXPECT_THAT(a->reading(), ElementsAre("a0", "a1", "b0", "b1"));
  EXPECT_EQ(owner("[2]"), "a") << "until its offsets are committed";
  round({b.get()});
  EXPECT_THAT(b->reading(), IsEmpty());
  round({a.get()});
  EXPECT_EQ(owner("[2]"), "nil");
  round({b.get()});
  EXPECT_THAT(b->reading(), ElementsAre("a2", "b2"));
  round({a.get(), b.get()});
  EXPECT_THAT(a->reading(), ElementsAre("a0", "a1", "b0", "b1"));
  EXPECT_THAT(b->reading(), ElementsAre("a2", "b2"));
}

TEST_F(PartitionClaimsTest, WhenAServerDiesTheOtherTakesItsGroups) {
  const auto a = start("a");
  auto b = start("b");
  for (int i = 0; i < 5; ++i) round({a.get(), b.get()});
  ASSERT_EQ(b->claims->held(), 1U);
  b.reset();  // without a word
  for (int i = 0; i < 4; ++i) round({a.get()});
  EXPECT_EQ(a->claims->held(), 1U) << "it may come back within its time";
  // Redis's own clock ends the claim; the test does not wait for it.
  redis().command({"DEL", prefix_ + ":{delay}:partitions:[2]", prefix_ + ":{delay}:partitions:[0,1]"});
  now_ += seconds{10};
  round({a.get()});
  EXPECT_EQ(a->claims->held(), 2U);
}

TEST_F(PartitionClaimsTest, AClaimExpires) {
  const auto a = start("a");
  round({a.get()});
  const int64_t left = redis().command({"PTTL", prefix_ + ":{delay}:partitions:[2]"}).integer;
  EXPECT_GT(left, 0);
  EXPECT_LE(left, 10'000);
}

TEST_F(PartitionClaimsTest, AServerThatStopsGivesItsGroupsBackAtOnce) {
  const auto a = start("a");
  const auto b = start("b");
  for (int i = 0; i < 5; ++i) round({a.get(), b.get()});
  a->claims->close(now_);
  settle();
  EXPECT_TRUE(a->claims->is_closed());
  round({b.get()});
  EXPECT_EQ(b->claims->held(), 2U);
  EXPECT_EQ(a->claims->tick(now_), kNever);
}

TEST_F(PartitionClaimsTest, OnlyTheOwnerRenewsAndDeletesAClaim) {
  const auto a = start("a");
  const auto b = start("b");
  for (int i = 0; i < 5; ++i) round({a.get(), b.get()});
  // As after a pause of b that was longer than its claim.
  redis().command({"SET", prefix_ + ":{delay}:partitions:[2]", "c"});
  round({b.get()});
  EXPECT_EQ(owner("[2]"), "c");
  EXPECT_THAT(b->reading(), IsEmpty());
  EXPECT_EQ(b->consumer.changes.back(), "!b2") << "its offset is not committed any more";
  b->claims->close(now_);
  settle();
  EXPECT_EQ(owner("[2]"), "c");
}

TEST_F(PartitionClaimsTest, WithoutRedisAServerStopsToReadBeforeItsClaimsHaveExpired) {
  auto process = std::make_unique<support::RedisProcess>();
  support::RedisDriver driver(support::to(process->port()));
  driver.connect();
  NotedConsumer consumer;
  PartitionClaims claims(driver.client(), consumer,
                         {.prefix = "p", .server = "a", .topics = {"a"}, .groups = {{0}, {1}}});
  claims.tick(now_);
  driver.turn_until("the reply", [&] { return driver.client().outstanding() == 0; });
  ASSERT_EQ(claims.held(), 2U);
  process.reset();
  driver.turn_until("the connection is lost", [&] { return !driver.client().is_connected(); });
  now_ += seconds{2};
  claims.tick(now_);
  driver.turn_until("the error", [&] { return !claims.trouble().empty(); });
  EXPECT_EQ(claims.held(), 2U);
  now_ += seconds{8};
  claims.tick(now_);
  EXPECT_EQ(claims.held(), 0U);
  EXPECT_THAT(consumer.reading, IsEmpty());
}

TEST_F(PartitionClaimsTest, ManyServersShareManyGroupsEvenly) {
  std::vector<std::vector<int32_t>> groups;
  for (int32_t i = 0; i < 11; ++i) groups.push_back({i});
  std::vector<std::unique_ptr<Server>> servers;
  for (int i = 0; i < 4; ++i) {
    servers.push_back(start("server" + std::to_string(i), groups));
    for (int rounds = 0; rounds < 8; ++rounds) {
      for (const auto& each : servers) {
        now_ += Millis{500};
        each->claims->tick(now_);
        settle();
      }
    }
  }
  size_t all = 0;
  for (const auto& each : servers) {
    EXPECT_GE(each->claims->held(), 2U);
    EXPECT_LE(each->claims->held(), 3U);
    all += each->claims->held();
  }
  EXPECT_EQ(all, 11U);
}

TEST_F(PartitionClaimsTest, AClockThatIsSetBackStopsNothing) {
  const auto a = start("a");
  round({a.get()});
  now_ -= std::chrono::hours{5};
  round({a.get()});
  round({a.get()});
  EXPECT_EQ(a->claims->held(), 2U);
}

}  // namespace
}  // namespace delayq::kafka
