// MULTI, EXEC, DISCARD.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/resp/conversation.h"
#include "resp/value.h"
#include "tests/support/resp_client.h"
#include "tests/support/tokens.h"

namespace delayq::resp {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class TransactionTest : public testing::Test {
 protected:
  /// These commands, in one piece.
  std::string say_all(std::initializer_list<std::initializer_list<std::string_view>> commands) {
    std::string bytes;
    for (const auto& words : commands) append_command(bytes, words);
    return client.say(bytes);
  }

  support::Backend backend;
  support::RespClient client{backend};
};

TEST_F(TransactionTest, commands_run_in_their_order_at_exec) {
  EXPECT_EQ(client.say({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(client.say({"PUSH", "t", "0", "one", "ID", "a"}), "+QUEUED\r\n");
  EXPECT_EQ(client.say({"GET", "t", "a"}), "+QUEUED\r\n");
  support::RespClient other(backend);
  EXPECT_EQ(other.say({"GET", "t", "a"}), "$-1\r\n") << "nothing runs before EXEC";
  EXPECT_EQ(client.say({"CANCEL", "t", "a"}), "+QUEUED\r\n");
  EXPECT_EQ(client.say({"PUSH", "t", "soon", "x"}), "+QUEUED\r\n")
      << "what is wrong with it is found at EXEC";
  EXPECT_EQ(client.say({"CANCEL", "t", "a"}), "+QUEUED\r\n");
  const std::string replies = client.say({"EXEC"});
  EXPECT_THAT(replies, StartsWith("*5\r\n$1\r\na\r\n*16\r\n"));
  EXPECT_THAT(replies, testing::ContainsRegex("\\+cancelled\r\n-INVALID delay[^\r]*\r\n\\+unknown\r\n"));
  EXPECT_EQ(client.say({"PING"}), "+PONG\r\n");
}

TEST_F(TransactionTest, it_may_come_in_one_piece_like_a_pipeline) {
  EXPECT_EQ(say_all({{"PUSH", "t", "0", "x", "ID", "0"},
                     {"MULTI"},
                     {"PUSH", "t", "0", "x", "ID", "1"},
                     {"PUSH", "t", "0", "x", "ID", "2"},
                     {"EXEC"},
                     {"PUSH", "t", "0", "x", "ID", "3"}}),
            "$1\r\n0\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n");
  EXPECT_EQ(say_all({{"MULTI"}, {"EXEC"}}), "+OK\r\n*0\r\n");
  EXPECT_EQ(client.say("MULTI\r\nPUSH t 0 \"in line\" ID 4\r\nPUSH t 0 x ID 5\r\nEXEC\r\n"),
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\n4\r\n$1\r\n5\r\n");
}

TEST_F(TransactionTest, after_a_command_that_is_refused_nothing_runs) {
  for (const auto& refused : std::vector<std::vector<std::string_view>>{{"NOSUCH"},
                                                                        {"PUSH", "t"},
                                                                        {"MULTI"},
                                                                        {"AUTH", "x"},
                                                                        {"HELLO", "3"},
                                                                        {"EXEC", "x"},
                                                                        {"DISCARD", "x"}}) {
    client.say({"MULTI"});
    EXPECT_EQ(client.say({"PUSH", "t", "0", "x", "ID", "a"}), "+QUEUED\r\n");
    std::string bytes;
    append_command(bytes, refused);
    EXPECT_THAT(client.say(bytes), StartsWith("-INVALID ")) << refused[0];
    EXPECT_EQ(client.say({"PUSH", "t", "0", "x", "ID", "b"}), "+QUEUED\r\n");
    EXPECT_THAT(client.say({"EXEC"}), StartsWith("-EXECABORT ")) << refused[0];
    EXPECT_THAT(client.say({"STATS"}), HasSubstr("$4\r\njobs\r\n:0\r\n"));
  }
}

TEST_F(TransactionTest, discard_and_reset_forget_it_and_quit_ends_it) {
  say_all({{"MULTI"}, {"PUSH", "t", "0", "x"}});
  EXPECT_EQ(client.say({"DISCARD"}), "+OK\r\n");
  EXPECT_THAT(client.say({"EXEC"}), StartsWith("-INVALID EXEC without MULTI"));
  EXPECT_THAT(client.say({"DISCARD"}), StartsWith("-INVALID DISCARD without MULTI"));
  say_all({{"MULTI"}, {"PUSH", "t", "0", "x"}});
  EXPECT_EQ(client.say({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(client.say({"PING"}), "+PONG\r\n");
  say_all({{"MULTI"}, {"PUSH", "t", "0", "x"}});
  EXPECT_EQ(client.say({"QUIT"}), "+OK\r\n");
  EXPECT_TRUE(client.conversation().is_over());
  EXPECT_EQ(backend.engine.usage().jobs, 0U);
}

TEST_F(TransactionTest, a_pop_in_it_does_not_wait) {
  EXPECT_EQ(say_all({{"MULTI"}, {"POP", "t", "WAIT", "10s"}, {"PUSH", "t", "0", "x", "ID", "a"}, {"EXEC"}}),
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n*0\r\n$1\r\na\r\n");
}

TEST_F(TransactionTest, it_has_bounds) {
  client.say({"MULTI"});
  std::string bytes;
  for (size_t i = 0; i < Transaction::kMostCommands; ++i) append_command(bytes, {"PING"});
  client.say(bytes);
  EXPECT_THAT(client.say({"PING"}), StartsWith("-TOOLARGE MULTI: at most 10000 commands"));
  EXPECT_THAT(client.say({"EXEC"}), StartsWith("-EXECABORT "));

  Transaction small(1000);
  const std::vector<std::string_view> words{"PUSH", "t", "0", "0123456789"};
  size_t count = 0;
  while (count < 1000 && small.add(words).ok()) ++count;
  EXPECT_GT(count, 5U);
  EXPECT_LT(count, 50U);
  EXPECT_THAT(small.add(words).error().detail, HasSubstr("at most 1000 bytes"));
}

TEST_F(TransactionTest, its_replies_have_the_bounds_that_replies_have) {
  const std::string body(100'000, 'x');
  client.say({"PUSH", "t", "1h", body, "ID", "a"});
  constexpr size_t kGets = 200;
  std::string bytes;
  append_command(bytes, {"MULTI"});
  for (size_t i = 0; i < kGets; ++i) append_command(bytes, {"ECHO", std::to_string(i)});
  for (size_t i = 0; i < kGets; ++i) append_command(bytes, {"ECHO", body.substr(0, 9'000)});
  append_command(bytes, {"EXEC"});
  append_command(bytes, {"ECHO", "behind"});
  std::string replies;
  size_t largest = 0;
  for (std::string part = client.say(bytes); !part.empty(); part = client.hear()) {
    largest = std::max(largest, part.size());
    replies += part;
  }
  EXPECT_LT(largest, (1U << 20) + 20'000);
  std::string_view rest = std::string_view(replies).substr(replies.find("*400\r\n"));
  const auto all = take_reply(rest);
  ASSERT_TRUE(all.ok() && all->has_value());
  ASSERT_EQ((*all)->items.size(), 2 * kGets);
  for (size_t i = 0; i < kGets; ++i) EXPECT_EQ((*all)->items[i].text, std::to_string(i));
  EXPECT_EQ(rest, "$6\r\nbehind\r\n");
}

TEST_F(TransactionTest, who_may_not_say_it_may_not_say_it_here) {
  const auto shop = support::token("shop", support::kSecretHash, only(Scope::kPush), {"order"});
  backend.host.front->set_tokens({shop});
  EXPECT_THAT(client.say({"MULTI"}), StartsWith("-NOAUTH"));
  client.say({"AUTH", "secret"});
  client.say({"MULTI"});
  EXPECT_THAT(client.say({"PUSH", "bill", "0", "x"}), StartsWith("-NOPERM"));
  EXPECT_THAT(client.say({"EXEC"}), StartsWith("-EXECABORT "));
  say_all({{"MULTI"}, {"PUSH", "order", "0", "x"}});
  auto less = shop;
  less.topics = {"bill"};
  backend.host.front->set_tokens({less});
  EXPECT_THAT(client.say({"EXEC"}), StartsWith("*1\r\n-NOPERM"));
  say_all({{"MULTI"}, {"PUSH", "bill", "0", "x"}});
  backend.host.front->set_tokens({support::token("boss", support::kOtherHash, only(Scope::kAdmin))});
  EXPECT_THAT(client.say({"EXEC"}), StartsWith("-NOAUTH"));
  EXPECT_EQ(backend.engine.usage().jobs, 0U);
}

TEST_F(TransactionTest, the_access_log_tells_of_its_commands_when_they_ran) {
  std::vector<std::string> lines;
  backend.host.front->tells_commands = true;
  backend.host.front->served = [&](const Served& served) {
    lines.push_back(fmt::format("{} {} {} {}", served.verb, served.target, served.code, served.bytes_out));
  };
  say_all({{"MULTI"}, {"PUSH", "t", "0", "x", "ID", "a"}, {"CANCEL", "t", "b"}, {"EXEC"}});
  EXPECT_THAT(lines, testing::UnorderedElementsAre("MULTI   5", "EXEC   4", "PUSH t  7", "CANCEL t  10"));
}

}  // namespace
}  // namespace delayq::resp
