// One redis-server that is well.
#include <gtest/gtest.h>

#include "tests/support/redis_driver.h"
#include "tests/support/redis_process.h"

namespace delayq::net::redis {
namespace {

using support::RedisDriver;
using support::RedisProcess;
using support::text_of;
using support::to;

ClientOptions to(const RedisProcess& redis) { return to(redis.port()); }

constexpr Script kSum{"sum", "return redis.call('INCRBY', KEYS[1], ARGV[1] + ARGV[2])"};

TEST(Standalone, TalksToAServer) {
  RedisProcess redis;
  RedisDriver driver(to(redis));
  EXPECT_FALSE(driver.client().is_connected());
  EXPECT_FALSE(driver.client().is_cluster());
  driver.connect();
  EXPECT_EQ(driver.client().last_error(), "");
  EXPECT_EQ(text_of(driver.call("k", {"SET", "k", "v\r\n"})), "OK");
  EXPECT_EQ(text_of(driver.call("k", {"GET", "k"})), "v\r\n");
  EXPECT_EQ(text_of(driver.call("k", {"GET", "other"})), "nil");
  EXPECT_EQ(text_of(driver.call("k", {"MGET", "k", "other"})), "[v\r\n nil]");
  EXPECT_EQ(driver.client().outstanding(), 0);
  EXPECT_EQ(driver.client().figures().commands, 4);
  EXPECT_EQ(driver.client().figures().errors, 0);
  EXPECT_EQ(driver.client().figures().connects, 1);
  EXPECT_EQ(driver.client().figures().reconnects, 0);
}

TEST(Standalone, AnErrorReplyIsAnError) {
  RedisProcess redis;
  RedisDriver driver(to(redis));
  driver.connect();
  EXPECT_EQ(text_of(driver.call("k", {"SET", "k", "text"})), "OK");
  const auto reply = driver.call("k", {"INCR", "k"});
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(reply.error().detail, "ERR value is not an integer or out of range");
  EXPECT_EQ(driver.client().figures().errors, 1);
}

TEST(Standalone, NoAnswerComesFromInsideACall) {
  RedisProcess redis;
  RedisDriver driver(to(redis));
  bool is_answered = false;
  driver.client().call("k", {"GET", "k"}, [&](const auto& reply) {
    is_answered = true;
    EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);  // there is no connection yet
  });
  EXPECT_FALSE(is_answered);
  EXPECT_EQ(driver.client().outstanding(), 1);
  EXPECT_EQ(driver.client().poll(), 1);
  EXPECT_TRUE(is_answered);
  EXPECT_EQ(driver.client().outstanding(), 0);
}

TEST(Standalone, PipelinesTenThousandCommandsInOrder) {
  RedisProcess redis;
  RedisDriver driver(to(redis));
  driver.connect();
  constexpr int kCount = 10'000;
  int next = 1;
  for (int i = 0; i < kCount; ++i) {
    driver.client().call("n", {"INCR", "n"}, [&](const auto& reply) {
      ASSERT_TRUE(reply.ok());
      EXPECT_EQ(reply->integer, next++);
    });
  }
  driver.turn_until("all replies", [&] { return driver.client().outstanding() == 0; });
  EXPECT_EQ(next, kCount + 1);
}

TEST(Standalone, LargeValuesGoThereAndBack) {
  RedisProcess redis;
  RedisDriver driver(to(redis));
  driver.connect();
  const std::string large(20u << 20, 'x');
  EXPECT_EQ(text_of(driver.call("k", {"SET", "k", large})), "OK");
  EXPECT_EQ(text_of(driver.call("k", {"GET", "k"})), large);
}

TEST(Standalone, RunsScriptsAlsoAfterTheServerForgotThem) {
  RedisProcess redis;
  RedisDriver driver(to(redis));
  driver.connect();
  EXPECT_EQ(text_of(driver.run(kSum, {"n"}, {"1", "2"})), "3");
  EXPECT_EQ(text_of(driver.run(kSum, {"n"}, {"1", "2"})), "6");
  EXPECT_EQ(driver.client().figures().retries, 0);
  redis.command({"SCRIPT", "FLUSH"});
  EXPECT_EQ(text_of(driver.run(kSum, {"n"}, {"1", "2"})), "9");
  EXPECT_EQ(driver.client().figures().retries, 1);
  EXPECT_EQ(text_of(driver.run(kSum, {"n"}, {"1", "2"})), "12");
  EXPECT_EQ(driver.client().figures().retries, 1);
}

/// A client without a driver, so that it can be destroyed while it is polled.
class Mortal {
 public:
  explicit Mortal(const RedisProcess& redis) {
    auto opened = open_client(loop_, to(redis));
    if (opened.ok()) client_ = std::move(*opened);
    turn_until([&] { return client_->is_connected(); });
  }
  void turn_until(const std::function<bool()>& is_so) {
    support::wait_until("it is so", [&] {
      loop_.finish_turn();
      loop_.wait_until(Loop::now() + Millis{20});
      if (client_ != nullptr) client_->poll();
      return is_so();
    });
  }
  Client& client() { return *client_; }
  void die() { client_.reset(); }

 private:
  Loop loop_;
  std::unique_ptr<Client> client_;
};

TEST(Standalone, AClientMayBeDestroyedInsideAnAnswer) {
  RedisProcess redis;
  Mortal mortal(redis);
  int answers = 0;
  for (int i = 0; i < 3; ++i) {
    mortal.client().call("n", {"INCR", "n"}, [&](const auto& reply) {
      EXPECT_TRUE(reply.ok());
      ++answers;
      mortal.die();
    });
  }
  mortal.turn_until([&] { return answers > 0; });
  EXPECT_EQ(answers, 1) << "the others never come";
}

TEST(Standalone, AClientMayBeDestroyedInsideAMessage) {
  RedisProcess redis;
  Mortal mortal(redis);
  std::string heard;
  bool is_listening = false;
  mortal.client().subscribe(
      "news",
      [&, text = std::string(100, 'x')](std::string_view message) {
        mortal.die();
        heard = text + std::string(message);  // what was called is still there
      },
      [&] { is_listening = true; });
  mortal.turn_until([&] { return is_listening; });
  redis.command({"PUBLISH", "news", "!"});
  mortal.turn_until([&] { return !heard.empty(); });
  EXPECT_EQ(heard, std::string(100, 'x') + "!");
}

}  // namespace
}  // namespace delayq::net::redis
