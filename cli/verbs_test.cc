// Every verb without a server: what it would send, and what it makes of an answer.
#include <algorithm>
#include <sstream>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/verb.h"

namespace delayq::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kNowMs = 1'896'076'800'000;

class VerbsTest : public testing::Test {
 protected:
  /// Runs a command line against the replies that were lined up, as RESP writes them.
  Status run(std::vector<std::string> arguments) {
    Verbs verbs;
    add_producer_verbs(verbs);
    add_consumer_verbs(verbs);
    add_operator_verbs(verbs);
    add_transfer_verbs(verbs);
    CLI::App app;
    Verb* verb = nullptr;
    for (auto& each : verbs) {
      CLI::App* const sub = app.add_subcommand(std::string(each->name()));
      each->add_options(*sub);
      sub->callback([&verb, &each] { verb = each.get(); });
    }
    app.require_subcommand(1);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(arguments);
    const Surroundings world{.in = in_,
                             .out = out_,
                             .err = out_,
                             .in_is_terminal = in_is_terminal_,
                             .out_is_terminal = !json_,
                             .now = [] { return from_unix_ms(kNowMs); },
                             .variable = [](const char*) -> const char* { return nullptr; }};
    return verb->run(
        {.transport = [this](const Words& command, Millis wait) { return answer(command, wait); },
         .world = world,
         .json = json_});
  }

  Result<resp::Value> answer(const Words& command, Millis wait) {
    sent_.push_back(command);
    wait_ = wait;
    std::string_view rest = replies_;
    auto value = resp::take_reply(rest);
    EXPECT_TRUE(value && *value) << "no reply was lined up";
    replies_ = std::string(rest);
    return std::move(**value);
  }

  std::string output() { return std::exchange(out_, std::ostringstream()).str(); }

  std::istringstream in_;
  std::ostringstream out_;
  bool in_is_terminal_ = true;
  bool json_ = false;
  std::string replies_;
  std::vector<Words> sent_;
  Millis wait_{};
};

TEST_F(VerbsTest, push_sends_what_it_was_given) {
  replies_ = "$1\r\n7\r\n";
  ASSERT_TRUE(
      run({"push", "order", "30m", "[1,2]", "--id", "7", "--priority", "1", "--attempts", "3", "--backoff",
           "1s,2s", "--lease", "1m", "--group", "g", "--callback", "http://x", "--replace"}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("PUSH", "order", "30m", "[1,2]", "ID", "7", "PRI", "1",
                                             "ATTEMPTS", "3", "BACKOFF", "1s,2s", "LEASE", "1m", "GROUP", "g",
                                             "CALLBACK", "http://x", "REPLACE")));
  EXPECT_EQ(output(), "7\n");
}

TEST_F(VerbsTest, push_reads_its_body_from_standard_input) {
  in_is_terminal_ = false;
  json_ = true;
  in_.str("from\na pipe");
  replies_ = "$1\r\n7\r\n";
  ASSERT_TRUE(run({"push", "order", "30m"}));
  EXPECT_EQ(output(), "{\"topic\":\"order\",\"id\":\"7\"}\n");
  in_.str("-");
  in_.clear();
  replies_ = "$1\r\n8\r\n";
  ASSERT_TRUE(run({"push", "order", "0", "-", "--keep"}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("PUSH", "order", "30m", "from\na pipe"),
                                 ElementsAre("PUSH", "order", "0", "-", "KEEP")));
}

TEST_F(VerbsTest, push_at_a_moment_has_no_delay) {
  replies_ = "$1\r\n7\r\n";
  ASSERT_TRUE(run({"push", "order", "body", "--at", "1896076800"}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("PUSH", "order", "0", "body", "AT", "1896076800")));
  EXPECT_EQ(run({"push", "order", "1s", "body", "--at", "1"}).error().code, ErrorCode::kInvalid);
}

TEST_F(VerbsTest, push_does_not_wait_for_a_terminal) {
  const Status status = run({"push", "order", "30m"});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().detail, HasSubstr("body: is missing"));
  EXPECT_TRUE(sent_.empty());
}

TEST_F(VerbsTest, server_errors_keep_their_code) {
  replies_ = "-CONFLICT id \"7\" is already delayed\r\n-ERR unknown command\r\n-WRONGTYPE what\r\n";
  EXPECT_EQ(run({"push", "order", "1s", "x"}).error(),
            (Error{ErrorCode::kConflict, "", "id \"7\" is already delayed"}));
  EXPECT_EQ(run({"pause", "order"}).error(), (Error{ErrorCode::kInvalid, "", "unknown command"}));
  EXPECT_EQ(run({"pause", "order"}).error(), (Error{ErrorCode::kInternal, "", "WRONGTYPE what"}));
}

constexpr std::string_view kPopped =
    "*1\r\n*6\r\n$2\r\nL1\r\n$5\r\norder\r\n$1\r\n7\r\n$2\r\nhi\r\n:2\r\n:1896076797700\r\n";

