// Schedules in a Redis that several servers share, in deployments of every layout, and when Redis forgets.
#include "core/moment.h"
#include "tests/contract/engine_contract.h"
#include "tests/contract/redis_server.h"

namespace delayq::contract {
namespace {

using testing::HasSubstr;

constexpr uint64_t kRevisionOne = 0x8000'0000'0000'0001;  // above what a double can tell apart
constexpr uint64_t kRevisionTwo = 0x8000'0000'0000'0002;
constexpr uint64_t kRevisionThree = 0x8000'0000'0000'0003;

support::RedisProcess& redis_of_schedules() {
  static support::RedisProcess redis;
  return redis;
}

/// A server with the driver that calls it.
struct SharingServer {
  SharingServer(uint16_t port, RedisEngineOptions options)
      : server(port, std::move(options)), driver(server.engine(), [this] { return server.pump(); }) {}

  Result<std::vector<TurnAnswer>> try_turn(const TurnRequest& request) {
    return driver.ask<std::vector<TurnAnswer>>("turn", [&](auto reply) {
      driver.engine().turn(driver.now(), {&request, 1}, std::move(reply));
    });
  }
  TurnOutcome turn(const TurnRequest& request) { return driver.turn(request).outcome; }
  std::vector<std::string> reported() {
    driver.tick();
    std::vector<std::string> names;
    for (const StoredSchedule& schedule : driver.schedule_news()) names.push_back(schedule.name);
    return names;
  }

