#include "api/resp/conversation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "resp/value.h"
#include "tests/support/resp_client.h"

namespace delayq::resp {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Client = support::RespClient;

class ConversationTest : public support::RespTest {};

// ---- a job's life

TEST_F(ConversationTest, push_answers_the_id) {
  EXPECT_EQ(client.say({"PUSH", "order", "30m", "{}", "ID", "order:1"}), "$7\r\norder:1\r\n");
  EXPECT_THAT(client.say({"push", "order", "0", "{}"}), StartsWith("$36\r\n"));
}

TEST_F(ConversationTest, a_job_is_handed_out_when_it_is_due_and_acked) {
  client.say({"PUSH", "order", "1s", "body", "ID", "a"});
  EXPECT_EQ(client.say({"POP", "order"}), "*0\r\n");
  backend.pass(Millis{1000});
  const std::string popped = client.say({"POP", "order"});
  EXPECT_THAT(popped, StartsWith("*1\r\n*6\r\n$"));
  EXPECT_THAT(popped, HasSubstr("$5\r\norder\r\n$1\r\na\r\n$4\r\nbody\r\n:1\r\n:1700000001000\r\n"));
  const std::string lease = lease_in(popped);
  EXPECT_EQ(client.say({"EXTEND", lease, "30s"}), ":1700000031000\r\n");
  EXPECT_EQ(client.say({"ACK", lease, "order/nonsense"}), ":1\r\n");
  EXPECT_EQ(client.say({"ACK", lease}), ":0\r\n");
  EXPECT_THAT(client.say({"GET", "order", "a"}), HasSubstr("$4\r\ndone\r\n"));
}

TEST_F(ConversationTest, every_option_of_push_reaches_the_job) {
  EXPECT_EQ(client.say({"PUSH",     "t",     "0",          "b",          "id",
                        "a",        "at",    "1700000060", "pri",        "7",
                        "attempts", "2",     "backoff",    "1s,2s",      "lease",
                        "5s",       "group", "g",          "callback",   "http://x.example/",
                        "method",   "PUT",   "format",     "cloudevents"}),
            "$1\r\na\r\n");
  const std::string job = client.say({"GET", "t", "a"});
  EXPECT_THAT(job, HasSubstr("$6\r\ndue_ms\r\n:1700000060000\r\n"));
  EXPECT_THAT(job, HasSubstr("$8\r\npriority\r\n:7\r\n"));
  EXPECT_THAT(job, HasSubstr("$5\r\ngroup\r\n$1\r\ng\r\n"));
  EXPECT_THAT(job, HasSubstr("$8\r\ncallback\r\n$17\r\nhttp://x.example/\r\n"));
  EXPECT_THAT(client.say({"PUSH", "t", "0", "b", "CALLBACK", "x.example"}), StartsWith("-INVALID "));
  EXPECT_THAT(client.say({"PUSH", "t", "0", "b", "FORMAT", "xml"}), StartsWith("-INVALID "));
  EXPECT_THAT(client.say({"PUSH", "t", "0", "b", "ID", "a"}), StartsWith("-CONFLICT "));
  EXPECT_EQ(client.say({"PUSH", "t", "0", "b", "ID", "a", "KEEP"}), "$1\r\na\r\n");
  EXPECT_EQ(client.say({"PUSH", "t", "0", "b2", "ID", "a", "REPLACE"}), "$1\r\na\r\n");
  EXPECT_THAT(client.say({"PUSH", "other", "0", "b", "ID", "a", "UNIQUE"}), StartsWith("-CONFLICT "));
  EXPECT_THAT(client.say({"GET", "a"}), HasSubstr("$2\r\nb2\r\n"));
}

TEST_F(ConversationTest, headers_reach_those_who_ask_for_them) {
  EXPECT_EQ(
      client.say({"PUSH", "t", "0", "b", "header", "traceparent", "00-1", "ID", "a", "HEADER", "Tenant", ""}),
      "$1\r\na\r\n");
  client.say({"PUSH", "t", "0", "b", "ID", "b"});
  constexpr std::string_view kHeaders =
      "*4\r\n$11\r\ntraceparent\r\n$4\r\n00-1\r\n$6\r\nTenant\r\n$0\r\n\r\n";
  EXPECT_THAT(client.say({"GET", "t", "a"}), HasSubstr(fmt::format("$7\r\nheaders\r\n{}", kHeaders)));
  EXPECT_THAT(client.say({"GET", "t", "b"}), Not(HasSubstr("headers")));
  EXPECT_THAT(client.say({"LIST", "t", "ready"}), Not(HasSubstr("headers")));
  const std::string old = client.say({"POP", "t"});
  EXPECT_THAT(old, StartsWith("*1\r\n*6\r\n$"));
  EXPECT_THAT(old, Not(HasSubstr("traceparent")));
  client.say({"NACK", lease_in(old), "DELAY", "0"});
  const std::string popped = client.say({"POP", "t", "COUNT", "2", "HEADERS"});
  EXPECT_THAT(popped, StartsWith("*2\r\n*7\r\n$"));
  EXPECT_THAT(popped, HasSubstr(fmt::format(":1700000000000\r\n{}", kHeaders)));
  EXPECT_THAT(popped, EndsWith(":1\r\n:1700000000000\r\n*0\r\n"));
  EXPECT_THAT(client.say({"HELLO", "3"}), StartsWith("%"));
  EXPECT_THAT(client.say({"GET", "t", "a"}), HasSubstr("$7\r\nheaders\r\n%2\r\n$11\r\n"));
}

TEST_F(ConversationTest, a_callback_header_cannot_smuggle_another_one) {
  const auto push = [this](std::string_view name, std::string_view value) {
    return client.say({"PUSH", "t", "0", "b", "CALLBACK", "http://h/", "CALLBACKHEADER", name, value});
  };
  EXPECT_THAT(push("A", "b"), StartsWith("$"));
  for (const auto& [name, value] :
       {std::pair("A", "b\nC: d"), {"A", "b\r\nC: d"}, {"A: b\nC", "d"}, {"A: b", "d"}})
    EXPECT_THAT(push(name, value), StartsWith("-INVALID ")) << name;
  EXPECT_THAT(client.say({"SCHEDULE", "SET", "s", "EVERY", "1h", "TOPIC", "t", "BODY", "b", "CALLBACK",
                          "http://h/", "CALLBACKHEADER", "A", "b\nC: d"}),
              StartsWith("-INVALID "));
}

TEST_F(ConversationTest, pops_with_and_without_headers_are_not_joined) {
  client.say({"PUSH", "t", "0", "1", "HEADER", "n", "1"});
  client.say({"PUSH", "t", "0", "2", "HEADER", "n", "2"});
  client.say({"PUSH", "t", "0", "3", "HEADER", "n", "3"});
  std::string commands;
  append_command(commands, {"POP", "t", "HEADERS"});
  append_command(commands, {"POP", "t", "HEADERS"});
  append_command(commands, {"POP", "t"});
  const std::string replies = client.say(commands);
  EXPECT_THAT(replies, StartsWith("*1\r\n*7\r\n"));
  EXPECT_THAT(replies, HasSubstr("*2\r\n$1\r\nn\r\n$1\r\n1\r\n*1\r\n*7\r\n"));
  EXPECT_THAT(replies, HasSubstr("*2\r\n$1\r\nn\r\n$1\r\n2\r\n*1\r\n*6\r\n"));
}

TEST_F(ConversationTest, each_push_of_a_pipeline_has_its_own_headers) {
  std::string commands;
  append_command(commands, {"PUSH", "t", "0", "b", "ID", "1", "HEADER", "n", "first"});
  append_command(commands, {"PUSH", "t", "0", "b", "ID", "2"});
  append_command(commands, {"PUSH", "t", "0", "b", "ID", "3", "HEADER", "n", "third", "WHAT"});
  append_command(commands, {"PUSH", "t", "0", "b", "ID", "4", "HEADER", "n", "fourth"});
  client.say(commands);
  EXPECT_THAT(client.say({"GET", "t", "1"}), HasSubstr("$5\r\nfirst\r\n"));
  EXPECT_THAT(client.say({"GET", "t", "2"}), Not(HasSubstr("headers")));
  EXPECT_EQ(client.say({"GET", "t", "3"}), "$-1\r\n");
  EXPECT_THAT(client.say({"GET", "t", "4"}), HasSubstr("*2\r\n$1\r\nn\r\n$6\r\nfourth\r\n"));
  client.say({"PUSH", "t", "0", "b", "ID", "1", "REPLACE"});
  EXPECT_THAT(client.say({"GET", "t", "1"}), Not(HasSubstr("headers")));
}

TEST_F(ConversationTest, bad_headers_are_named) {
  EXPECT_THAT(client.say({"PUSH", "t", "0", "b", "HEADER", "a"}), StartsWith("-INVALID HEADER: "));
  EXPECT_THAT(client.say({"PUSH", "t", "0", "b", "HEADER", "a", "1", "HEADER", "A", "2"}),
              StartsWith("-INVALID headers.A: "));
  EXPECT_THAT(client.say({"PUSH", "t", "0", "b", "HEADER", "a b", "1"}), StartsWith("-INVALID headers: "));
  EXPECT_THAT(client.say({"PUSH", "t", "0", "b", "HEADER", "a", "1\r\nHost: x"}),
              StartsWith("-INVALID headers.a: "));
  EXPECT_THAT(client.say({"PUSH", "t", "0", "b", "HEADER", "Host", "x"}),
              StartsWith("-INVALID headers.Host: "));
  EXPECT_EQ(client.say({"POP", "t"}), "*0\r\n") << "nothing was stored";
}

TEST_F(ConversationTest, headers_of_a_transaction_stay_with_their_jobs) {
  for (const char* const id : {"1", "2"}) {
    client.say({"MULTI"});
    client.say({"PUSH", "t", "0", "b", "ID", id, "HEADER", "n", id});
    client.say({"PUSH", "t", "0", "b", "HEADER", "n", "other"});
    EXPECT_THAT(client.say({"EXEC"}), StartsWith("*2\r\n$1\r\n"));
    EXPECT_THAT(client.say({"GET", "t", id}), HasSubstr(fmt::format("$1\r\nn\r\n$1\r\n{}\r\n", id)));
  }
}

TEST_F(ConversationTest, released_jobs_are_ready_again_and_their_attempt_is_not_counted) {
  client.say({"PUSH", "t", "0", "b", "ID", "a", "ATTEMPTS", "1"});
  client.say({"PUSH", "t", "0", "b", "ID", "b", "ATTEMPTS", "1"});
  const std::string first = lease_in(client.say({"POP", "t"}));
  const std::string second = lease_in(client.say({"POP", "t"}));
  EXPECT_EQ(client.say({"RELEASE", first, "t/nonsense", second}), ":2\r\n");
  EXPECT_EQ(client.say({"RELEASE", first}), ":0\r\n") << "it is not current any more";
  EXPECT_EQ(client.say({"ACK", second}), ":0\r\n");
  EXPECT_THAT(client.say({"GET", "t", "a"}), HasSubstr("$8\r\nattempts\r\n:0\r\n"));
  const std::string again = client.say({"POP", "t", "COUNT", "2"});
  EXPECT_THAT(again, StartsWith("*2\r\n*6\r\n"));
  EXPECT_THAT(again, HasSubstr("$1\r\na\r\n$1\r\nb\r\n:1\r\n")) << "the first attempt again";
}

TEST_F(ConversationTest, a_cancelled_job_that_is_released_is_gone) {
  client.say({"PUSH", "t", "0", "b", "ID", "a"});
  const std::string lease = lease_in(client.say({"POP", "t"}));
  EXPECT_EQ(client.say({"CANCEL", "t", "a"}), "+reserved\r\n");
  EXPECT_EQ(client.say({"RELEASE", lease}), ":1\r\n");
  EXPECT_EQ(client.say({"GET", "t", "a"}), "$-1\r\n");
}

TEST_F(ConversationTest, nack_retries_later_or_never) {
  client.say({"PUSH", "t", "0", "b", "ID", "a"});
  EXPECT_EQ(client.say({"NACK", lease_in(client.say({"POP", "t"})), "DELAY", "5s", "REASON", "not now"}),
            "+OK\r\n");
  EXPECT_EQ(client.say({"POP", "t"}), "*0\r\n");
  backend.pass(Millis{5000});
  EXPECT_EQ(client.say({"NACK", lease_in(client.say({"POP", "t"})), "DEAD", "REASON", "never"}), "+OK\r\n");
  EXPECT_THAT(client.say({"NACK", "t/00000000030000100000001"}), StartsWith("-STALELEASE "));
  EXPECT_THAT(client.say({"LIST", "t", "dead", "ERROR", "nev", "COUNT", "10"}), HasSubstr("$5\r\nnever\r\n"));
  EXPECT_EQ(client.say({"REDRIVE", "t", "nobody"}), ":0\r\n");
  EXPECT_EQ(client.say({"REDRIVE", "t", "ERROR", "other"}), ":0\r\n");
  EXPECT_EQ(client.say({"REDRIVE", "t"}), ":1\r\n");
  EXPECT_THAT(client.say({"POP", "t", "AUTOACK"}), StartsWith("*1\r\n*6\r\n$0\r\n"));
}

TEST_F(ConversationTest, cancel_reschedule_and_groups_tell_the_truth) {
  client.say({"PUSH", "t", "1h", "b", "ID", "a", "GROUP", "g"});
  client.say({"PUSH", "t", "1h", "b", "ID", "b", "GROUP", "g"});
  EXPECT_EQ(client.say({"RESCHEDULE", "t", "a", "2h"}), "+OK\r\n");
  EXPECT_EQ(client.say({"RESCHEDULE", "t", "a", "AT", "1700009999"}), "+OK\r\n");
  EXPECT_THAT(client.say({"RESCHEDULE", "t", "x", "2h"}), StartsWith("-NOTFOUND "));
  EXPECT_EQ(client.say({"CANCEL", "t", "a"}), "+cancelled\r\n");
  EXPECT_EQ(client.say({"CANCEL", "t", "a"}), "+unknown\r\n");
  EXPECT_EQ(client.say({"CANCELGROUP", "g"}), ":1\r\n");
  client.say({"PUSH", "t", "1h", "b", "ID", "c"});
  EXPECT_EQ(client.say({"CANCEL", "c"}), "+cancelled\r\n");
  EXPECT_EQ(client.say({"GET", "t", "c"}), "$-1\r\n");
}

TEST_F(ConversationTest, words_that_contradict_or_mean_nothing_are_refused) {
  for (const auto& both : {std::array{"REPLACE", "KEEP"}, {"KEEP", "REPLACE"}}) {
    EXPECT_EQ(client.say({"PUSH", "t", "0", "b", "ID", "a", both[0], both[1]}),
              "-INVALID REPLACE and KEEP: give one of them\r\n");
  }
  EXPECT_EQ(client.say({"GET", "t", "a"}), "$-1\r\n") << "nothing of it was stored";
  EXPECT_EQ(client.say({"PUSH", "t", "0", "b", "ID", "a", "KEEP", "KEEP"}), "$1\r\na\r\n");

  EXPECT_THAT(client.say({"REDRIVE", "t", "ERROR"}), StartsWith("-INVALID \"ERROR\" is not understood here"));
  EXPECT_THAT(client.say({"REDRIVE", "t", "ERROR", "a", "b"}), StartsWith("-INVALID \"ERROR\" is not under"));
  EXPECT_THAT(client.say({"REDRIVE", "t", "limit", "10"}),
              StartsWith("-INVALID \"limit\" is not understood"));
  EXPECT_THAT(client.say({"REDRIVE", "t", "a", "COUNT", "1"}), StartsWith("-INVALID \"COUNT\" is not under"));
  EXPECT_THAT(client.say({"REDRIVE", "t", "ID"}), StartsWith("-INVALID ID: a value is missing"));
  EXPECT_EQ(client.say({"REDRIVE", "t", "ID", "limit", "ERROR"}), ":0\r\n") << "these are ids";
}

TEST_F(ConversationTest, settings_are_unset_and_an_empty_topic_is_forgotten) {
  backend.queue.set_settings(backend.now, "t", {.attempts = 3, .lease = Millis{5'000}, .paused = true},
                             [](const Status&) {});
  EXPECT_THAT(client.say({"UNSET", "t", "lease", "leese"}),
              StartsWith("-INVALID \"leese\" is not a setting of a topic; did you mean lease?"));
  EXPECT_EQ(backend.queue.settings("t").lease, Millis{5'000}) << "all or nothing";
  EXPECT_EQ(client.say({"UNSET", "t", "LEASE", "attempts"}), "+OK\r\n");
  EXPECT_EQ(backend.queue.settings("t"), Settings{.paused = true});
  EXPECT_THAT(client.say({"TOPICS"}), HasSubstr("$1\r\nt\r\n"));
  EXPECT_EQ(client.say({"UNSET", "t"}), "+OK\r\n");
  EXPECT_EQ(backend.queue.settings("t"), Settings{});

  client.say({"PAUSE", "t"});
  client.say({"PUSH", "t", "1h", "b"});
  EXPECT_THAT(client.say({"FORGET", "t"}),
              StartsWith("-CONFLICT topic \"t\" has 1 job: only an empty topic"));
  client.say({"PURGE", "t"});
  EXPECT_EQ(client.say({"FORGET", "t"}), "+OK\r\n");
  EXPECT_EQ(client.say({"TOPICS"}), "*2\r\n$0\r\n\r\n*0\r\n");
}

TEST_F(ConversationTest, topics_stats_pause_and_purge) {
  client.say({"PUSH", "a", "1h", "b"});
  client.say({"PUSH", "b", "0", "b"});
  EXPECT_EQ(client.say({"PAUSE", "b"}), "+OK\r\n");
  EXPECT_EQ(client.say({"POP", "b"}), "*0\r\n");
  EXPECT_EQ(client.say({"TOPICS"}),
            "*2\r\n$0\r\n\r\n*2\r\n*7\r\n$1\r\na\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n"
            "*7\r\n$1\r\nb\r\n:0\r\n:1\r\n:0\r\n:0\r\n:0\r\n:1\r\n");
  EXPECT_THAT(client.say({"TOPICS", "", "1"}), StartsWith("*2\r\n$1\r\na\r\n"));
  EXPECT_EQ(client.say({"RESUME", "b"}), "+OK\r\n");
  EXPECT_THAT(client.say({"STATS", "b"}), HasSubstr("$5\r\nready\r\n:1\r\n"));
  EXPECT_THAT(client.say({"STATS"}), HasSubstr("$6\r\npushed\r\n:2\r\n"));
  EXPECT_THAT(client.say({"PURGE", "a", "nonsense"}), HasSubstr("state"));
  EXPECT_EQ(client.say({"PURGE", "a", "delayed"}), ":1\r\n");
  EXPECT_EQ(client.say({"PURGE", "b"}), ":1\r\n");
}

// ---- order, batches, waiting

TEST_F(ConversationTest, replies_come_in_the_order_of_the_commands) {
  std::string bytes;
  append_command(bytes, {"PUSH", "t", "0", "1", "ID", "a"});
  append_command(bytes, {"PING"});
  append_command(bytes, {"PUSH", "t", "0", "2", "ID", "b"});
  append_command(bytes, {"PUSH", "t", "nonsense", "2", "ID", "c"});
  append_command(bytes, {"PUSH", "t", "0", "3", "ID", "d"});
  append_command(bytes, {"CANCEL", "t", "a"});
  append_command(bytes, {"CANCEL", "t", "b"});
  append_command(bytes, {"ECHO", "end"});
  EXPECT_THAT(
      client.say(bytes),
      testing::MatchesRegex("\\$1\r\na\r\n\\+PONG\r\n\\$1\r\nb\r\n-INVALID delay: [^\r]*\r\n\\$1\r\nd\r\n"
                            "\\+cancelled\r\n\\+cancelled\r\n\\$3\r\nend\r\n"));
}

TEST_F(ConversationTest, pops_that_came_together_share_what_there_is) {
  for (const char* id : {"a", "b", "c"}) client.say({"PUSH", "t", "0", id, "ID", id});
  std::string bytes;
  for (int i = 0; i < 3; ++i) append_command(bytes, {"POP", "t", "COUNT", "2"});
  append_command(bytes, {"POP", "u"});
  append_command(bytes, {"POP", "u", "COUNT", "0"});
  append_command(bytes, {"PING"});
  const std::string replies = client.say(bytes);
  std::string_view rest = replies;
  std::vector<size_t> sizes;
  for (int i = 0; i < 4; ++i) {
    const auto reply = take_reply(rest);
    ASSERT_TRUE(reply.ok() && reply->has_value());
    sizes.push_back((*reply)->items.size());
  }
  EXPECT_THAT(sizes, testing::ElementsAre(2, 1, 0, 0));
  EXPECT_THAT(std::string(rest), testing::MatchesRegex("-INVALID count[^\r]*\r\n\\+PONG\r\n"));
}

TEST_F(ConversationTest, pops_that_came_together_all_have_their_share_of_large_jobs) {
  const std::string body(size_t{1} << 20, 'x');
  for (int i = 0; i < 20; ++i) client.say({"PUSH", "t", "0", body, "ID", std::to_string(100 + i)});
  std::string bytes;
  for (int i = 0; i < 9; ++i) append_command(bytes, {"POP", "t", "COUNT", "3"});
  append_command(bytes, {"PING"});
  const std::string replies = client.say(bytes);
  std::string_view rest = replies;
  std::vector<size_t> sizes;
  int next = 100;
  for (int i = 0; i < 9; ++i) {
    const auto reply = take_reply(rest);
    ASSERT_TRUE(reply.ok() && reply->has_value());
    sizes.push_back((*reply)->items.size());
    for (const Value& job : (*reply)->items) EXPECT_EQ(job.items[2].text, std::to_string(next++));
  }
  EXPECT_THAT(sizes, testing::ElementsAre(3, 3, 2, 3, 3, 2, 3, 1, 0)) << "8 MiB of bodies are one answer";
  EXPECT_EQ(rest, "+PONG\r\n");
}

TEST_F(ConversationTest, who_hangs_up_between_two_parts_of_large_jobs_gets_no_more) {
  const std::string body(size_t{1} << 20, 'x');
  for (int i = 0; i < 20; ++i) client.say({"PUSH", "t", "0", body});
  Client other(backend);
  std::string bytes;
  for (int i = 0; i < 9; ++i) append_command(bytes, {"POP", "t", "COUNT", "3"});
  other.conversation().read(bytes);
  other.hang_up();
  backend.settle();
  EXPECT_THAT(client.say({"POP", "t", "COUNT", "3"}), StartsWith("*3\r\n")) << "they went back";
}

TEST_F(ConversationTest, input_may_be_cut_anywhere) {
  std::string bytes;
  append_command(bytes, {"PUSH", "t", "0", "one\r\ntwo", "ID", "a"});
  append_command(bytes, {"GET", "t", "a"});
  bytes += "PUSH t 0 \"in line\" ID b\r\nPING\n";
  append_command(bytes, {"CANCEL", "t", "a"});
  append_command(bytes, {"CANCEL", "t", "b"});
  const std::string whole = client.say(bytes);
  for (size_t cut = 1; cut < bytes.size(); ++cut) {
    Client other(backend);
    std::string replies = other.say(std::string_view(bytes).substr(0, cut));
    replies += other.say(std::string_view(bytes).substr(cut));
    ASSERT_EQ(replies, whole) << "cut at " << cut;
  }
}

TEST_F(ConversationTest, a_waiting_pop_holds_up_what_is_behind_it_and_nobody_else) {
  Client other(backend);
  std::string bytes;
  append_command(bytes, {"POP", "t", "WAIT", "10s"});
  append_command(bytes, {"PING"});
  EXPECT_EQ(client.say(bytes), "");
  EXPECT_FALSE(client.conversation().wants_input());
  EXPECT_EQ(other.say({"PUSH", "t", "0", "b", "ID", "a"}), "$1\r\na\r\n");
  EXPECT_THAT(client.hear(), testing::AllOf(StartsWith("*1\r\n*6\r\n"), testing::EndsWith("+PONG\r\n")));
  EXPECT_EQ(client.resumed(), 1);
}

TEST_F(ConversationTest, a_pop_that_waited_in_vain_answers_with_nothing) {
  EXPECT_EQ(client.say({"POP", "t", "u", "COUNT", "5", "WAIT", "2s", "LEASE", "1m"}), "");
  backend.pass(Millis{1999});
  EXPECT_EQ(client.hear(), "");
  backend.pass(Millis{1});
  EXPECT_EQ(client.hear(), "*0\r\n");
}

TEST_F(ConversationTest, who_hangs_up_while_waiting_is_handed_nothing) {
  Client other(backend);
  other.say({"POP", "t", "WAIT", "10s"});
  other.hang_up();
  client.say({"PUSH", "t", "0", "b", "ID", "a"});
  EXPECT_THAT(client.say({"POP", "t"}), HasSubstr("$1\r\na\r\n"));
}

TEST_F(ConversationTest, answers_for_one_who_hung_up_are_dropped) {
  Client other(backend);
  std::string bytes;
  append_command(bytes, {"PUSH", "t", "1h", "b", "ID", "a"});
  other.conversation().read(bytes);
  const int before = other.told();
  std::weak_ptr<api::Conversation> alive = other.conversation().weak_from_this();
  other.hang_up();
  EXPECT_EQ(other.told(), before);
  EXPECT_TRUE(alive.expired()) << "something still holds it";
  EXPECT_THAT(client.say({"GET", "t", "a"}), HasSubstr("delayed")) << "what it had asked is done";
}

// ---- what Redis clients say when they connect

TEST_F(ConversationTest, hello_chooses_the_protocol) {
  EXPECT_THAT(client.say({"HELLO"}), StartsWith("*14\r\n$6\r\nserver\r\n$6\r\ndelayq\r\n"));
  EXPECT_THAT(client.say({"HELLO", "4"}), StartsWith("-NOPROTO "));
  EXPECT_THAT(client.say({"HELLO", "3", "SETNAME", "me"}), StartsWith("%7\r\n"));
  EXPECT_EQ(client.say({"CLIENT", "GETNAME"}), "$2\r\nme\r\n");
  EXPECT_EQ(client.say({"GET", "t", "nobody"}), "_\r\n");
  client.say({"PUSH", "t", "1h", "b", "ID", "a"});
  EXPECT_THAT(client.say({"GET", "t", "a"}), StartsWith("%8\r\n$5\r\ntopic\r\n"));
  EXPECT_EQ(client.say({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(client.say({"GET", "t", "nobody"}), "$-1\r\n");
}

TEST_F(ConversationTest, hello_is_for_the_replies_to_come) {
  client.say({"PUSH", "t", "1h", "b", "ID", "a"});
  std::string bytes;
  append_command(bytes, {"GET", "t", "a"});
  append_command(bytes, {"HELLO", "3"});
  append_command(bytes, {"GET", "t", "a"});
  append_command(bytes, {"GET", "t", "none"});
  append_command(bytes, {"HELLO", "2"});
  append_command(bytes, {"GET", "t", "none"});
  append_command(bytes, {"RESET"});
  append_command(bytes, {"HELLO", "3"});
  append_command(bytes, {"GET", "t", "none"});
  const std::string replies = client.say(bytes);
  EXPECT_THAT(replies, StartsWith("*16\r\n$5\r\ntopic\r\n"));
  EXPECT_THAT(replies, testing::ContainsRegex("\r\n%7\r\n\\$6\r\nserver"));
  EXPECT_THAT(replies, HasSubstr("\r\n%8\r\n$5\r\ntopic\r\n"));
  EXPECT_THAT(replies, HasSubstr("\r\n_\r\n*14\r\n$6\r\nserver"));
  EXPECT_THAT(replies, HasSubstr("\r\n$-1\r\n+RESET\r\n%7\r\n"));
  EXPECT_THAT(replies, testing::EndsWith("\r\n_\r\n"));
}

TEST_F(ConversationTest, each_command_has_one_reply_whatever_stands_behind_it) {
  for (const char* command : {"CLIENT ID x", "CLIENT GETNAME x", "CLIENT SETNAME a b", "COMMAND COUNT x",
                              "COMMAND LIST x", "HELLO 3 x", "HELLO 4 x", "CONFIG GET a b", "SELECT 0 1",
                              "PING a b", "INFO a b", "GET a b c", "TOPICS a 1 2", "RESET x", "QUIT x",
                              "AUTH a b c", "AUTH a b", "REDRIVE t ERROR a b", "PURGE t ready x"}) {
    Client other(backend);
    const std::string replies = other.say(std::string(command) + "\r\nECHO end\r\n");
    std::string_view rest = replies;
    for (int i = 0; i < 2; ++i) {
      const auto reply = take_reply(rest);
      ASSERT_TRUE(reply.ok() && reply->has_value()) << command << replies;
      if (i == 1) {
        EXPECT_EQ((*reply)->text, "end") << command;
      }
    }
    EXPECT_EQ(rest, "") << command;
  }
}

TEST_F(ConversationTest, small_talk) {
  EXPECT_EQ(client.say({"PING", "you"}), "$3\r\nyou\r\n");
  EXPECT_EQ(client.say({"SELECT", "0"}), "+OK\r\n");
  EXPECT_THAT(client.say({"SELECT", "1"}), StartsWith("-INVALID "));
  EXPECT_THAT(client.say({"AUTH", "x"}), StartsWith("-INVALID "));
  EXPECT_EQ(client.say({"CLIENT", "SETINFO", "LIB-NAME", "x"}), "+OK\r\n");
  EXPECT_THAT(client.say({"CLIENT", "ID"}), StartsWith(":"));
  EXPECT_THAT(client.say({"CLIENT", "KILL"}), StartsWith("-INVALID "));
  EXPECT_EQ(client.say({"CONFIG", "GET", "save"}), "*0\r\n");
  EXPECT_THAT(client.say({"INFO", "server"}), HasSubstr("delayq_version:9.9.9\r\n"));
  EXPECT_EQ(client.say({"COMMAND", "COUNT"}), ":" + std::to_string(all_commands().size()) + "\r\n");
  EXPECT_THAT(client.say({"COMMAND", "INFO", "push", "nosuch"}),
              StartsWith("*2\r\n*10\r\n$4\r\npush\r\n:-4\r\n"));
  EXPECT_THAT(client.say({"COMMAND", "DOCS", "ping"}), StartsWith("*2\r\n$4\r\nping\r\n*8\r\n"));
  EXPECT_THAT(client.say({"COMMAND"}), StartsWith("*" + std::to_string(all_commands().size()) + "\r\n"));
  EXPECT_THAT(client.say({"COMMAND", "LIST"}), HasSubstr("reschedule"));
}

TEST_F(ConversationTest, quit_is_answered_and_ends_it) {
  EXPECT_FALSE(client.conversation().is_over());
  std::string bytes;
  append_command(bytes, {"PUSH", "t", "1h", "b", "ID", "a"});
  append_command(bytes, {"QUIT"});
  append_command(bytes, {"PING"});
  EXPECT_EQ(client.say(bytes), "$1\r\na\r\n+OK\r\n");
  EXPECT_TRUE(client.conversation().is_over());
}

// ---- bad input

TEST_F(ConversationTest, what_is_refused_is_told_by_name_and_stores_nothing) {
  const std::pair<std::vector<std::string_view>, std::string_view> cases[] = {
      {{"PUSH", "bad topic", "0", "b"}, "topic"},
      {{"PUSH", "t", "-1", "b"}, "delay"},
      {{"PUSH", "t", "1s", "b", "AT", "1700000060"}, "delay"},
      {{"PUSH", "t", "0", "b", "AT", "yesterday"}, "AT"},
      {{"PUSH", "t", "0", "b", "ID", ""}, "id"},
      {{"PUSH", "t", "0", "b", "PRI", "x"}, "PRI"},
      {{"PUSH", "t", "0", "b", "PRI", "5000000000"}, "PRI"},
      {{"PUSH", "t", "0", "b", "ATTEMPTS"}, "ATTEMPTS"},
      {{"PUSH", "t", "0", "b", "BACKOFF", "soon"}, "BACKOFF"},
      {{"PUSH", "t", "0", "b", "LEASE", "1ms"}, "lease"},
      {{"PUSH", "t", "0", "b", "WHATEVER"}, "usage: PUSH"},
      {{"PUSH", "t", "0"}, "usage: PUSH"},
      {{"POP", "t", "COUNT", "0"}, "count"},
      {{"POP", "t", "WAIT", "2h"}, "wait"},
      {{"POP", "t", "WAIT"}, "WAIT"},
      {{"POP", "t", "COUNT", "1", "u"}, "usage: POP"},
      {{"NACK", "x", "DELAY"}, "DELAY"},
      {{"EXTEND", "x", "soon"}, "duration"},
      {{"RESCHEDULE", "t", "a", "soon"}, "delay"},
      {{"RESCHEDULE", "t", "a", "1s", "x"}, "usage: RESCHEDULE"},
      {{"LIST", "t", "asleep"}, "state"},
      {{"LIST", "t", "dead", "COUNT", "many"}, "COUNT"},
      {{"LIST", "t", "dead", "DUEAFTER", "1h"}, "DUEAFTER"},
      {{"LIST", "t", "dead", "DUEBEFORE"}, "DUEBEFORE"},
      {{"TOPICS", "", "many"}, "count"},
      {{"NOSUCH"}, "unknown command"},
      {{"COMMAND", "NOSUCH"}, "NOSUCH"},
  };
  for (const auto& [words, named] : cases) {
    std::string bytes;
    append_command(bytes, words);
    const std::string reply = client.say(bytes);
    EXPECT_THAT(reply, StartsWith("-INVALID ")) << bytes;
    EXPECT_THAT(reply, HasSubstr(std::string(named))) << bytes;
    EXPECT_EQ(std::count(reply.begin(), reply.end(), '\n'), 1) << reply;
  }
  EXPECT_THAT(client.say({"STATS"}), HasSubstr("$4\r\njobs\r\n:0\r\n"));
}

TEST_F(ConversationTest, what_begins_with_no_text_is_not_read_for_lines) {
  client.say({"PUSH", "order", "1h", "b", "ID", "precious"});
  for (const std::string_view begin : {std::string_view("\x16\x03\x01"), std::string_view("\0\1", 2)}) {
    Client other(backend);
    const std::string said = other.say(std::string(begin) + "\r\nPURGE order\r\n");
    EXPECT_THAT(said, StartsWith("-ERR Protocol error: bytes that are no command"));
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_TRUE(other.conversation().is_over());
  }
  EXPECT_THAT(client.say({"GET", "order", "precious"}), HasSubstr("delayed"));
  EXPECT_EQ(client.say("\r\n  PING\r\n"), "+PONG\r\n");
}

TEST_F(ConversationTest, every_refusal_is_counted) {
  const auto refused = [this](ErrorCode code) {
    return backend.host.front->traffic[ProtocolKind::kResp].refusals[static_cast<size_t>(code)];
  };
  client.say({"PUSH", "t", "1h", "b", "ID", "a"});
  std::string bytes;
  append_command(bytes, {"PUSH", "t", "1h", "b", "ID", "a"});
  append_command(bytes, {"PUSH", "t", "1h", "b", "ID", "c"});
  append_command(bytes, {"PUSH", "t", "1h", "b", "ID", "a"});
  append_command(bytes, {"RESCHEDULE", "t", "none", "5s"});
  append_command(bytes, {"EXTEND", "t/00000000030000100000001"});
  append_command(bytes, {"POP", "bad topic"});
  append_command(bytes, {"NOSUCH"});
  client.say(bytes);
  EXPECT_EQ(refused(ErrorCode::kConflict), 2U);
  EXPECT_EQ(refused(ErrorCode::kNotFound), 1U);
  EXPECT_EQ(refused(ErrorCode::kStaleLease), 1U);
  EXPECT_EQ(refused(ErrorCode::kInvalid), 2U);
  client.say("*x\r\n");
  EXPECT_EQ(refused(ErrorCode::kInvalid), 3U);
}

TEST_F(ConversationTest, a_web_page_cannot_command_it) {
  std::vector<std::string> turned_away;
  backend.host.front->turned_away = [&](const Served& served) {
    turned_away.push_back(fmt::format("{} {}", served.verb, served.code));
  };
  client.say({"PUSH", "order", "1h", "b", "ID", "precious"});
  const std::string body = "\r\nPURGE order\r\nPUSH order 0 evil ID evil\r\n";
  for (const std::string_view head : {"POST / HTTP/1.1\r\nHost: 127.0.0.1:9278\r\n", "GET / HTTP/1.1\r\n",
                                      "OPTIONS * HTTP/1.1\r\n", "PUSH /order HTTP/1.1\r\n", "post /\r\n",
                                      "Host: 127.0.0.1\r\n", "PURGE /x HTTP/1.0\r\n", "GET /\"x\r\n"}) {
    Client page(backend);
    const std::string said = page.say(std::string(head) + body);
    EXPECT_THAT(said, StartsWith("-")) << head;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_TRUE(page.conversation().is_over()) << head;
  }
  EXPECT_THAT(client.say({"GET", "order", "precious"}), HasSubstr("delayed"));
  EXPECT_EQ(client.say({"GET", "order", "evil"}), "$-1\r\n");
  EXPECT_EQ(turned_away, std::vector<std::string>(7, "HTTP forbidden"));
  EXPECT_EQ(
      backend.host.front->traffic[ProtocolKind::kResp].refusals[static_cast<size_t>(ErrorCode::kForbidden)],
      7U);
  EXPECT_EQ(client.say({"PUSH", "t", "1h", "HTTP/1.1", "ID", "a"}), "$1\r\na\r\n") << "that is no line";
}

TEST_F(ConversationTest, after_bytes_that_are_no_command_it_is_over) {
  client.say({"PUSH", "t", "1h", "b"});
  EXPECT_THAT(client.say("*1\r\n$99999999999\r\n"), StartsWith("-ERR Protocol error: "));
  EXPECT_TRUE(client.conversation().is_over());
}

}  // namespace
}  // namespace delayq::resp
