// Keys of the redis engine that are lost, or overwritten by another program, while a server runs.
#include "tests/contract/engine_contract.h"
#include "tests/contract/redis_server.h"

namespace delayq::contract {
namespace {

using support::EngineDriver;
using testing::HasSubstr;
using testing::Not;

class RedisDamage : public testing::Test {
 protected:
  RedisDamage() : server_(redis_.port(), options()) { driver_.settle(); }

  static RedisEngineOptions options() {
    RedisEngineOptions options;
    options.hold = std::chrono::hours{1};
    return options;
  }
  void lose(std::string_view key) { redis_.command({"DEL", "delayq:{0}:" + std::string(key)}); }
  /// Time passes without any verb.
  void pass(Millis time) {
    driver_.go_to(driver_.now() + time);
    for (int i = 0; i < 5; ++i) {
      driver_.tick();
      driver_.settle();
    }
  }
  Result<std::vector<PushAnswer>> try_push(const JobSpec& spec) {
    return driver_.ask<std::vector<PushAnswer>>("push", [&](auto reply) {
      const NewJob job = spec.view();
      driver_.engine().push(driver_.now(), {&job, 1}, std::move(reply));
    });
  }

  support::RedisProcess redis_;
  RedisServer server_;
  EngineDriver driver_{server_.engine(), [this] { return server_.pump(); }};
};

TEST_F(RedisDamage, JobsWhosePlaceWasLostAreFoundWithinHalfAMinute) {
  driver_.tick();
  driver_.push(JobSpec("t", "ready"));
  driver_.push(JobSpec("t", "delayed").due_at(at(1'000)));
  driver_.push(JobSpec("u", "reserved"));
  const Taken taken = driver_.take_one("u", std::chrono::seconds{10});
  for (const char* key : {"ready:t", "delay:t", "lease:u", "held:u"}) lose(key);
  EXPECT_THAT(driver_.take("t", 9), IsEmpty());
  pass(std::chrono::seconds{30});
  EXPECT_EQ(server_.engine().mended(), 3U);
  EXPECT_THAT(driver_.ready_news(), testing::Contains("t")) << "who waits is told";
  EXPECT_THAT(ids_of(driver_.take("t", 9)), ElementsAre("ready", "delayed"));
  pass(std::chrono::seconds{1});
  EXPECT_THAT(driver_.expired_news(), SizeIs(1)) << "its lease has ended meanwhile";
  EXPECT_EQ(driver_.retry(taken, driver_.now()), NackOutcome::kStale);
}

TEST_F(RedisDamage, ADamagedCounterIsNotTheClientsFault) {
  driver_.push(JobSpec("t", "a"));
  redis_.command({"SET", "delayq:{0}:seq", "x"});
  const auto refused = try_push(JobSpec("t", "b"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
  for (const char* part : {"script", "ERR", "user_"})
    EXPECT_THAT(refused.error().detail, Not(HasSubstr(part)));
  EXPECT_THAT(server_.engine().problem(), HasSubstr("DEL delayq:{0}:seq"));
  const auto taken = driver_.ask<TakeAnswer>("take", [&](auto reply) {
    TakeRequest request;
    request.topic = "t";
    request.count = 1;
    request.lease_until = driver_.now() + std::chrono::minutes{1};
    driver_.engine().take(driver_.now(), request, std::move(reply));
  });
  EXPECT_FALSE(taken.ok());
  lose("seq");
  EXPECT_TRUE(try_push(JobSpec("t", "b")).ok()) << "as the advice says";
  EXPECT_THAT(ids_of(driver_.take("t", 9)), testing::UnorderedElementsAre("a", "b"))
      << "and nothing was lost";
}

TEST_F(RedisDamage, AfterAFlushAPushOfNothingTellsThatMemoryIsFull) {
  const auto push_nothing = [&] {
    driver_.flush();
    return driver_.ask<std::vector<PushAnswer>>(
        "push", [&](auto reply) { driver_.engine().push(driver_.now(), {}, std::move(reply)); });
  };
  EXPECT_TRUE(push_nothing().ok());
  redis_.command({"CONFIG", "SET", "maxmemory", "1"});
  const auto refused = push_nothing();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_THAT(refused.error().detail, HasSubstr("Redis is out of memory"));
  EXPECT_EQ(try_push(JobSpec("t", "a")).error().detail, refused.error().detail) << "the same words";
  redis_.command({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_TRUE(push_nothing().ok());
}

}  // namespace
}  // namespace delayq::contract