  RedisServer server;
  support::EngineDriver driver;
};

TurnRequest defined(std::string_view name, Moment next) {
  return {.name = name, .revision = kRevisionOne, .next = next, .definition = "rule"};
}

/// From the first revision to another, with a job.
struct Occurrence {
  Occurrence(std::string schedule, Moment when, uint64_t revision)
      : name(std::move(schedule)), job(JobSpec("t", occurrence_id(name, when)).due_at(when).or_keep()) {
    request = {.name = name, .expected = kRevisionOne, .revision = revision, .next = when + Millis{60'000}};
    request.job = job.view();
  }
  Occurrence(const Occurrence&) = delete;
  Occurrence& operator=(const Occurrence&) = delete;

  std::string name;
  JobSpec job;
  TurnRequest request;
};

class RedisSchedules : public testing::Test {
 protected:
  std::unique_ptr<SharingServer> join(std::string name, redis::Shards shards = {}) const {
    RedisEngineOptions options;
    options.prefix = prefix_;
    options.shards = std::move(shards);
    options.server = std::move(name);
    options.hold = std::chrono::hours{1};
    const int64_t heard_by = listeners();
    auto member = std::make_unique<SharingServer>(redis_of_schedules().port(), std::move(options));
    hear(*member, "a subscription", [&] { return listeners() > heard_by; });
    return member;
  }
  redis::Shards four(redis::LayoutVersion version) const { return {redis::spread_tags(prefix_, 4), version}; }
  static void hear(SharingServer& member, std::string_view what, const std::function<bool()>& is_so) {
    support::wait_until(what, [&] {
      member.driver.settle();
      return is_so();
    });
  }
  int64_t listeners() const {
    return redis_of_schedules().command({"PUBSUB", "NUMSUB", prefix_ + ":news"}).items.at(1).integer;
  }
  std::string version() const {
    return redis_of_schedules().command({"HGET", prefix_ + ":meta", "version"}).text;
  }

  static inline int tests = 0;
  std::string prefix_ = "schedules" + std::to_string(++tests);
};

TEST_F(RedisSchedules, OfTwoServersThatTurnTheSameRevisionOneWins) {
  const std::string name = "s";
  for (const auto& shards : {redis::Shards{}, redis::new_shards("x", 4)}) {
    prefix_ += "-";
    const auto a = join("a", shards);
    const auto b = join("b", shards);
    ASSERT_EQ(a->turn(defined(name, at(0))), TurnOutcome::kTurned);
    const Occurrence by_a(name, at(0), kRevisionTwo);
    const Occurrence by_b(name, at(0), kRevisionThree);
    std::vector<TurnOutcome> outcomes;
    for (const auto& [member, turn] : {std::pair(&*a, &by_a), std::pair(&*b, &by_b)}) {
      member->driver.engine().turn(at(0), {&turn->request, 1}, [&](Result<std::vector<TurnAnswer>> answer) {
        ASSERT_TRUE(answer.ok());
        outcomes.push_back(answer->at(0).outcome);
      });
    }
    hear(*b, "the answer to b", [&] { return !outcomes.empty(); });
    hear(*a, "the answer to a", [&] { return outcomes.size() == 2; });
    EXPECT_THAT(outcomes, testing::UnorderedElementsAre(TurnOutcome::kTurned, TurnOutcome::kChanged));
    EXPECT_THAT(a->driver.take("t", 9), SizeIs(1));
    EXPECT_EQ(a->driver.get_schedule(name), b->driver.get_schedule(name));
  }
}

TEST_F(RedisSchedules, TheDriverReportsAndHearsOfEarlierTimes) {
  const auto a = join("a");
  const auto b = join("b");
  a->driver.tick();
  b->driver.tick();
  b->turn(defined("late", at(900'000)));
  hear(*a, "news at a", [&] { return a->driver.tick() == at(900'000); });
  b->turn(defined("early", at(50)));
  hear(*a, "an earlier tick at a", [&] { return a->driver.tick() == at(50); });
  for (SharingServer* member : {&*a, &*b}) member->driver.go_to(at(50));
  EXPECT_THAT(a->reported(), ElementsAre("early"));
  EXPECT_THAT(b->reported(), IsEmpty()) << "one is enough";
}

TEST_F(RedisSchedules, ALostAlarmIsFoundAgain) {
  for (const auto& shards : {redis::Shards{}, redis::new_shards("x", 4)}) {
    prefix_ += "-";
    const auto a = join("a", shards);
    a->turn(defined("s", at(40'000)));
    a->driver.tick();
    for (const std::string& tag : shards.tags)
      redis_of_schedules().command({"DEL", prefix_ + ":{" + tag + "}:alarm"});
    a->driver.go_to(at(31'000));
    a->driver.tick();
    hear(*a, "the schedule", [&] { return a->server.engine().mended_schedules() == 1; });
    EXPECT_EQ(a->driver.tick(), at(40'000));
    a->driver.go_to(at(40'000));
    EXPECT_THAT(a->reported(), ElementsAre("s"));
  }
}

TEST_F(RedisSchedules, AForeignKeyIsNamedAndNothingHappens) {
  const auto a = join("a");
  a->turn(defined("s", at(0)));
  const std::string ready = prefix_ + ":{0}:ready:t";
  redis_of_schedules().command({"SET", ready, "mine"});
  const Occurrence occurrence("s", at(0), kRevisionTwo);
  const auto answer = a->try_turn(occurrence.request);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(answer.error().detail, HasSubstr("another program has a key that begins with " + prefix_));
  EXPECT_EQ(a->server.engine().problem(), answer.error().detail);
  EXPECT_EQ(a->driver.get_schedule("s")->revision, kRevisionOne);
  redis_of_schedules().command({"DEL", ready});
  EXPECT_EQ(a->turn(occurrence.request), TurnOutcome::kTurned);
}

TEST_F(RedisSchedules, ADamagedOneIsNamedAndTheOthersGoOn) {
  const auto a = join("a");
  for (const std::string_view name : {"a", "bad", "c"}) a->turn(defined(name, at(10)));
  redis_of_schedules().command({"HSET", prefix_ + ":{0}:turn", "bad", "garbage"});
  a->driver.go_to(at(10));
  EXPECT_THAT(a->reported(), testing::UnorderedElementsAre("a", "c"));
  EXPECT_THAT(a->server.engine().problem(), HasSubstr("the schedule \"bad\" is damaged"));
  const SchedulePage page = a->driver.list_schedules({});
  ASSERT_THAT(page.schedules, SizeIs(3));
  EXPECT_EQ(page.schedules[1].name, "bad");
  EXPECT_EQ(page.schedules[1].progress, "");
}

TEST_F(RedisSchedules, AScheduleAndItsJobsAreTogetherInNewDeployments) {
  const auto a = join("a", redis::new_shards(prefix_, 4));
  a->driver.settle();
  EXPECT_EQ(version(), "3");
  for (int i = 0; i < 20; ++i) {
    const std::string name = "s" + std::to_string(i);
    a->turn(defined(name, at(0)));
    const Occurrence occurrence(name, at(1'000 * i), kRevisionTwo);
    ASSERT_EQ(a->turn(occurrence.request), TurnOutcome::kTurned);
    const std::string id = occurrence_id(name, at(1'000 * i));
    EXPECT_TRUE(a->driver.get("t", id)) << "where others look for it";
    EXPECT_EQ(a->driver.cancel("t", id), CancelOutcome::kCancelled);
  }
  EXPECT_EQ(a->driver.usage().schedules, 20U);
}

TEST_F(RedisSchedules, EarlierDeploymentsWithSeveralShardsHaveNoneAndFindTheirJobs) {
  for (const auto& shards : {four(redis::LayoutVersion::kTagged), redis::numbered_shards(4)}) {
    prefix_ += "-";
    std::vector<std::string> ids;
    for (int i = 0; i < 20; ++i) ids.push_back(occurrence_id("mine", at(1'000 * i)));
    const redis::Keyspace keys(prefix_, shards);
    const std::string expected_version(1, shards.version == redis::LayoutVersion::kTagged ? '2' : '1');
    const auto a = join("a", shards);
    for (const std::string& id : ids) a->driver.push(JobSpec("t", id));
    EXPECT_EQ(version(), expected_version);
    // Spread by their whole ids, as the program that made the deployment did it.
    for (uint32_t shard = 0; shard < 4; ++shard) {
      const std::string pool = prefix_ + ":{" + shards.tags[shard] + "}:job:t";
      EXPECT_LT(redis_of_schedules().command({"HLEN", pool}).integer, 15);
    }
    for (const std::string& id : ids) EXPECT_TRUE(a->driver.get("t", id)) << id;
    const auto answer = a->try_turn(defined("s", at(0)));
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(answer.error().detail,
                testing::AllOf(HasSubstr("prefix \"" + prefix_ + "\" are in 4 shards of an earlier layout"),
                               HasSubstr("another redis.prefix")));
    EXPECT_EQ(a->driver.get_schedule("s"), std::nullopt);
    EXPECT_THAT(a->driver.list_schedules({}).schedules, IsEmpty());
  }
}

TEST_F(RedisSchedules, WhoBelievesInAnotherLayoutIsRefused) {
  const auto a = join("a", four(redis::LayoutVersion::kTagged));
  a->driver.settle();
  const auto b = join("b", four(redis::LayoutVersion::kTogether));
  b->driver.settle();
  const auto answer = b->try_turn(defined("s", at(0)));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(answer.error().detail, HasSubstr("another layout"));
  EXPECT_EQ(version(), "2");
}

/// Two masters for a moment, as in redis_split_brain_test.cc.
TEST(RedisSchedulesSplit, ATurnAtOneMasterIsNotTakenForThatAtTheOther) {
  support::RedisProcess old_redis;
  support::RedisProcess fresh_redis;
  SharingServer old(old_redis.port(), {.prefix = "p", .server = "a"});
  SharingServer fresh(fresh_redis.port(), {.prefix = "p", .server = "b"});
  const Occurrence by_old("s", at(0), kRevisionTwo);
  const Occurrence by_fresh("s", at(0), kRevisionThree);
  for (SharingServer* side : {&old, &fresh}) side->turn(defined("s", at(0)));
  EXPECT_EQ(old.turn(by_old.request), TurnOutcome::kTurned);
  EXPECT_EQ(fresh.turn(by_fresh.request), TurnOutcome::kTurned);
  // The old master is gone, and its server goes on with what it knows: two numbers that are one as doubles.
  TurnRequest next{.name = "s", .expected = kRevisionTwo, .revision = kRevisionOne, .next = at(9)};
  EXPECT_EQ(fresh.turn(next), TurnOutcome::kChanged);
  EXPECT_EQ(fresh.driver.get_schedule("s")->revision, kRevisionThree);
}

}  // namespace
}  // namespace delayq::contract
