// SERVER, READY, CONSUMERS and FORECAST; LIST by due time, FORGET, and since when leases are held.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/access.h"
#include "tests/support/resp_client.h"

namespace delayq::resp {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class WatchingTest : public support::RespTest {
 protected:
  /// Only this token may do anything from now on, and the client has it.
  void allow(Scopes scopes, std::vector<std::string> topics) {
    Token token;
    token.name = "shop";
    token.sha256 = api::hash_secret("secret");
    token.scopes = scopes;
    token.topics = std::move(topics);
    backend.host.front->set_tokens({token});
    ASSERT_EQ(client.say({"AUTH", "secret"}), "+OK\r\n");
  }

  support::RespClient other{backend};
};

TEST_F(WatchingTest, server_tells_what_http_tells) {
  api::ServerFacts& facts = backend.host.front->facts;
  facts.engine = "journal";
  facts.durability = "interval";
  facts.sync_interval = Millis{50};
  facts.resp = "127.0.0.1:9278";
  facts.max_connections = 9;
  facts.max_memory_bytes = 77;
  const std::string reply = client.say({"SERVER"});
  EXPECT_THAT(reply,
              AllOf(StartsWith("*24\r\n$7\r\nversion\r\n$5\r\n9.9.9\r\n$6\r\nengine\r\n$7\r\njournal\r\n"),
                    HasSubstr("now_ms\r\n:1700000000000\r\n"), HasSubstr("interval_ms\r\n:50\r\n"),
                    HasSubstr("limits\r\n*6\r\n$11\r\nconnections\r\n:9\r\n$12\r\nmemory_bytes\r\n:77\r\n"),
                    HasSubstr("tokens\r\n:0\r\n"), HasSubstr("scopes\r\n*5\r\n"),
                    HasSubstr("topics\r\n*1\r\n$1\r\n*\r\n"), Not(HasSubstr("$4\r\nname\r\n"))));
  client.say({"HELLO", "3"});
  EXPECT_THAT(client.say({"SERVER"}), StartsWith("%12\r\n"));
  allow(only(Scope::kPush), {"order.*"});
  EXPECT_THAT(client.say({"SERVER"}),
              AllOf(HasSubstr("tokens\r\n:1\r\n"), HasSubstr("name\r\n$4\r\nshop\r\n"),
                    HasSubstr("scopes\r\n*1\r\n$4\r\npush\r\n"), HasSubstr("$7\r\norder.*\r\n")));
  EXPECT_THAT(other.say({"SERVER"}), StartsWith("-NOAUTH")) << "strangers learn nothing";
  EXPECT_THAT(other.say({"READY"}), StartsWith("-NOAUTH"));
}

TEST_F(WatchingTest, ready_is_refused_as_a_push_would_be) {
  EXPECT_EQ(client.say({"READY"}), "+OK\r\n");
  EXPECT_THAT(client.say({"READY", "now"}), StartsWith("-"));
  backend.queue.stop(backend.now, Millis{}, [](const Result<StopReport>&) {});
  EXPECT_THAT(client.say({"READY"}), StartsWith("-STOPPING"));
}

TEST_F(WatchingTest, consumers_that_wait_longest_come_first) {
  EXPECT_EQ(client.say({"CONSUMERS"}),
            "*6\r\n$11\r\nconnections\r\n:7\r\n$13\r\nwaiting_total\r\n:0\r\n$7\r\nwaiting\r\n*0\r\n");
  other.say({"POP", "b", "WAIT", "10s"});
  backend.pass(Millis{1'000});
  support::RespClient third{backend};
  third.say({"POP", "a", "c", "WAIT", "1s"});
  const std::string reply = client.say({"CONSUMERS"});
  EXPECT_THAT(reply, AllOf(HasSubstr("waiting_total\r\n:2\r\n"), HasSubstr("protocol\r\n$4\r\nresp\r\n"),
                           HasSubstr("topics\r\n*2\r\n$1\r\na\r\n$1\r\nc\r\n"),
                           HasSubstr("since_ms\r\n:1700000000000\r\n$8\r\nuntil_ms\r\n:1700000010000\r\n")));
  EXPECT_LT(reply.find("$1\r\nb\r\n"), reply.find("$1\r\na\r\n"));
  EXPECT_THAT(client.say({"CONSUMERS", "COUNT", "1"}),
              AllOf(HasSubstr("waiting_total\r\n:2\r\n"), Not(HasSubstr("$1\r\na\r\n"))));
  other.hang_up();
  EXPECT_THAT(client.say({"CONSUMERS"}), HasSubstr("waiting_total\r\n:1\r\n"));
  for (const char* wrong : {"0", "1001", "-1", "x"})
    EXPECT_THAT(client.say({"CONSUMERS", "COUNT", wrong}), StartsWith("-"));
  EXPECT_THAT(client.say({"CONSUMERS", "COUNT"}), HasSubstr("COUNT: a value is missing"));
  EXPECT_THAT(client.say({"CONSUMERS", "1"}), HasSubstr("usage: CONSUMERS"));
}

TEST_F(WatchingTest, a_forecast_counts_jobs_and_occurrences) {
  client.say({"PUSH", "a", "30m", "x"});
  client.say({"PUSH", "b", "90m", "x"});
  client.say({"SCHEDULE", "SET", "s", "EVERY", "1h", "TOPIC", "a", "BODY", ""});
  EXPECT_EQ(
      client.say({"FORECAST", "TO", "2023-11-15T00:13:20Z", "BINS", "2"}),
      "*12\r\n$7\r\nfrom_ms\r\n:1700000000000\r\n$5\r\nto_ms\r\n:1700007200000\r\n$13\r\nresolution_ms\r\n"
      ":1\r\n$4\r\nbins\r\n*2\r\n:1\r\n:1\r\n$9\r\nscheduled\r\n*2\r\n:0\r\n:1\r\n"
      "$18\r\nscheduled_complete\r\n:1\r\n");
  EXPECT_THAT(client.say({"FORECAST", "TOPIC", "b", "BINS", "1"}),
              HasSubstr("bins\r\n*1\r\n:1\r\n$9\r\nscheduled\r\n*1\r\n:0\r\n"));
  EXPECT_THAT(client.say({"FORECAST"}), HasSubstr("bins\r\n*24\r\n"));
}

TEST_F(WatchingTest, a_wrong_forecast_is_named) {
  EXPECT_THAT(client.say({"FORECAST", "BINS", "0"}), HasSubstr("bins"));
  EXPECT_THAT(client.say({"FORECAST", "BINS", "1001"}), HasSubstr("bins"));
  EXPECT_THAT(client.say({"FORECAST", "FROM", "10", "TO", "9"}), HasSubstr("to must be after from"));
  EXPECT_THAT(client.say({"FORECAST", "FROM", "soon"}), HasSubstr("FROM"));
  EXPECT_THAT(client.say({"FORECAST", "TOPIC", "a b"}), HasSubstr("topic"));
  EXPECT_THAT(client.say({"FORECAST", "a"}), HasSubstr("usage: FORECAST"));
}

TEST_F(WatchingTest, a_token_for_some_topics_sees_only_these) {
  allow(only(Scope::kRead), {"a"});
  EXPECT_THAT(client.say({"CONSUMERS"}), StartsWith("-NOPERM"));
  EXPECT_THAT(client.say({"FORECAST"}), StartsWith("-NOPERM"));
  EXPECT_THAT(client.say({"FORECAST", "TOPIC", "b"}), StartsWith("-NOPERM"));
  EXPECT_THAT(client.say({"FORECAST", "TOPIC", "a"}), StartsWith("*12\r\n"));
  allow(only(Scope::kPush), {"a"});
  EXPECT_THAT(client.say({"FORECAST", "TOPIC", "a"}), StartsWith("-NOPERM"));
}

TEST_F(WatchingTest, forget_says_whether_the_topic_existed) {
  EXPECT_EQ(client.say({"FORGET", "t"}), "+OK\r\n") << "as it always did";
  EXPECT_EQ(client.say({"FORGET", "t", "FIELDS"}), "*2\r\n$7\r\nexisted\r\n:0\r\n");
  client.say({"SETTINGS", "SET", "t", "attempts", "3"});
  EXPECT_EQ(client.say({"FORGET", "t", "FIELDS"}), "*2\r\n$7\r\nexisted\r\n:1\r\n");
  client.say({"PUSH", "u", "0", "b", "ID", "a"});
  EXPECT_THAT(client.say({"FORGET", "u", "FIELDS"}), StartsWith("-CONFLICT "));
  client.say({"CANCEL", "u", "a"});
  EXPECT_EQ(client.say({"FORGET", "u", "FIELDS"}), "*2\r\n$7\r\nexisted\r\n:1\r\n");
  EXPECT_EQ(client.say({"FORGET", "u", "FIELDS"}), "*2\r\n$7\r\nexisted\r\n:0\r\n");
  EXPECT_THAT(client.say({"FORGET", "u", "x"}), StartsWith("-INVALID "));
}

TEST_F(WatchingTest, since_when_a_lease_is_held) {
  client.say({"PUSH", "t", "0", "b", "ID", "a"});
  EXPECT_THAT(client.say({"GET", "t", "a"}), Not(HasSubstr("handed_over_ms")));
  EXPECT_THAT(client.say({"STATS", "t"}), Not(HasSubstr("oldest_lease_ms")));
  client.say({"POP", "t"});
  EXPECT_THAT(client.say({"GET", "t", "a"}), HasSubstr("$14\r\nhanded_over_ms\r\n:"));
  EXPECT_THAT(client.say({"STATS", "t"}), HasSubstr("$15\r\noldest_lease_ms\r\n:"));
  EXPECT_THAT(client.say({"TOPICS", "", "9", "FIELDS"}), HasSubstr("oldest_lease_ms"));
}

TEST_F(WatchingTest, list_by_due_time) {
  for (const char* day : {"1", "2", "3"})
    client.say({"PUSH", "t", "0", "b", "ID", std::string("day") + day, "AT",
                fmt::format("2040-01-0{}T00:00:00Z", day)});
  const std::string second = client.say(
      {"LIST", "t", "delayed", "DUEAFTER", "2040-01-02T00:00:00Z", "DUEBEFORE", "2040-01-03T00:00:00Z"});
  EXPECT_THAT(second, AllOf(HasSubstr("day2"), Not(HasSubstr("day1")), Not(HasSubstr("day3"))));
  EXPECT_THAT(client.say({"LIST", "t", "delayed", "DUEBEFORE", "2208988800"}), Not(HasSubstr("day")));
  EXPECT_THAT(client.say({"LIST", "t", "delayed", "DUEAFTER", "9", "DUEBEFORE", "9"}),
              StartsWith("-INVALID "));
}

}  // namespace
}  // namespace delayq::resp
