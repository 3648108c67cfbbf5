// What goes wrong with a server, and that all goes on by itself afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/redis_driver.h"
#include "tests/support/redis_process.h"
#include "tests/support/test_host.h"

namespace delayq::net::redis {
namespace {

using support::RedisDriver;
using support::RedisProcess;
using support::TestHost;
using support::TestPeer;
using support::text_of;
using support::to;
using testing::HasSubstr;

TEST(Faults, AServerThatIsKilledAndComesBack) {
  RedisProcess redis({"--appendonly", "yes", "--appendfsync", "always"});
  RedisDriver driver(to(redis.port()));
  driver.connect();
  EXPECT_EQ(text_of(driver.call("k", {"SET", "k", "1"})), "OK");
  redis.kill();
  const auto refused = driver.call("k", {"GET", "k"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  driver.turn_until("it noticed", [&] { return !driver.client().is_connected(); });
  const auto again = driver.call("k", {"GET", "k"});  // at once now
  EXPECT_THAT(text_of(again), HasSubstr("no connection"));
  redis.start();
  driver.connect();
  EXPECT_EQ(text_of(driver.call("k", {"GET", "k"})), "1");
  EXPECT_EQ(driver.client().figures().connects, 2);
  EXPECT_EQ(driver.client().figures().reconnects, 1);
}

TEST(Faults, AServerThatIsNotThereYet) {
  RedisProcess redis;
  const uint16_t port = redis.port();
  redis.kill();
  RedisDriver driver(to(port));
  driver.turn_until("it says why", [&] { return !driver.client().last_error().empty(); });
  EXPECT_EQ(driver.client().last_error(), "127.0.0.1:" + std::to_string(port) + ": Connection refused");
  redis.start();
  driver.connect();
}

TEST(Faults, ACommandMayWaitForTheConnection) {
  RedisProcess redis;
  redis.kill();
  ClientOptions options = to(redis.port());
  options.wait = std::chrono::seconds{10};
  RedisDriver patient(options);
  std::vector<int64_t> replies;
  for (int i = 0; i < 100; ++i)
    patient.client().call("n", {"INCR", "n"}, [&](const auto& reply) { replies.push_back(reply->integer); });
  for (int i = 0; i < 3; ++i) patient.turn();
  EXPECT_EQ(patient.client().outstanding(), 100);
  redis.start();
  patient.turn_until("all replies", [&] { return patient.client().outstanding() == 0; });
  ASSERT_EQ(replies.size(), 100);
  for (size_t i = 0; i < replies.size(); ++i) EXPECT_EQ(replies[i], static_cast<int64_t>(i + 1));

  redis.kill();
  options.wait = Millis{50};
  RedisDriver hasty(options);
  EXPECT_THAT(text_of(hasty.call("n", {"INCR", "n"})), HasSubstr("unavailable"));
}

TEST(Faults, ConnectionsThatAreCutInTheMiddleOfAPipeline) {
  RedisProcess redis;
  RedisDriver driver(to(redis.port()));
  driver.connect();
  int sent = 0;
  int done = 0;
  int failed = 0;
  int64_t last = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 500; ++i) {
      ++sent;
      driver.client().call("n", {"INCR", "n"}, [&](const auto& reply) {
        if (!reply.ok()) {
          EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
          ++failed;
          return;
        }
        EXPECT_GT(reply->integer, last);  // in order
        last = reply->integer;
        ++done;
      });
    }
    driver.turn();
    if (round % 5 == 2) redis.kill_clients();
  }
  driver.turn_until("all replies", [&] { return driver.client().outstanding() == 0; });
  EXPECT_EQ(done + failed, sent);
  EXPECT_GT(done, 0);
  EXPECT_GT(failed, 0);
  driver.connect();
  // Each was carried out at most once, and at least when that was said.
  const int64_t count = std::stoll(driver.insist("n", {"GET", "n"}).text);
  EXPECT_GE(count, done);
  EXPECT_LE(count, sent);
  EXPECT_GE(driver.client().figures().reconnects, 1);
  EXPECT_EQ(driver.client().figures().retries, 0);
}

TEST(Faults, AServerThatHangs) {
  RedisProcess redis;
  ClientOptions options = to(redis.port());
  options.reply_timeout = Millis{100};
  options.connect_timeout = Millis{100};
  RedisDriver driver(options);
  driver.connect();
  redis.pause();
  EXPECT_THAT(text_of(driver.call("k", {"GET", "k"})), HasSubstr("no reply within 100 ms"));
  driver.turn_until("nor a new connection", [&] {
    return driver.client().last_error().find("no connection within 100 ms") != std::string_view::npos;
  });
  redis.resume();
  driver.connect();
  EXPECT_EQ(text_of(driver.insist("k", {"SET", "k", "1"})), "OK");
}

TEST(Faults, AHungServerIsNoticedWithoutACommand) {
  RedisProcess redis;
  ClientOptions options = to(redis.port());
  options.reply_timeout = Millis{50};
  options.connect_timeout = Millis{50};
  options.keep_alive = Millis{50};
  RedisDriver driver(options);
  driver.connect();
  redis.pause();
  driver.turn_until("it noticed", [&] { return !driver.client().is_connected(); });
  redis.resume();
  driver.connect();
}

TEST(Faults, MoreThanIsAllowedAtOnce) {
  RedisProcess redis;
  ClientOptions options = to(redis.port());
  options.max_outstanding_commands = 10;
  options.max_outstanding_bytes = 1000;
  RedisDriver driver(options);
  driver.connect();
  int done = 0;
  int refused = 0;
  const auto count = [&](const auto& reply) {
    EXPECT_TRUE(reply.ok() || reply.error().code == ErrorCode::kOverloaded);
    ++(reply.ok() ? done : refused);
  };
  for (int i = 0; i < 15; ++i) driver.client().call("n", {"INCR", "n"}, count);
  driver.turn_until("all replies", [&] { return driver.client().outstanding() == 0; });
  EXPECT_EQ(done, 10);
  EXPECT_EQ(refused, 5);
  driver.client().call("k", {"SET", "k", std::string(2000, 'x')}, count);
  driver.turn_until("all replies", [&] { return driver.client().outstanding() == 0; });
  EXPECT_EQ(refused, 6);
  EXPECT_EQ(text_of(driver.call("n", {"INCR", "n"})), "11");
}

TEST(Faults, RedisIsOutOfMemory) {
  RedisProcess redis({"--maxmemory", "1"});
  RedisDriver driver(to(redis.port()));
  driver.connect();
  const auto refused = driver.call("k", {"SET", "k", "1"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
}

TEST(Faults, SubscriptionsComeBack) {
  RedisProcess redis;
  RedisDriver driver(to(redis.port()));
  int times_listening = 0;
  std::vector<std::string> heard;
  driver.client().subscribe(
      "news", [&](std::string_view message) { heard.emplace_back(message); }, [&] { ++times_listening; });
  driver.turn_until("it listens", [&] { return times_listening == 1; });
  redis.command({"PUBLISH", "news", "one"});
  redis.command({"PUBLISH", "other", "two"});
  redis.kill_clients();
  driver.turn_until("it listens again", [&] { return times_listening == 2; });
  redis.command({"PUBLISH", "news", std::string_view("th\0ree", 6)});
  driver.turn_until("the news", [&] { return heard.size() == 2; });
  EXPECT_EQ(heard[0], "one");
  EXPECT_EQ(heard[1], std::string("th\0ree", 6));
}

/// Answers each command with the next of `replies`, then hangs up.
TestHost::Serve say(std::vector<std::string> replies) {
  return [replies = std::move(replies)](TestPeer& peer) {
    for (const std::string& reply : replies) {
      std::string command;
      if (!peer.read(command) || !peer.write(reply)) return;
    }
    std::string rest;
    while (peer.read(rest)) {
    }
  };
}
/// To the three commands of the greeting, which come together.
constexpr std::string_view kWelcome = "+PONG\r\n*1\r\n$6\r\nmaster\r\n+OK\r\n";

TEST(Faults, RepliesThatAreGarbage) {
  for (const std::string& garbage :
       {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string("$99999999999\r\n"), std::string("\r\n"),
        std::string("*1\r\n*1\r\n"), std::string(kWelcome) + "+TIME is no status\r\n+unasked\r\n"}) {
    // What comes of an array whose end never comes is silence.
    const TestHost host(say({garbage}));
    ClientOptions options = to(host.port());
    options.connect_timeout = Millis{100};
    options.reply_timeout = Millis{100};
    RedisDriver driver(options);
    driver.turn_until("it says why", [&] { return !driver.client().last_error().empty(); });
    EXPECT_FALSE(driver.call("k", {"GET", "k"}).ok());
  }
}

TEST(Faults, GarbageInAnswerToACommand) {
  const TestHost host(say({std::string(kWelcome), "?what\r\n"}));
  RedisDriver driver(to(host.port()));
  driver.connect();
  EXPECT_THAT(text_of(driver.call("k", {"GET", "k"})), HasSubstr("does not speak Redis's protocol"));
}

TEST(Faults, AServerThatIsLoading) {
  // Every connection is told so once, then is let in.
  std::atomic<int> connections = 0;
  const TestHost host([&](TestPeer& peer) {
    std::string input;
    if (!peer.read(input)) return;
    if (++connections == 1) {
      peer.write("-LOADING Redis is loading the dataset in memory\r\n");
      return;
    }
    peer.write(kWelcome);
    while (peer.read(input)) {
    }
  });
  RedisDriver driver(to(host.port()));
  driver.turn_until("it says why", [&] { return !driver.client().last_error().empty(); });
  EXPECT_THAT(std::string(driver.client().last_error()), HasSubstr("LOADING"));
  driver.connect();
}

TEST(Faults, TheClockOfTheServer) {
  const TestHost host([&](TestPeer& peer) {
    std::string input;
    if (!peer.read(input) || !peer.write(kWelcome)) return;
    input.clear();
    if (!peer.read(input)) return;
    EXPECT_EQ(input, "*1\r\n$4\r\nTIME\r\n");
    // A hundred seconds ahead.
    const auto now = Loop::now().time_since_epoch() + std::chrono::seconds{100};
    const std::string seconds = std::to_string(now.count() / 1000);
    const std::string micros = std::to_string(now.count() % 1000 * 1000);
    peer.write("*2\r\n$" + std::to_string(seconds.size()) + "\r\n" + seconds + "\r\n$" +
               std::to_string(micros.size()) + "\r\n" + micros + "\r\n");
    while (peer.read(input)) {
    }
  });
  RedisDriver driver(to(host.port()));
  driver.turn_until("the offset", [&] { return driver.client().clock_offset() != Millis{0}; });
  EXPECT_NEAR(static_cast<double>(driver.client().clock_offset().count()), 100'000, 2000);
}

}  // namespace
}  // namespace delayq::net::redis
