// News of single jobs as push messages.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/access.h"
#include "tests/support/resp_client.h"

namespace delayq::resp {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class NewsTest : public testing::Test {
 protected:
  std::string later() {
    backend.pass(NewsFeeds::kInterval);
    backend.host.feeds.tick(backend.now);
    return client.hear();
  }

  support::Backend backend;
  support::RespClient client{backend};
  support::RespClient other{backend};
};

TEST_F(NewsTest, come_as_push_messages) {
  EXPECT_THAT(client.say({"NEWS", "START"}), StartsWith("-INVALID NEWS: push messages need RESP 3"));
  client.say({"HELLO", "3"});
  EXPECT_THAT(client.say({"NEWS", "START", "OF", "pushed,cancelled", "TOPIC", "t"}), StartsWith("$"));
  other.say({"PUSH", "t", "1h", "b", "ID", "7", "GROUP", "g"});
  other.say({"PUSH", "u", "1h", "b", "ID", "8"});
  const std::string told = later();
  EXPECT_THAT(told,
              AllOf(StartsWith(">3\r\n$4\r\nnews\r\n"), HasSubstr("%7\r\n$4\r\nnews\r\n$6\r\npushed\r\n"),
                    HasSubstr("$2\r\nid\r\n$1\r\n7\r\n"), HasSubstr("$5\r\ngroup\r\n$1\r\ng\r\n"),
                    Not(HasSubstr("$1\r\n8\r\n"))));
  EXPECT_THAT(later(), IsEmpty());
  other.say({"CANCEL", "t", "7"});
  EXPECT_THAT(later(), HasSubstr("cancelled"));
  EXPECT_EQ(client.say({"NEWS", "STOP"}), "+OK\r\n");
  other.say({"PUSH", "t", "1h", "b"});
  EXPECT_THAT(later(), IsEmpty());
  EXPECT_EQ(backend.host.feeds.size(), 0u);
}

TEST_F(NewsTest, go_on_from_a_cursor) {
  client.say({"HELLO", "3"});
  const std::string reply = client.say({"NEWS", "START"});
  const size_t at = reply.find("\r\n") + 2;
  const std::string cursor = reply.substr(at, reply.size() - at - 2);
  client.say({"RESET"});
  other.say({"PUSH", "t", "1h", "b", "ID", "7"});
  client.say({"HELLO", "3"});
  client.say({"NEWS", "START", "AFTER", cursor});
  EXPECT_THAT(later(), AllOf(HasSubstr("$1\r\n7\r\n"), Not(HasSubstr("missed"))));
  client.say({"NEWS", "START", "TOPIC", "t", "AFTER", cursor});
  EXPECT_EQ(later(), ">2\r\n$11\r\nnews-missed\r\n:0\r\n") << "another filter";
  client.say({"HELLO", "2"});
  other.say({"PUSH", "t", "1h", "b"});
  EXPECT_THAT(later(), IsEmpty()) << "there are no push messages in RESP 2";
}

TEST_F(NewsTest, are_not_put_amid_other_replies) {
  client.say({"HELLO", "3"});
  client.say({"NEWS", "START"});
  // A pop that waits has no reply yet: news may come before it.
  client.say({"POP", "t", "WAIT", "1h"});
  other.say({"PUSH", "u", "1h", "b", "ID", "7"});
  EXPECT_THAT(later(), StartsWith(">3\r\n"));
}

TEST_F(NewsTest, are_not_put_into_the_array_of_an_exec) {
  client.say({"HELLO", "3"});
  client.say({"NEWS", "START"});
  other.say({"PUSH", "u", "1h", "b", "ID", "7"});
  std::string bytes;
  for (const std::initializer_list<std::string_view> words :
       {std::initializer_list<std::string_view>{"MULTI"},
        {"PUSH", "t", "1h", "b", "ID", "1"},
        {"PUSH", "t", "1h", "b", "ID", "2"},
        {"EXEC"},
        {"MULTI"},
        {"PUSH", "t", "1h", "b", "ID", "3"},
        {"EXEC"}})
    append_command(bytes, words);
  EXPECT_EQ(client.conversation().read(bytes), bytes.size());
  // The array of the first EXEC is there, what is in it is not.
  backend.now += NewsFeeds::kInterval;
  backend.host.feeds.tick(backend.now);
  EXPECT_EQ(client.hear(),
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n"
            "+OK\r\n+QUEUED\r\n*1\r\n$1\r\n3\r\n");
  EXPECT_THAT(later(), AllOf(StartsWith(">3\r\n"), HasSubstr("$1\r\n7\r\n"), HasSubstr("$1\r\n3\r\n")));
}

TEST_F(NewsTest, what_is_wrong_is_named) {
  client.say({"HELLO", "3"});
  EXPECT_THAT(client.say({"NEWS", "START", "OF", "what"}), HasSubstr("news: \"what\" is not known"));
  EXPECT_THAT(client.say({"NEWS", "START", "STATE"}), StartsWith("-INVALID STATE"));
  EXPECT_THAT(client.say({"NEWS", "START", "TOPIC", "a b"}), StartsWith("-INVALID topic"));
  EXPECT_THAT(client.say({"NEWS", "START", "AFTER", "what"}), StartsWith("-INVALID after"));
  EXPECT_THAT(client.say({"NEWS", "WHAT"}), StartsWith("-INVALID"));
}

TEST_F(NewsTest, end_when_the_token_is_revoked) {
  Token token;
  token.name = "some";
  token.sha256 = api::hash_secret("some");
  token.scopes = only(Scope::kRead);
  token.topics = {"t"};
  backend.host.front->set_tokens({token});
  client.say({"HELLO", "3", "AUTH", "some", "some"});
  EXPECT_THAT(client.say({"NEWS", "START", "TOPIC", "u"}), StartsWith("-NOPERM"));
  EXPECT_THAT(client.say({"NEWS", "START"}), StartsWith("$"));
  const PushRequest jobs[] = {{.topic = "t", .id = "mine"}, {.topic = "u", .id = "other"}};
  backend.queue.push(backend.now, jobs, [](const Result<PushReport>&) {});
  EXPECT_THAT(later(), AllOf(HasSubstr("mine"), Not(HasSubstr("other"))));
  token.name = "another";
  token.sha256 = api::hash_secret("another");
  backend.host.front->set_tokens({token});
  EXPECT_THAT(later(), StartsWith(">2\r\n$10\r\nnews-ended\r\n"));
  backend.queue.push(backend.now, jobs, [](const Result<PushReport>&) {});
  EXPECT_THAT(later(), IsEmpty());
}

TEST_F(NewsTest, there_are_only_so_many) {
  std::vector<std::unique_ptr<support::RespClient>> all;
  for (size_t i = 0; i < NewsFeeds::kMostFeeds; ++i) {
    all.push_back(std::make_unique<support::RespClient>(backend));
    all.back()->say({"HELLO", "3"});
    EXPECT_THAT(all.back()->say({"NEWS", "START"}), StartsWith("$"));
  }
  client.say({"HELLO", "3"});
  EXPECT_THAT(client.say({"NEWS", "START"}), StartsWith("-OVERLOADED"));
  all.pop_back();
  backend.host.feeds.tick(backend.now);
  EXPECT_THAT(client.say({"NEWS", "START"}), StartsWith("$"));
}

}  // namespace
}  // namespace delayq::resp
