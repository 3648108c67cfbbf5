// Who may say what over RESP.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/resp/conversation.h"
#include "tests/support/memory_queue.h"
#include "tests/support/tokens.h"

namespace delayq::resp {
namespace {

using support::kOtherHash;
using support::kSecretHash;
using support::token;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class RespAdmissionTest : public testing::Test, public MemoryQueue, public net::Connection {
 protected:
  RespAdmissionTest() {
    host.front->access.replace(
        {token("shop", kSecretHash, Scope::kPush | Scope::kConsume, {"order", "order.*"}),
         token("boss", kOtherHash, only(Scope::kAdmin), {"*"})});
    host.front->turned_away = [this](const Served& served) {
      turned_away.push_back(
          fmt::format("{} {} {} {}", served.token, served.verb, served.target, served.code));
    };
  }
  ~RespAdmissionTest() override { conversation->hang_up(); }
  void on_output() override {}
  void on_resume() override {}

  /// Words with spaces between them, as one types them.
  std::string say(std::string_view command) {
    conversation->read(fmt::format("{}\r\n", command));
    settle();
    return std::exchange(conversation->output(), {});
  }

  Endpoint host{queue, [this] { return now; }, "9.9.9", kStart, [] { return size_t{1}; }};
  std::shared_ptr<Conversation> conversation = std::make_shared<Conversation>(host, *this);
  std::vector<std::string> turned_away;
};

TEST_F(RespAdmissionTest, without_a_token_no_command_does_anything) {
  for (const CommandSpec& spec : all_commands()) {
    if (spec.scopes == kForEverybody) continue;
    std::string command(spec.name);
    for (uint32_t i = 0; i < spec.min_arguments; ++i) command += " 1";
    EXPECT_EQ(say(command), "-NOAUTH a valid token is needed\r\n") << command;
  }
  EXPECT_EQ(say("HELLO 3"), "-NOAUTH a valid token is needed\r\n");
  EXPECT_EQ(say("AUTH wrong"), "-NOAUTH a valid token is needed\r\n");
  EXPECT_EQ(say("AUTH shop wrong"), "-NOAUTH a valid token is needed\r\n");
  EXPECT_EQ(engine.usage().jobs, 0u);
  EXPECT_THAT(turned_away, Contains(" AUTH  unauthorized"));
  EXPECT_GT(host.front->traffic[ProtocolKind::kResp].refusals[static_cast<size_t>(ErrorCode::kUnauthorized)],
            20u);
}

TEST_F(RespAdmissionTest, a_token_is_good_for_its_scopes_and_topics) {
  EXPECT_EQ(say("AUTH secret"), "+OK\r\n");
  EXPECT_EQ(say("PUSH order 0 x ID a"), "$1\r\na\r\n");
  EXPECT_THAT(say("PUSH bill 0 x"), StartsWith("-NOPERM the token \"shop\" is not for this topic"));
  EXPECT_THAT(say("PAUSE order"), StartsWith("-NOPERM the token \"shop\" has no scope admin"));
  EXPECT_THAT(say("POP order bill"), StartsWith("-NOPERM"));
  EXPECT_THAT(say("ACK order/1 bill/1"), StartsWith("-NOPERM"));
  EXPECT_THAT(say("GET a"), StartsWith("-NOPERM")) << "by id alone it may be in any topic";
  EXPECT_THAT(say("STATS"), StartsWith("-NOPERM"));
  EXPECT_THAT(say("STATS order"), HasSubstr("ready"));
  EXPECT_THAT(say("POP order"), HasSubstr("order/"));
  EXPECT_EQ(say("AUTH boss other"), "+OK\r\n");
  EXPECT_THAT(say("PUSH bill 1h x ID b"), HasSubstr("b"));
  EXPECT_THAT(say("TOPICS"), AllOf(HasSubstr("bill"), HasSubstr("order")));
  EXPECT_EQ(say("AUTH secret"), "+OK\r\n");
  EXPECT_THAT(say("TOPICS"), AllOf(Not(HasSubstr("bill")), HasSubstr("order")));
  EXPECT_EQ(say("RESET"), "+RESET\r\n");
  EXPECT_THAT(say("PING"), StartsWith("-NOAUTH"));
  EXPECT_THAT(turned_away, Contains("shop PUSH bill forbidden"));
}

TEST_F(RespAdmissionTest, a_group_is_cancelled_in_the_topics_of_the_token) {
  say("AUTH boss other");
  say("PUSH bill 1h x ID b GROUP g");
  say("AUTH secret");
  say("PUSH order 1h x ID a GROUP g");
  say("PUSH order.paid 1h x ID a GROUP g");
  EXPECT_EQ(say("CANCELGROUP g"), ":2\r\n");
  EXPECT_EQ(say("CANCELGROUP g"), ":0\r\n");
  say("AUTH boss other");
  EXPECT_EQ(say("CANCELGROUP g"), ":1\r\n");
}

TEST_F(RespAdmissionTest, unique_is_for_tokens_that_see_all_topics) {
  say("AUTH boss other");
  say("PUSH bill 1h x ID b");
  EXPECT_THAT(say("PUSH order 1h x ID b UNIQUE"), StartsWith("-CONFLICT"));
  say("AUTH secret");
  const std::string taken = say("PUSH order 1h x ID b UNIQUE");
  EXPECT_THAT(taken, AllOf(StartsWith("-NOPERM"), HasSubstr("unique")));
  EXPECT_EQ(say("PUSH order 1h x ID free UNIQUE"), taken) << "the answer is the same for a free id";
  EXPECT_EQ(say("PUSH order 1h x ID b"), "$1\r\nb\r\n");
}

TEST_F(RespAdmissionTest, a_name_must_be_the_tokens) {
  EXPECT_EQ(say("AUTH shop secret"), "+OK\r\n");
  EXPECT_EQ(say("AUTH default secret"), "+OK\r\n") << "what clients say that have no name to say";
  EXPECT_EQ(say("AUTH boss secret"), "-NOAUTH a valid token is needed\r\n");
  EXPECT_EQ(say("PING"), "-NOAUTH a valid token is needed\r\n");
  EXPECT_EQ(say("AUTH nobody secret"), "-NOAUTH a valid token is needed\r\n");
  EXPECT_EQ(say("AUTH Shop secret"), "-NOAUTH a valid token is needed\r\n");
  EXPECT_EQ(say("HELLO 3 AUTH boss secret"), "-NOAUTH a valid token is needed\r\n");
  EXPECT_THAT(say("HELLO 3 AUTH default secret"), HasSubstr("delayq"));
}

TEST_F(RespAdmissionTest, who_has_said_who_he_is_may_send_a_large_command_at_once) {
  for (const std::string_view begin :
       {"*4\r\n$4\r\nPUSH\r\n$5\r\norder\r\n$1\r\n0\r\n$20000\r\n", "*10000\r\n", "*100000000\r\n"}) {
    const auto stranger = std::make_shared<Conversation>(host, *this);
    stranger->read(begin);
    EXPECT_THAT(stranger->output(), StartsWith("-")) << begin;
    EXPECT_TRUE(stranger->is_over()) << begin;
    stranger->hang_up();
  }
  const std::string body(20'000, 'x');
  const std::string both =
      "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*6\r\n$4\r\nPUSH\r\n$5\r\norder\r\n$1\r\n0\r\n$20000\r\n" + body +
      "\r\n$2\r\nID\r\n$1\r\na\r\n";
  const size_t taken = conversation->read(std::string_view(both).substr(0, 1000));
  conversation->read(std::string_view(both).substr(taken));
  settle();
  EXPECT_EQ(conversation->output(), "+OK\r\n$1\r\na\r\n");
}

TEST_F(RespAdmissionTest, a_token_for_some_topics_sees_nothing_of_the_others) {
  say("AUTH other");
  for (const char* topic : {"a", "bill", "order", "order.paid", "z"}) say(fmt::format("PUSH {} 1h x", topic));
  EXPECT_THAT(say("INFO"), HasSubstr("delayed:5"));
  say("AUTH secret");
  EXPECT_THAT(say("INFO"),
              AllOf(HasSubstr("delayq_version"), Not(HasSubstr("delayed")), Not(HasSubstr("# Jobs"))));
  std::string seen;
  std::string cursor;
  int pages = 0;
  do {
    const std::string page = say(fmt::format("TOPICS \"{}\" 1", cursor));
    seen += page;
    const size_t begin = page.find("\r\n", 4) + 2;
    cursor = page.substr(begin, page.find("\r\n", begin) - begin);
    ++pages;
  } while (!cursor.empty() && pages < 10);
  EXPECT_THAT(seen, AllOf(HasSubstr("$5\r\norder\r\n"), HasSubstr("order.paid")));
  EXPECT_THAT(seen,
              AllOf(Not(HasSubstr("$1\r\na\r\n")), Not(HasSubstr("bill")), Not(HasSubstr("$1\r\nz\r\n"))));
  EXPECT_EQ(pages, 3) << "the last one is empty";
}

TEST_F(RespAdmissionTest, a_pop_that_waits_ends_with_its_token) {
  say("AUTH secret");
  EXPECT_EQ(say("POP order WAIT 10s"), "");
  host.front->set_tokens({token("shop", kSecretHash, Scope::kPush | Scope::kConsume, {"order"}),
                          token("boss", kOtherHash, only(Scope::kAdmin), {"*"})});
  settle();
  EXPECT_EQ(conversation->output(), "") << "it still may";
  host.front->set_tokens({token("shop", kSecretHash, Scope::kPush | Scope::kConsume, {"bill"})});
  settle();
  EXPECT_THAT(std::exchange(conversation->output(), {}), StartsWith("-NOPERM "));
  EXPECT_EQ(say("POP bill WAIT 10s"), "");
  host.front->set_tokens({token("boss", kOtherHash, only(Scope::kAdmin), {"*"})});
  settle();
  EXPECT_EQ(std::exchange(conversation->output(), {}), "-NOAUTH a valid token is needed\r\n");
  EXPECT_EQ(say("PING"), "-NOAUTH a valid token is needed\r\n");
  say("AUTH other");
  say("PUSH bill 0 x ID a");
  EXPECT_THAT(say("POP bill"), HasSubstr("$1\r\na\r\n")) << "it was handed to nobody else";
}

TEST_F(RespAdmissionTest, hello_may_say_who_it_is) {
  EXPECT_THAT(say("HELLO 3 AUTH shop secret"), HasSubstr("delayq"));
  EXPECT_EQ(say("PING"), "+PONG\r\n");
}

TEST_F(RespAdmissionTest, a_token_that_is_taken_away_counts_at_once) {
  say("AUTH secret");
  host.front->access.replace({token("boss", kOtherHash, only(Scope::kAdmin), {"*"})});
  EXPECT_THAT(say("PING"), StartsWith("-NOAUTH"));
}

TEST_F(RespAdmissionTest, tokens_have_rates) {
  Token limited = token("shop", kSecretHash, only(Scope::kPush), {"*"});
  limited.requests_per_second = 1;
  host.front->access.replace({limited});
  say("AUTH secret");
  EXPECT_EQ(say("PING"), "+PONG\r\n");
  EXPECT_THAT(say("PING"),
              StartsWith("-OVERLOADED the token \"shop\" allows 1 requests a second (try again in 1s)"));
  pass(Millis{1'000});
  EXPECT_EQ(say("PING"), "+PONG\r\n");
}

TEST_F(RespAdmissionTest, nothing_large_is_kept_for_one_without_a_token) {
  const std::string claim = "*4\r\n$4\r\nPUSH\r\n$1\r\nt\r\n$1\r\n0\r\n$1000000\r\n";
  EXPECT_EQ(say("AUTH secret"), "+OK\r\n");
  conversation->read(claim);
  EXPECT_EQ(conversation->output(), "") << "who is known may go on";
  auto stranger = std::make_shared<Conversation>(host, *this);
  stranger->read(claim);
  EXPECT_EQ(stranger->output(), "-NOAUTH a valid token is needed for a command of more than 16384 bytes\r\n");
  EXPECT_TRUE(stranger->is_over());
  stranger->hang_up();
  auto many = std::make_shared<Conversation>(host, *this);
  std::string words = "*10000\r\n";
  for (int i = 0; i < 3'000; ++i) words += "$1\r\na\r\n";
  many->read(words);
  EXPECT_THAT(many->output(), StartsWith("-NOAUTH"));
  many->hang_up();
}

}  // namespace
}  // namespace delayq::resp
