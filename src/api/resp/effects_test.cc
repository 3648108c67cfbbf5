// Commands that came as one pipeline take effect in their order, also those that need several steps.
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "resp/value.h"
#include "tests/support/resp_client.h"

namespace delayq::resp {
namespace {

using testing::HasSubstr;
using testing::Not;
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

// ---- FIELDS: a command tells its effect

TEST_F(EffectsTest, push_tells_created_kept_or_replaced_if_it_is_asked_to) {
  EXPECT_EQ(client.say(pipeline({{"PUSH", "t", "60", "x", "ID", "a"},
                                 {"PUSH", "t", "60", "x", "ID", "a", "KEEP", "FIELDS"},
                                 {"PUSH", "t", "60", "x", "FIELDS", "ID", "a", "REPLACE", "fields"},
                                 {"PUSH", "t", "60", "x", "ID", "a", "FIELDS", "NONSENSE"},
                                 {"PUSH", "t", "60", "x", "ID", "b"},
                                 {"PUSH", "t", "60", "x", "ID", "b", "FIELDS"}})),
            "$1\r\na\r\n"
            "*8\r\n$6\r\nresult\r\n$4\r\nkept\r\n$2\r\nid\r\n$1\r\na\r\n$5\r\nstate\r\n$7\r\ndelayed\r\n"
            "$6\r\ndue_ms\r\n:1700000060000\r\n"
            "*8\r\n$6\r\nresult\r\n$8\r\nreplaced\r\n$2\r\nid\r\n$1\r\na\r\n$5\r\nstate\r\n$7\r\ndelayed\r\n"
            "$6\r\ndue_ms\r\n:1700000060000\r\n"
            "-INVALID \"NONSENSE\" is not understood here; usage: " +
                std::string(find_command("PUSH")->usage) +
                "\r\n$1\r\nb\r\n-CONFLICT id \"b\" is already delayed\r\n");
  client.say({"HELLO", "3"});
  EXPECT_THAT(client.say({"PUSH", "t", "0", "x", "FIELDS"}),
              StartsWith("%4\r\n$6\r\nresult\r\n$7\r\ncreated"));
  EXPECT_THAT(client.say({"PUSH", "t", "0", "x"}), StartsWith("$36\r\n")) << "RESP 3 alone changes nothing";
}

TEST_F(EffectsTest, nack_tells_retried_or_dead_if_it_is_asked_to) {
  std::array<std::string, 3> leases;
  for (std::string& lease : leases) {
    client.say({"PUSH", "t", "0", "x"});
    lease = lease_in(client.say({"POP", "t"}));
  }
  EXPECT_EQ(client.say(pipeline({{"NACK", leases[0], "FIELDS", "DELAY", "30s"},
                                 {"NACK", leases[1]},
                                 {"NACK", leases[2], "DEAD", "FIELDS"},
                                 {"NACK", leases[2], "FIELDS"}})),
            "*4\r\n$6\r\nresult\r\n$7\r\nretried\r\n$8\r\nretry_ms\r\n:1700000030000\r\n+OK\r\n"
            "*2\r\n$6\r\nresult\r\n$4\r\ndead\r\n"
            "-STALELEASE the lease is not the current one any more\r\n");
}

TEST_F(EffectsTest, a_topic_may_be_named_like_the_option) {
  client.say({"PUSH", "fields", "0", "x", "ID", "a"});
  EXPECT_THAT(client.say({"POP", "t", "fields"}), HasSubstr("$6\r\nfields\r\n$1\r\na\r\n"));
  client.say({"PUSH", "t", "0", "x", "ID", "b", "HEADER", "n", "5"});
  const std::string popped = client.say({"POP", "t", "COUNT", "1", "FIELDS"});
  EXPECT_THAT(popped, HasSubstr("$4\r\nbody\r\n$1\r\nx\r\n$7\r\nattempt\r\n:1\r\n"));
  EXPECT_THAT(popped, HasSubstr("$14\r\nlease_until_ms\r\n:1700000060000\r\n"));
  EXPECT_THAT(popped, HasSubstr("$7\r\nheaders\r\n*2\r\n$1\r\nn\r\n$1\r\n5\r\n"));
}

TEST_F(EffectsTest, topics_and_groups_have_fields) {
  client.say({"PUSH", "t", "60", "x", "GROUP", "g"});
  EXPECT_THAT(client.say({"TOPICS", "", "10", "FIELDS"}), HasSubstr("$7\r\ndelayed\r\n:1\r\n"));
  EXPECT_THAT(client.say({"TOPICS", "", "10", "FELDS"}), StartsWith("-INVALID "));
  EXPECT_EQ(client.say({"CANCELGROUP", "g", "FIELDS"}),
            "*4\r\n$9\r\ncancelled\r\n:1\r\n$8\r\nreserved\r\n:0\r\n");
}

// ---- SETTINGS

TEST_F(EffectsTest, settings_are_set_shown_and_unset) {
  EXPECT_EQ(
      client.say(pipeline({{"SETTINGS", "SET", "t", "Attempts", "5", "keep_done.count", "7", "rate", "9/1m"},
                           {"settings", "set", "t", "paused", "true", "callback_secrets",
                            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}})),
      "+OK\r\n+OK\r\n");
  EXPECT_EQ(backend.queue.settings("t"),
            (Settings{.attempts = 5,
                      .keep_done =
                          [] {
                            RetentionSetting keep;
                            keep.count = 7;
                            return keep;
                          }(),
                      .rate = Rate{9, Millis{60'000}},
                      .paused = true,
                      .callback_secrets = {{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}}));
  EXPECT_EQ(client.say({"SETTINGS", "GET", "t", "OWN"}),
            "*10\r\n$8\r\nattempts\r\n:5\r\n$15\r\nkeep_done.count\r\n:7\r\n$4\r\nrate\r\n$4\r\n9/1m\r\n"
            "$6\r\npaused\r\n:1\r\n$21\r\ncallback_secret_count\r\n:1\r\n");
  EXPECT_EQ(client.say({"SETTINGS", "GET", "t", "KEEP_DONE", "lease"}),
            "*6\r\n$5\r\nlease\r\n$2\r\n1m\r\n$14\r\nkeep_done.time\r\n$2\r\n1h\r\n"
            "$15\r\nkeep_done.count\r\n:7\r\n");
  EXPECT_EQ(client.say({"SETTINGS", "UNSET", "t", "paused", "rate"}), "+OK\r\n");
  EXPECT_EQ(client.say({"SETTINGS", "UNSET", "t"}), "+OK\r\n");
  EXPECT_EQ(client.say({"SETTINGS", "GET", "t", "OWN"}), "*0\r\n");
}

TEST_F(EffectsTest, settings_that_are_wrong_change_nothing) {
  for (const auto& [name, value, why] : {std::array{"lees", "1", "did you mean lease?"},
                                         {"lease", "1ms", "out of range"},
                                         {"attempts", "4294967296", "is above"},
                                         {"keep_done", "1h", "say keep_done.time or keep_done.count"},
                                         {"lease.time", "1h", "has no parts"},
                                         {"rate", "5", "is not a rate"},
                                         {"paused", "x", "true or false"},
                                         {"callback_secrets", "[1]", "an array of texts"},
                                         {"on_dead", "t", "the topic itself"}}) {
    const std::string said = client.say({"SETTINGS", "SET", "t", "priority", "1", name, value});
    EXPECT_THAT(said, StartsWith("-INVALID ")) << name;
    EXPECT_THAT(said, HasSubstr(why)) << name;
  }
  EXPECT_THAT(client.say({"SETTINGS", "SET", "t", "lease"}),
              StartsWith("-INVALID wrong number of arguments"));
  EXPECT_THAT(client.say({"SETTINGS", "SET", "t", "lease", "1m", "rate"}), HasSubstr("a value is missing"));
  EXPECT_THAT(client.say({"SETTINGS", "GET", "t", "lees"}), HasSubstr("did you mean lease?"));
  EXPECT_THAT(client.say({"SETTINGS", "GET", "a b"}), StartsWith("-INVALID topic"));
  EXPECT_THAT(client.say({"SETTINGS", "LOOK", "t"}), StartsWith("-INVALID \"LOOK\" is not understood here"));
  EXPECT_THAT(client.say({"SETTINGS", "SET", "t", "callback_secrets", "whsec_secret"}),
              Not(HasSubstr("whsec_secret")));
  EXPECT_EQ(backend.queue.settings("t"), Settings{});
}

TEST_F(EffectsTest, the_defaults_have_settings_too) {
  EXPECT_EQ(client.say({"SETTINGS", "SET", "*", "lease", "2m"}), "+OK\r\n");
  for (const char* const topic : {"t", "*"})
    EXPECT_EQ(client.say({"SETTINGS", "GET", topic, "lease"}), "*2\r\n$5\r\nlease\r\n$2\r\n2m\r\n");
}

}  // namespace
}  // namespace delayq::resp
