// The parts of the client that need no connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "net/redis/client.h"
#include "net/redis/connection.h"
#include "net/redis/deployment.h"
#include "net/redis/link.h"
#include "net/redis/request.h"
#include "tests/support/redis_driver.h"

namespace delayq::net::redis {
namespace {

using resp::Value;
using testing::HasSubstr;

Value reply_of(std::string_view bytes) {
  Result<std::optional<Value>> reply = resp::take_reply(bytes);
  return reply.ok() && *reply ? std::move(**reply) : Value{};
}

RC_GTEST_PROP(ReconnectDelay, DoublesItsBoundUpToTheCap, (uint64_t random)) {
  const BackoffSettings settings{Millis{50}, Millis{2000}};
  const int failures = *rc::gen::inRange(1, 100);
  const Millis delay = reconnect_delay(settings, failures, random);
  const Millis bound = failures > 6 ? Millis{2000} : Millis{50 << (failures - 1)};
  RC_ASSERT(delay >= Millis::zero() && delay <= std::min(bound, Millis{2000}));
}

TEST(ReconnectDelay, IsSpreadOverAllOfIt) {
  const BackoffSettings settings{Millis{50}, Millis{2000}};
  Random random(1);
  Millis least = Millis::max();
  Millis most{};
  for (int i = 0; i < 1000; ++i) {
    const Millis delay = reconnect_delay(settings, 10, random.next());
    least = std::min(least, delay);
    most = std::max(most, delay);
  }
  EXPECT_LT(least, Millis{100});
  EXPECT_GT(most, Millis{1900});
}

TEST(Greeting, SaysWhoItIsAndLooksAround) {
  Greeting greeting({"app", "secret", 3, true, {}});
  const std::vector<std::vector<std::string>> expected{
      {"AUTH", "app", "secret"}, {"PING"}, {"SELECT", "3"}, {"ROLE"}, {"CLIENT", "SETNAME", "delayq"}};
  EXPECT_EQ(greeting.commands(), expected);
  for (const char* reply : {"+OK\r\n", "+PONG\r\n", "+OK\r\n", "*1\r\n$6\r\nmaster\r\n"}) {
    EXPECT_TRUE(greeting.hear(reply_of(reply)).ok());
    EXPECT_FALSE(greeting.is_over());
  }
  EXPECT_TRUE(greeting.hear(reply_of("-NOPERM no\r\n")).ok());
  EXPECT_TRUE(greeting.is_over());
}

TEST(Greeting, IsShortWhereNothingIsAsked) {
  EXPECT_EQ(Greeting({}).commands().size(), 2);
  EXPECT_EQ(Greeting({"", "pw", 0, false, {}}).commands()[0], (std::vector<std::string>{"AUTH", "pw"}));
}

TEST(Greeting, EndsAtARefusalOrAReplica) {
  Greeting loading({});
  EXPECT_THAT(loading.hear(reply_of("-LOADING wait\r\n")).error().detail, "PING: LOADING wait");
  Greeting replica({"", "", 0, true, {}});
  EXPECT_TRUE(replica.hear(reply_of("+PONG\r\n")).ok());
  EXPECT_THAT(replica.hear(reply_of("*1\r\n$5\r\nslave\r\n")).error().detail, HasSubstr("replica"));
  // Who may not ask for the role may still write.
  Greeting limited({"", "", 0, true, {}});
  EXPECT_TRUE(limited.hear(reply_of("+PONG\r\n")).ok());
  EXPECT_TRUE(limited.hear(reply_of("-NOPERM no\r\n")).ok());
}

TEST(Greeting, EndsAtAnEarlierVersionThanIsNeeded) {
  const auto hear = [](std::string_view version) {
    Greeting greeting({"", "", 0, false, Version{7, 0}});
    EXPECT_EQ(greeting.commands().at(1), (std::vector<std::string>{"INFO", "server"}));
    EXPECT_TRUE(greeting.hear(reply_of("+PONG\r\n")).ok());
    const std::string info =
        "# Server\r\nredis_version:" + std::string(version) + "\r\nredis_mode:standalone";
    return greeting.hear(reply_of("$" + std::to_string(info.size()) + "\r\n" + info + "\r\n"));
  };
  for (const char* version : {"7.0.0", "7.0.15", "7.2", "8.0.1", "10.0.0"})
    EXPECT_TRUE(hear(version).ok()) << version;
  for (const char* version : {"6.2.14", "6.9", "5.0.3", "2.8", "", "x"})
    EXPECT_THAT(hear(version).error().detail,
                "it is version " + std::string(version) + ": 7.0 or later is needed");
  Greeting limited({"", "", 0, false, Version{7, 0}});
  EXPECT_TRUE(limited.hear(reply_of("+PONG\r\n")).ok());
  EXPECT_TRUE(limited.hear(reply_of("-NOPERM no\r\n")).ok()) << "another command will tell";
}

TEST(ScriptBook, KnowsAScriptBySha1) {
  ScriptBook book;
  constexpr Script kOne{"one", "return 1"};
  const KnownScript& known = book.know(kOne);
  EXPECT_EQ(known.sha1, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
  EXPECT_EQ(&book.know(kOne), &known);
}

TEST(Requests, AreWrittenAsRedisReadsThem) {
  ScriptBook book;
  constexpr Script kOne{"one", "return 1"};
  const std::vector<std::string_view> keys{"k"};
  const std::vector<std::string_view> arguments{"a", ""};
  const Request request = make_run(book.know(kOne), keys, arguments, nullptr);
  std::string out;
  append(out, request, false);
  EXPECT_EQ(out,
            "*6\r\n$7\r\nEVALSHA\r\n$40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db\r\n"
            "$1\r\n1\r\n$1\r\nk\r\n$1\r\na\r\n$0\r\n\r\n");
  out.clear();
  append(out, request, true);
  EXPECT_EQ(out, "*6\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\na\r\n$0\r\n\r\n");
}

TEST(SlotRanges, AreReadFromTheReply) {
  const auto ranges = slot_ranges(reply_of("*2\r\n"
                                           "*4\r\n:0\r\n:8000\r\n*2\r\n$8\r\n10.0.0.1\r\n:7000\r\n"
                                           "*2\r\n$8\r\n10.0.0.2\r\n:7001\r\n"
                                           "*3\r\n:8001\r\n:16383\r\n*2\r\n$-1\r\n:7002\r\n"),
                                  {"asked", 6379});
  ASSERT_TRUE(ranges.ok());
  EXPECT_EQ(*ranges, (std::vector<SlotRange>{{0, 8000, {"10.0.0.1", 7000}}, {8001, 16383, {"asked", 7002}}}));
}

TEST(SlotRanges, AreNotReadFromAnythingElse) {
  for (const char* reply :
       {"+OK\r\n", "*1\r\n:1\r\n", "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:5\r\n:4\r\n*2\r\n$1\r\na\r\n:1\r\n", "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:0\r\n",
        "*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n", "*1\r\n*2\r\n:0\r\n:1\r\n"}) {
    EXPECT_FALSE(slot_ranges(reply_of(reply), {}).ok()) << reply;
  }
}

TEST(OpenClient, RefusesWhatNoWaitingCanMend) {
  Loop loop;
  const auto problem = [&](const ClientOptions& options) {
    const auto opened = open_client(loop, options);
    return opened.ok() ? std::string() : opened.error().detail;
  };
  const Address here{"127.0.0.1", 1};
  EXPECT_THAT(problem({}), HasSubstr("addresses"));
  EXPECT_THAT(problem({.mode = Mode::kSentinel, .addresses = {here}}), HasSubstr("master_name"));
  EXPECT_THAT(problem({.mode = Mode::kCluster, .addresses = {here}, .database = 1}), HasSubstr("database"));
  EXPECT_THAT(problem({.addresses = {here}, .user = "app"}), HasSubstr("password"));
  EXPECT_THAT(problem({.addresses = {here}, .connections = 0}), HasSubstr("connections"));
  EXPECT_THAT(problem({.addresses = {here}, .tls = {.is_on = true, .ca_file = "/missing.pem"}}),
              HasSubstr("tls.ca_file: /missing.pem"));
}

}  // namespace
}  // namespace delayq::net::redis
