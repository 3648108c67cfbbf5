// Commands that came as one pipeline take effect in their order, also those that need several steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "resp/value.h"
#include "tests/support/resp_client.h"

namespace delayq::resp {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using Client = support::RespClient;

class EffectsTest : public support::RespTest {};

/// Commands as one pipeline.
std::string pipeline(std::initializer_list<std::initializer_list<std::string_view>> commands) {
  std::string bytes;
  for (const auto& words : commands) append_command(bytes, words);
  return bytes;
}

TEST_F(EffectsTest, what_is_pushed_behind_a_purge_stays) {
  client.say({"PUSH", "t", "60", "old"});
  EXPECT_EQ(client.say(pipeline({{"PURGE", "t"}, {"PUSH", "t", "60", "new", "ID", "new"}})),
            ":1\r\n$3\r\nnew\r\n");
  EXPECT_THAT(client.say({"GET", "t", "new"}), HasSubstr("delayed"));
}

TEST_F(EffectsTest, commands_behind_a_nack_see_what_it_did) {
  client.say({"PUSH", "t", "0", "x", "ID", "a"});
  const std::string lease = lease_in(client.say({"POP", "t"}));
  const std::string replies = client.say(pipeline({{"NACK", lease, "DEAD"}, {"REDRIVE", "t"}, {"POP", "t"}}));
  EXPECT_THAT(replies, StartsWith("+OK\r\n:1\r\n*1\r\n"));
  EXPECT_GT(client.resumed(), 0);
}

TEST_F(EffectsTest, a_batch_behind_a_nack_waits_for_it_too) {
  client.say({"PUSH", "t", "0", "x", "ID", "a"});
  const std::string lease = lease_in(client.say({"POP", "t"}));
  EXPECT_EQ(client.say(pipeline({{"NACK", lease}, {"ACK", lease}})), "+OK\r\n:0\r\n");
  EXPECT_THAT(client.say({"GET", "t", "a"}), HasSubstr("delayed"));
}

TEST_F(EffectsTest, a_line_behind_a_purge_waits_for_it_too) {
  client.say({"PUSH", "t", "60", "old"});
  EXPECT_EQ(client.say("PURGE t\r\nPUSH t 0 new ID new\r\nGET t nobody\r\n"), ":1\r\n$3\r\nnew\r\n$-1\r\n");
  EXPECT_THAT(client.say({"GET", "t", "new"}), HasSubstr("ready"));
}

TEST_F(EffectsTest, a_pop_of_several_topics_does_not_get_what_is_pushed_behind_it) {
  const std::string replies = client.say(
      pipeline({{"POP", "a", "b"}, {"PUSH", "b", "0", "new", "ID", "new"}, {"POP", "a", "b", "COUNT", "2"}}));
  EXPECT_THAT(replies, StartsWith("*0\r\n$3\r\nnew\r\n*1\r\n"));
}

TEST_F(EffectsTest, one_that_hangs_up_amid_several_steps_is_not_called_back) {
  client.say({"PUSH", "t", "60", "old"});
  const std::string purge = pipeline({{"PURGE", "t"}});
  EXPECT_EQ(client.conversation().read(purge), purge.size());
  EXPECT_FALSE(client.conversation().wants_input());
  EXPECT_TRUE(client.conversation().will_want_input());
  client.hang_up();
  EXPECT_EQ(client.resumed(), 0);
}

TEST_F(EffectsTest, commands_of_a_transaction_take_effect_in_their_order) {
  client.say({"PUSH", "t", "0", "x", "ID", "a"});
  const std::string lease = lease_in(client.say({"POP", "t"}));
  std::string replies = client.say(pipeline({{"MULTI"},
                                             {"NACK", lease, "DEAD"},
                                             {"REDRIVE", "t"},
                                             {"PURGE", "t"},
                                             {"PUSH", "t", "60", "y"},
                                             {"EXEC"}}));
  // EXEC is read again whenever one of its commands has taken effect.
  for (int turns = 0; turns < 9; ++turns) replies += client.say(std::string_view());
  EXPECT_THAT(replies, HasSubstr("*4\r\n+OK\r\n:1\r\n:1\r\n$36\r\n"));
  EXPECT_THAT(client.say({"TOPICS"}), HasSubstr("$1\r\nt\r\n:1\r\n:0\r\n"));
}

}  // namespace
}  // namespace delayq::resp
