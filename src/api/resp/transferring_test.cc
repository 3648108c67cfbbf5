// EXPORT, IMPORT and BACKUP as bytes.
#include <gmock/gmock.h>

#include "api/resp/conversation.h"
#include "resp/value.h"
#include "tests/support/memory_queue.h"

namespace delayq::resp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TransferringTest : public testing::Test, public MemoryQueue, public net::Connection {
 protected:
  ~TransferringTest() override { conversation->hang_up(); }
  void on_output() override {}
  void on_resume() override {}

  Value say(std::vector<std::string> words) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    std::string bytes;
    append_command(bytes, views);
    conversation->read(bytes);
    settle();
    const std::string output = std::exchange(conversation->output(), {});
    std::string_view rest = output;
    Result<std::optional<Value>> value = take_reply(rest);
    EXPECT_TRUE(value.ok() && *value && rest.empty()) << output;
    return value.ok() && *value ? **value : Value{};
  }

  static std::vector<std::string> texts(const Value& array) {
    std::vector<std::string> all;
    for (const Value& item : array.items) all.push_back(item.text);
    return all;
  }

  Endpoint host{queue, [this] { return now; }, "9.9.9", kStart, [] { return size_t{7}; }, 0};
  std::shared_ptr<Conversation> conversation = std::make_shared<Conversation>(host, *this);
};

constexpr const char* kLine =
    R"({"topic":"t","id":"a","state":"delayed","due_at":"2023-11-14T22:13:30.000Z",)"
    R"("pushed_at":"2023-11-14T22:13:20.000Z","attempts":0,"priority":1024,"body":{"n": 1}})";

TEST_F(TransferringTest, lines_go_out_and_come_in_again) {
  say({"PUSH", "t", "10s", R"({"n": 1})", "ID", "a"});
  say({"PAUSE", "t"});
  const Value page = say({"EXPORT"});
  ASSERT_EQ(page.items.size(), 2U);
  EXPECT_EQ(page.items[0].text, "");
  EXPECT_THAT(texts(page.items[1]), ElementsAre(R"({"topic":"t","settings":{"paused":true}})", kLine));
  EXPECT_THAT(texts(say({"IMPORT", "KEEP", kLine})), ElementsAre("kept"));
  EXPECT_THAT(texts(say({"IMPORT", "REPLACE", kLine})), ElementsAre("replaced"));
  EXPECT_THAT(texts(say({"IMPORT", kLine})), ElementsAre(HasSubstr("CONFLICT id \"a\" is already delayed")));
  say({"PURGE", "t"});
  EXPECT_THAT(texts(say({"import", kLine})), ElementsAre("created"));
  EXPECT_THAT(texts(say({"EXPORT", "TOPIC", "t", "STATE", "Delayed"}).items[1]), ElementsAre(kLine));
}

TEST_F(TransferringTest, pages_have_cursors) {
  for (int i = 0; i < 5; ++i) say({"PUSH", "t", "10s", "x", "ID", std::to_string(i)});
  std::string cursor;
  size_t lines = 0;
  int pages = 0;
  do {
    std::vector<std::string> command{"EXPORT", "COUNT", "2"};
    if (!cursor.empty()) command.insert(command.end(), {"CURSOR", cursor});
    const Value page = say(command);
    lines += page.items[1].items.size();
    cursor = page.items[0].text;
    ASSERT_LT(++pages, 20);
  } while (!cursor.empty());
  EXPECT_EQ(lines, 5U);
}

TEST_F(TransferringTest, a_wrong_line_stops_nobody) {
  const Value reply = say({"IMPORT", "{", kLine, R"({"topic":"t","settings":{"concurrency":3}})", "{}"});
  EXPECT_THAT(texts(reply), ElementsAre(HasSubstr("INVALID the line is not JSON"), "created", "created",
                                        HasSubstr("INVALID topic: is missing")));
  EXPECT_TRUE(reply.items[0].is_error());
  EXPECT_EQ(queue.settings("t").concurrency, 3U);
}

TEST_F(TransferringTest, all_lines_wrong) {
  EXPECT_THAT(texts(say({"IMPORT", "{"})), ElementsAre(HasSubstr("INVALID")));
}

TEST_F(TransferringTest, wrong_questions) {
  EXPECT_THAT(say({"EXPORT", "STATE", "gone"}).text,
              HasSubstr("INVALID STATE: \"gone\" is none of delayed, ready, reserved, done, dead"));
  EXPECT_THAT(say({"EXPORT", "STATE"}).text, HasSubstr("INVALID STATE: a value is missing"));
  EXPECT_THAT(say({"EXPORT", "COUNT", "0"}).text, HasSubstr("INVALID count"));
  EXPECT_THAT(say({"EXPORT", "CURSOR", "x"}).text, HasSubstr("INVALID cursor"));
  EXPECT_THAT(say({"EXPORT", "SIDEWAYS"}).text, HasSubstr("INVALID"));
  EXPECT_THAT(say({"IMPORT", "KEEP"}).text, HasSubstr("INVALID line"));
  EXPECT_THAT(say({"BACKUP", "a/b"}).text, HasSubstr("INVALID name"));
  EXPECT_THAT(say({"BACKUP", "copy"}).text, HasSubstr("UNAVAILABLE the memory engine"));
}

}  // namespace
}  // namespace delayq::resp
