// Requests with an Idempotency-Key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_client.h"

namespace delayq::http {
namespace {

using testing::HasSubstr;

using Answer = HttpClient::Answer;

class IdempotencyTest : public testing::Test, public HttpClient {
 protected:
  Answer push(std::string_view key, std::string_view body) {
    return ask("POST", "/v1/topics/t/jobs", body, "application/json",
               fmt::format("Idempotency-Key: {}\r\n", key));
  }
};

TEST_F(IdempotencyTest, the_same_request_again_gets_the_same_answer_and_does_nothing) {
  const Answer first = push("k1", R"({"body":1})");
  EXPECT_EQ(first.status, 201);
  const Answer again = push("\"k1\"", R"({"body":1})");
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.body, first.body);
  EXPECT_THAT(again.head, HasSubstr("Idempotency-Replayed: true"));
  EXPECT_THAT(ask("GET", "/v1/stats").body, HasSubstr(R"("ready":1)"));
  const Answer other = push("k1", R"({"body":2})");
  EXPECT_EQ(other.status, 409);
  EXPECT_THAT(other.body, HasSubstr("Idempotency-Key: was used for another request"));
  EXPECT_NE(push("k2", R"({"body":1})").body, first.body);
}

TEST_F(IdempotencyTest, an_error_is_not_kept) {
  EXPECT_EQ(push("k", R"({"body":1,"priority":"x"})").status, 400);
  EXPECT_EQ(push("k", R"({"body":1})").status, 201);
}

TEST_F(IdempotencyTest, a_key_has_255_characters_at_most_and_quotes_count) {
  const std::string body = R"({"body":1})";
  EXPECT_EQ(push(std::string(255, 'k'), body).status, 201);
  EXPECT_EQ(push(fmt::format("\"{}\"", std::string(253, 'q')), body).status, 201);
  for (const std::string& key :
       {std::string(256, 'k'), fmt::format("\"{}\"", std::string(254, 'q')), std::string(256, '"')}) {
    const Answer refused = push(key, body);
    EXPECT_EQ(refused.status, 400) << key;
    EXPECT_THAT(refused.body, HasSubstr("Idempotency-Key: expected 1 to 255 characters, quotes included"));
  }
  EXPECT_EQ(push("\"\"", body).status, 400);
  EXPECT_THAT(ask("GET", "/v1/stats").body, HasSubstr(R"("ready":2)"));
}

TEST_F(IdempotencyTest, while_the_first_is_running_the_second_is_told_so) {
  const std::string pop =
      request("POST", "/v1/topics/t/pop", R"({"wait":"10s"})", "application/json", "Idempotency-Key: p\r\n");
  EXPECT_EQ(say(pop), "");
  const auto second = std::make_shared<Conversation>(host, *this);
  second->read(pop);
  settle();
  EXPECT_EQ(parse(second->output()).status, 409);
  second->hang_up();
}

TEST_F(IdempotencyTest, an_answer_that_nobody_heard_is_there_for_the_next) {
  const std::string body = R"({"body":1})";
  conversation->read(
      request("POST", "/v1/topics/t/jobs", body, "application/json", "Idempotency-Key: lost\r\n"));
  conversation->hang_up();
  settle();
  conversation = std::make_shared<Conversation>(host, *this);
  const Answer again = push("lost", body);
  EXPECT_EQ(again.status, 201);
  EXPECT_THAT(again.head, HasSubstr("Idempotency-Replayed: true"));
}

TEST(IdempotencyBook, forgets_what_is_old_and_what_is_too_much) {
  using Outcome = IdempotencyBook::Outcome;
  const Moment start{Millis{1'000}};
  IdempotencyBook book({Millis{100}, 10'000});
  EXPECT_EQ(book.begin(start, "a", 1).outcome, Outcome::kNew);
  book.finish("a", {});
  EXPECT_EQ(book.begin(start + Millis{99}, "a", 1).outcome, Outcome::kKnown);
  EXPECT_EQ(book.begin(start + Millis{100}, "a", 1).outcome, Outcome::kNew);
  Response large;
  large.body.assign(20'000, 'x');
  book.finish("a", large);
  EXPECT_EQ(book.begin(start + Millis{100}, "b", 1).outcome, Outcome::kNew);
  EXPECT_EQ(book.begin(start + Millis{100}, "a", 1).outcome, Outcome::kNew) << "there was no room for it";
  book.abandon("a");
  book.abandon("b");
  EXPECT_EQ(book.size(), 0u);
  EXPECT_EQ(book.bytes(), 0u);
}

TEST(IdempotencyBook, what_is_running_is_not_forgotten) {
  IdempotencyBook book({Millis{100}, 10'000});
  const Moment start{Millis{1'000}};
  book.begin(start, "a", 1);
  EXPECT_EQ(book.begin(start + Millis{1'000}, "a", 1).outcome, IdempotencyBook::Outcome::kRunning);
}

}  // namespace
}  // namespace delayq::http