TEST_F(VerbsTest, pop_shows_a_table_or_lines_of_json) {
  replies_ = kPopped;
  ASSERT_TRUE(run({"pop", "order", "mail", "--count", "5", "--lease", "1m", "--autoack"}));
  EXPECT_THAT(sent_.back(), ElementsAre("POP", "order", "mail", "COUNT", "5", "LEASE", "1m", "AUTOACK"));
  EXPECT_EQ(output(),
            "LEASE  TOPIC  ID  ATTEMPT  DUE       BODY\n"
            "L1     order   7        2  2.3s ago  hi\n");
  json_ = true;
  replies_ = kPopped;
  ASSERT_TRUE(run({"pop", "order"}));
  EXPECT_EQ(output(),
            "{\"lease\":\"L1\",\"topic\":\"order\",\"id\":\"7\",\"body\":\"hi\",\"attempt\":2,\"due_ms\":"
            "1896076797700}\n");
  replies_ = "*0\r\n";
  ASSERT_TRUE(run({"pop", "order"}));
  EXPECT_EQ(output(), "");
}

TEST_F(VerbsTest, bpop_waits_and_so_does_its_socket) {
  replies_ = "*0\r\n*0\r\n";
  ASSERT_TRUE(run({"bpop", "order"}));
  EXPECT_THAT(sent_.back(), ElementsAre("POP", "order", "WAIT", "1h"));
  EXPECT_EQ(wait_, std::chrono::hours{1});
  EXPECT_EQ(output(), "nothing is ready\n");
  ASSERT_TRUE(run({"pop", "order", "--wait", "5s"}));
  EXPECT_EQ(wait_, std::chrono::seconds{5});
}

TEST_F(VerbsTest, ack_tells_that_leases_were_stale) {
  replies_ = ":2\r\n:1\r\n";
  EXPECT_TRUE(run({"ack", "L1", "L2"}));
  EXPECT_EQ(output(), "2 acked\n");
  EXPECT_EQ(run({"ack", "L1", "L2"}).error().code, ErrorCode::kStaleLease);
  EXPECT_THAT(sent_.back(), ElementsAre("ACK", "L1", "L2"));
}

TEST_F(VerbsTest, nack_and_extend) {
  replies_ = "+OK\r\n:1896076860000\r\n:1896076860000\r\n";
  EXPECT_TRUE(run({"nack", "L1", "--delay", "1s", "--reason", "no bank", "--dead"}));
  EXPECT_THAT(sent_.back(), ElementsAre("NACK", "L1", "DELAY", "1s", "REASON", "no bank", "DEAD"));
  EXPECT_TRUE(run({"extend", "L1", "1m"}));
  EXPECT_THAT(sent_.back(), ElementsAre("EXTEND", "L1", "1m"));
  EXPECT_EQ(output(), "taken back\nruns out in 1m\n");
  json_ = true;
  EXPECT_TRUE(run({"extend", "L1"}));
  EXPECT_EQ(output(), "{\"until_ms\":1896076860000}\n");
}

constexpr std::string_view kJob =
    "*12\r\n$2\r\nid\r\n$2\r\n42\r\n$4\r\nbody\r\n$1\r\n\xff\r\n$6\r\ndue_ms\r\n:1896076830000\r\n$"
    "8\r\npriority\r\n:"
    "1024\r\n$16\r\ncancel_requested\r\n:1\r\n$7\r\noutcome\r\n$1\r\n7\r\n";

TEST_F(VerbsTest, get_shows_every_field) {
  replies_ = kJob;
  ASSERT_TRUE(run({"get", "order", "42"}));
  EXPECT_THAT(sent_.back(), ElementsAre("GET", "order", "42"));
  EXPECT_EQ(output(),
            "id                42\n"
            "body              \\xff\n"
            "due               2030-01-31T08:00:30.000Z, in 30s\n"
            "priority          1,024\n"
            "cancel requested  yes\n"
            "outcome           7\n");
  json_ = true;
  replies_ = kJob;
  ASSERT_TRUE(run({"get", "order", "42"}));
  EXPECT_EQ(output(),
            "{\"id\":\"42\",\"body_base64\":\"/w==\",\"due_ms\":1896076830000,\"priority\":1024,"
            "\"cancel_requested\":true,\"outcome\":\"7\"}\n");
}

TEST_F(VerbsTest, get_of_no_job_is_an_error) {
  replies_ = "$-1\r\n";
  EXPECT_EQ(run({"get", "order", "7"}).error(),
            (Error{ErrorCode::kNotFound, "", "topic order has no job \"7\""}));
}

TEST_F(VerbsTest, cancel_by_id_or_group) {
  replies_ = "+cancelled\r\n:1200\r\n";
  EXPECT_TRUE(run({"cancel", "order", "7"}));
  EXPECT_TRUE(run({"cancel", "--group", "account:7"}));
  EXPECT_THAT(sent_,
              ElementsAre(ElementsAre("CANCEL", "order", "7"), ElementsAre("CANCELGROUP", "account:7")));
  EXPECT_EQ(output(), "cancelled\n1,200 cancelled\n");
  EXPECT_FALSE(run({"cancel", "order"}));
  EXPECT_FALSE(run({"cancel", "order", "7", "--group", "g"}));
}

