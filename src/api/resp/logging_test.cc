// What the access log is told of commands.
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/resp_client.h"

namespace delayq::resp {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// A client whose commands are logged, as lines without what differs by machine.
class LoggedTest : public testing::Test {
 protected:
  LoggedTest() {
    backend.host.front->tells_commands = true;
    backend.host.front->stopwatch = [this] { return elapsed; };
    backend.host.front->served = [this](const Served& served) {
      lines.push_back(fmt::format("{} {} {} {} {} {}us", served.verb, served.target, served.code,
                                  served.bytes_in, served.bytes_out, served.took.count()));
      may_wait.push_back(served.may_wait);
    };
  }
  support::Backend backend;
  support::RespClient client{backend};
  std::chrono::nanoseconds elapsed{};
  std::vector<std::string> lines;
  std::vector<bool> may_wait;
};

TEST_F(LoggedTest, a_command_is_told_when_it_is_answered_with_how_long_that_took) {
  std::string bytes;
  append_command(bytes, std::initializer_list<std::string_view>{"POP", "order", "WAIT", "10s"});
  client.say(bytes);
  EXPECT_TRUE(lines.empty()) << "it is not answered yet";
  elapsed += std::chrono::milliseconds{7};
  support::RespClient other(backend);
  other.say({"PUSH", "order", "0", "body", "ID", "a"});
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "PUSH order  13 7 0us");
  EXPECT_THAT(lines[1], StartsWith("POP order  12 "));
  EXPECT_THAT(lines[1], testing::EndsWith(" 7000us"));
  EXPECT_EQ(may_wait, (std::vector<bool>{false, true}));
}

TEST_F(LoggedTest, each_of_many_that_came_together_has_its_own_line) {
  // Batches, refusals of every kind, and what is answered at once, in between each other.
  const std::string said = client.say(
      "PUSH t 1h one ID 1\r\nPUSH t 1h two ID 1\r\nNONSENSE\r\n\r\nGET\r\nPING\r\nCANCEL t 1\r\nACK "
      "wrong\r\nPUSH t soon x\r\n"
      "PUSH u 1h three ID 3\r\nCANCEL t none\r\n");
  // In the order of the answers: what waits for the engine comes later.
  EXPECT_THAT(lines, testing::UnorderedElementsAre(
                         "PUSH t  9 7 0us", HasSubstr("PUSH t conflict 9 "), "PING   0 7 0us",
                         HasSubstr("UNKNOWN  invalid 0 "), HasSubstr("GET  invalid 0 "), "CANCEL t  2 12 0us",
                         HasSubstr("ACK  invalid 5 "), HasSubstr("PUSH t invalid 6 "), "PUSH u  11 7 0us",
                         "CANCEL t  5 10 0us"))
      << said;
}

TEST_F(LoggedTest, what_is_pipelined_is_told_with_its_own_reply) {
  client.say({"PUSH", "p", "0", "0123456789", "ID", "1"});
  lines.clear();
  std::string bytes;
  for (int round = 0; round < 3; ++round) {
    append_command(bytes, {"PUSH", "a", "1h", "b", "ID", "1", "REPLACE"});
    append_command(bytes, {"PUSH", "bb", "1h", "b", "ID", "22", "REPLACE"});
    append_command(bytes, {"PUSH", "ccc", "soon", "b"});
    append_command(bytes, {"POP", "none"});
    append_command(bytes, {"POP", "none"});
    append_command(bytes, {"NOSUCH", "x"});
    append_command(bytes, {"CANCEL", "d", "1"});
    append_command(bytes, {"STATS", "a"});
    append_command(bytes, {"ACK", "a/1", "a/2"});
    append_command(bytes, {"ACK", "a/1"});
  }
  client.say(bytes);
  std::map<std::string, int> counted;
  for (const std::string& line : lines) ++counted[line.substr(0, line.find(' ', line.find(' ') + 1))];
  EXPECT_EQ(lines.size(), 30U);
  EXPECT_EQ(counted, (std::map<std::string, int>{{"PUSH a", 3},
                                                 {"PUSH bb", 3},
                                                 {"PUSH ccc", 3},
                                                 {"POP none", 6},
                                                 {"UNKNOWN ", 3},
                                                 {"CANCEL d", 3},
                                                 {"STATS a", 3},
                                                 {"ACK ", 6}}));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "PUSH a  14 7 0us"), 3);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "PUSH bb  16 8 0us"), 3);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "POP none  4 4 0us"), 6);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "CANCEL d  2 10 0us"), 3);
  lines.clear();
  client.say({"PING"});
  EXPECT_THAT(lines, testing::ElementsAre("PING   0 7 0us")) << "nothing was left of the others";
}

TEST_F(LoggedTest, pops_that_share_an_answer_have_a_line_each) {
  const std::string body(size_t{1} << 20, 'x');
  for (int i = 0; i < 20; ++i) client.say({"PUSH", "t", "0", body});
  lines.clear();
  std::string bytes;
  for (int i = 0; i < 9; ++i) append_command(bytes, {"POP", "t", "COUNT", "3"});
  const std::string replies = client.say(bytes);
  EXPECT_EQ(lines.size(), 9U);
  EXPECT_THAT(lines, testing::Each(StartsWith("POP t  7 ")));
  size_t told = 0;
  for (const std::string& line : lines) told += std::stoul(line.substr(9));
  EXPECT_EQ(told, replies.size());
}

TEST_F(LoggedTest, what_a_client_did_not_wait_for_is_told_all_the_same) {
  std::string bytes;
  append_command(bytes, std::initializer_list<std::string_view>{"PUSH", "t", "1h", "x", "ID", "1"});
  client.conversation().read(bytes);
  EXPECT_TRUE(lines.empty());
  client.hang_up();
  EXPECT_THAT(lines, testing::ElementsAre("PUSH t  7 7 0us"));
}

TEST_F(LoggedTest, nothing_is_told_where_nobody_wants_to_know) {
  backend.host.front->tells_commands = false;
  client.say({"PING"});
  backend.host.front->tells_commands = true;
  client.say({"PING"});
  EXPECT_EQ(lines.size(), 1U);
}

}  // namespace
}  // namespace delayq::resp
