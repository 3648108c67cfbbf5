// What a connection may hold of answers: those that its client has not read, and those to come.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "resp/value.h"
#include "tests/support/resp_client.h"

namespace delayq::resp {
namespace {

class UnreadTest : public testing::Test {
 protected:
  support::Backend backend;
  support::RespClient client{backend};
};

TEST_F(UnreadTest, who_stops_talking_still_gets_his_replies) {
  std::string bytes;
  append_command(bytes, {"PUSH", "t", "1h", "b", "ID", "a"});
  client.conversation().read(bytes);
  EXPECT_TRUE(client.conversation().end_input());
  EXPECT_FALSE(client.conversation().is_over());
  backend.settle();
  EXPECT_EQ(client.conversation().output(), "$1\r\na\r\n");
  EXPECT_TRUE(client.conversation().is_over());

  support::RespClient waiting(backend);
  waiting.say({"POP", "u", "WAIT", "10s"});
  EXPECT_FALSE(waiting.conversation().end_input());
}

TEST_F(UnreadTest, a_client_that_takes_no_replies_is_read_no_further) {
  std::string bytes;
  const std::string big(100'000, 'x');
  for (int i = 0; i < 30; ++i) append_command(bytes, {"ECHO", big});
  const size_t taken = client.conversation().read(bytes);
  EXPECT_LT(taken, bytes.size());
  EXPECT_FALSE(client.conversation().wants_input());
  EXPECT_LT(client.conversation().output().size(), (1U << 20) + 2 * big.size());
  client.conversation().output().clear();
  EXPECT_TRUE(client.conversation().wants_input());
}

TEST_F(UnreadTest, pops_that_may_bring_too_much_together_are_begun_one_after_another) {
  constexpr size_t kPops = 1'000;
  std::string bytes;
  for (size_t i = 0; i < kPops; ++i) append_command(bytes, {"POP", "t", "COUNT", "1000"});
  const size_t taken = client.conversation().read(bytes);
  EXPECT_LE(taken, bytes.size() / kPops * 16);  // 8 MiB each, or a little more
  EXPECT_FALSE(client.conversation().wants_input());
  std::string replies = client.say(std::string_view(bytes).substr(taken));
  for (std::string more = client.hear(); !more.empty(); more = client.hear()) replies += more;
  EXPECT_EQ(replies.size(), kPops * std::string_view("*0\r\n").size()) << "all are answered in the end";
}

TEST_F(UnreadTest, what_may_be_answered_with_too_much_is_asked_for_in_parts) {
  client.say({"PUSH", "t", "1h", std::string(900'000, 'x'), "ID", "a"});
  constexpr size_t kCommands = 90;
  const std::vector<std::vector<std::string_view>> commands{
      {"GET", "t", "a"}, {"EXPORT", "COUNT", "1000"}, {"GET", "a"}};
  for (const std::vector<std::string_view>& words : commands) {
    std::string bytes;
    for (size_t i = 0; i < kCommands; ++i) append_command(bytes, words);
    size_t most = 0;
    size_t answers = 0;
    for (size_t taken = 0; taken < bytes.size() || client.conversation().held() > 0;) {
      // All that it will take before anything is answered, and before anything is read.
      for (size_t more = 1; more > 0;) {
        more = client.conversation().wants_input() ? client.conversation().read(bytes.substr(taken)) : 0;
        taken += more;
        backend.settle();
        most = std::max(most, client.conversation().footprint());
      }
      const std::string output = std::exchange(client.conversation().output(), {});
      ASSERT_FALSE(output.empty());
      for (std::string_view rest = output; !rest.empty(); ++answers) {
        const auto size = reply_size(rest);
        ASSERT_TRUE(size.ok() && *size);
        rest.remove_prefix(**size);
      }
    }
    EXPECT_EQ(answers, kCommands);
    EXPECT_LT(most, size_t{70} << 20);
  }
}

TEST_F(UnreadTest, pops_that_are_cut_go_on_when_their_client_has_read) {
  constexpr size_t kJobs = 60;
  const std::string body(1'000'000, 'x');
  for (size_t i = 0; i < kJobs; ++i) client.say({"PUSH", "t", "0", body, "ID", fmt::format("j{:02}", i)});
  std::string bytes;
  for (size_t i = 0; i < kJobs + 3; ++i) append_command(bytes, {"POP", "t"});
  append_command(bytes, {"ECHO", "last"});
  EXPECT_EQ(client.conversation().read(bytes), bytes.size());
  std::vector<std::string> ids;
  for (std::string output = "x"; !output.empty();) {
    client.conversation().go_on();
    backend.settle();
    EXPECT_LT(client.conversation().held(), size_t{45} << 20);
    output = std::exchange(client.conversation().output(), {});
    for (std::string_view rest = output; !rest.empty();) {
      const auto reply = take_reply(rest);
      ASSERT_TRUE(reply.ok() && *reply);
      ids.push_back((*reply)->items.empty() ? (*reply)->text : (*reply)->items[0].items[2].text);
    }
  }
  ASSERT_EQ(ids.size(), kJobs + 4);
  for (size_t i = 0; i < kJobs; ++i) EXPECT_EQ(ids[i], fmt::format("j{:02}", i));
  EXPECT_EQ(ids.back(), "last");
}

}  // namespace
}  // namespace delayq::resp