TEST_F(VerbsTest, reschedule_needs_one_time) {
  replies_ = "+OK\r\n+OK\r\n";
  EXPECT_TRUE(run({"reschedule", "order", "7", "10m"}));
  EXPECT_TRUE(run({"reschedule", "order", "7", "--at", "1896076800"}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("RESCHEDULE", "order", "7", "10m"),
                                 ElementsAre("RESCHEDULE", "order", "7", "AT", "1896076800")));
  EXPECT_FALSE(run({"reschedule", "order", "7"}));
  EXPECT_FALSE(run({"reschedule", "order", "7", "1s", "--at", "1"}));
}

TEST_F(VerbsTest, redrive_pause_resume) {
  replies_ = ":3\r\n:1\r\n+OK\r\n+OK\r\n";
  EXPECT_TRUE(run({"redrive", "order"}));
  EXPECT_TRUE(run({"redrive", "order", "7", "9"}));
  EXPECT_TRUE(run({"pause", "order"}));
  EXPECT_TRUE(run({"resume", "order"}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("REDRIVE", "order"), ElementsAre("REDRIVE", "order", "7", "9"),
                                 ElementsAre("PAUSE", "order"), ElementsAre("RESUME", "order")));
  EXPECT_EQ(output(), "3 ready again\n1 ready again\npaused\nresumed\n");
}

constexpr std::string_view kTwoPages =
    "*2\r\n$1\r\nc\r\n*1\r\n*7\r\n$5\r\norder\r\n:1234\r\n:0\r\n:1\r\n:2\r\n:3\r\n:0\r\n"
    "*2\r\n$0\r\n\r\n*1\r\n*7\r\n$1\r\nx\r\n:1\r\n:0\r\n:1\r\n:2\r\n:3\r\n:1\r\n";

TEST_F(VerbsTest, topics_walks_all_pages) {
  replies_ = kTwoPages;
  ASSERT_TRUE(run({"topics"}));
  EXPECT_THAT(sent_, ElementsAre(ElementsAre("TOPICS"), ElementsAre("TOPICS", "c")));
  EXPECT_EQ(output(),
            "TOPIC  DELAYED  READY  RESERVED  DONE  DEAD  PAUSED\n"
            "order    1,234      0         1     2     3  no\n"
            "x            1      0         1     2     3  yes\n");
  json_ = true;
  replies_ = kTwoPages;
  ASSERT_TRUE(run({"topics"}));
  EXPECT_THAT(output(),
              HasSubstr("{\"topic\":\"x\",\"delayed\":1,\"ready\":0,\"reserved\":1,\"done\":2,\"dead\":3,"
                        "\"paused\":true}\n"));
}

TEST_F(VerbsTest, stats_reads_units_from_names) {
  replies_ =
      "*6\r\n$7\r\ndelayed\r\n:5000\r\n$15\r\nlateness_p99_ms\r\n:1500\r\n$12\r\nmemory_bytes\r\n:2048\r\n";
  ASSERT_TRUE(run({"stats", "order"}));
  EXPECT_THAT(sent_.back(), ElementsAre("STATS", "order"));
  EXPECT_EQ(output(),
            "delayed       5,000\n"
            "lateness p99  1.5s\n"
            "memory        2.0 KiB\n");
}

TEST_F(VerbsTest, dead_lists_up_to_its_count) {
  const std::string job = "*4\r\n$2\r\nid\r\n$1\r\n7\r\n$7\r\noutcome\r\n$6\r\nclosed\r\n";
  replies_ = "*2\r\n$1\r\nc\r\n*1\r\n" + job + "*2\r\n$1\r\nd\r\n*1\r\n" + job;
  ASSERT_TRUE(run({"dead", "order", "--prefix", "7", "--error", "clo", "--count", "2"}));
  EXPECT_THAT(sent_,
              ElementsAre(ElementsAre("LIST", "order", "dead", "PREFIX", "7", "ERROR", "clo", "COUNT", "2"),
                          ElementsAre("LIST", "order", "dead", "PREFIX", "7", "ERROR", "clo", "COUNT", "1",
                                      "CURSOR", "c")));
  EXPECT_THAT(output(), HasSubstr("and more: see --count\n"));
}

TEST_F(VerbsTest, replies_of_another_server_are_told) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"push", "t", "0", "x"},
                                             {"pop", "t"},
                                             {"ack", "L"},
                                             {"extend", "L"},
                                             {"get", "t", "i"},
                                             {"cancel", "--group", "g"},
                                             {"redrive", "t"},
                                             {"topics"},
                                             {"stats"},
                                             {"dead", "t"}}) {
    replies_ = "+PONG\r\n";
    EXPECT_EQ(run(arguments).error().code, ErrorCode::kInternal) << arguments[0];
  }
}

}  // namespace
}  // namespace delayq::cli
