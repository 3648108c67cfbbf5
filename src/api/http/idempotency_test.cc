// Requests with an Idempotency-Key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_client.h"
#include "tests/support/tokens.h"

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
  for (const std::string_view none : {"", "\"\""}) EXPECT_EQ(push(std::string(none), body).status, 400);
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

// ---- a client that hangs up

class HungUpTest : public IdempotencyTest {
 protected:
  /// The next connection.
  void reconnect() {
    conversation->hang_up();
    conversation = std::make_shared<Conversation>(host, *this);
    input.clear();
    settle();
  }
};

TEST_F(HungUpTest, a_pop_that_waited_may_be_sent_again) {
  const std::string pop =
      request("POST", "/v1/topics/t/pop", R"({"wait":"10s"})", "application/json", "Idempotency-Key: p\r\n");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(say(pop), "") << "it waits";
    reconnect();
  }
  ask("POST", "/v1/topics/t/jobs", R"({"id":"a","body":1})");
  EXPECT_THAT(say(pop), HasSubstr(R"("id":"a")"));
  EXPECT_EQ(host.idempotency.size(), 1U);
}

TEST_F(HungUpTest, a_batch_that_did_not_come_whole_may_be_sent_again) {
  const std::string body = R"([{"topic":"t","id":"a","body":1},{"topic":"t","id":"b","body":1}])";
  const std::string whole = request("POST", "/v1/jobs", body, "application/json", "Idempotency-Key: b\r\n");
  for (const size_t cut : {whole.size() - 1, whole.size() - body.size(), whole.size() - 20}) {
    EXPECT_EQ(say(whole.substr(0, cut)), "");
    reconnect();
  }
  EXPECT_THAT(say(whole), HasSubstr(R"("pushed":2)"));
  EXPECT_THAT(say(whole), HasSubstr("Idempotency-Replayed: true"));
}

TEST_F(HungUpTest, one_that_times_out_may_be_sent_again) {
  const std::string body = R"([{"topic":"t","id":"a","body":1}])";
  const std::string whole = request("POST", "/v1/jobs", body, "application/json", "Idempotency-Key: b\r\n");
  say(whole.substr(0, whole.size() - 5));
  conversation->time_out();
  EXPECT_EQ(parse(say("")).status, 400);
  reconnect();
  EXPECT_THAT(say(whole), HasSubstr(R"("pushed":1)"));
}

// ---- another request under the same key

class BatchKeyTest : public IdempotencyTest {
 protected:
  Answer push_many(std::string_view key, std::string_view body) {
    return ask("POST", "/v1/jobs", body, "application/json", fmt::format("Idempotency-Key: {}\r\n", key));
  }
  /// In chunks of so many bytes.
  Answer push_chunked(std::string_view key, std::string_view body, size_t at_once) {
    std::string text = fmt::format(
        "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nIdempotency-Key: {}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n",
        key);
    for (; !body.empty(); body.remove_prefix(std::min(at_once, body.size()))) {
      const std::string_view chunk = body.substr(0, at_once);
      text += fmt::format("{:x}\r\n{}\r\n", chunk.size(), chunk);
    }
    return parse(say(text + "0\r\n\r\n"));
  }
};

TEST_F(BatchKeyTest, another_body_of_the_same_length_is_another_request) {
  const std::string first = R"([{"topic":"t","id":"a","body":1}])";
  const std::string second = R"([{"topic":"t","id":"b","body":2}])";
  EXPECT_EQ(push_many("k", first).status, 200);
  const Answer other = push_many("k", second);
  EXPECT_EQ(other.status, 409);
  EXPECT_THAT(other.body, HasSubstr("Idempotency-Key: was used for another request"));
  EXPECT_EQ(ask("GET", "/v1/topics/t/jobs/b").status, 404);
  const Answer again = push_many("k", first);
  EXPECT_EQ(again.status, 200);
  EXPECT_THAT(again.head, HasSubstr("Idempotency-Replayed: true"));
}

TEST_F(BatchKeyTest, how_a_body_is_cut_does_not_matter_and_what_it_says_does) {
  const std::string first = R"([{"topic":"t","id":"a","body":1}])";
  EXPECT_EQ(push_chunked("k", first, 100).status, 200);
  EXPECT_THAT(push_chunked("k", first, 3).head, HasSubstr("Idempotency-Replayed: true"));
  EXPECT_THAT(push_many("k", first).head, HasSubstr("Idempotency-Replayed: true"));
  EXPECT_EQ(push_chunked("k", R"([{"topic":"t","id":"quite another","body":1}])", 7).status, 409);
  EXPECT_EQ(push_chunked("k", "[]", 7).status, 409);
  EXPECT_EQ(engine.usage().jobs, 1U);
}

TEST_F(BatchKeyTest, while_the_first_is_running_the_second_is_told_so_and_read_on) {
  const std::string body = R"([{"topic":"t","id":"a","body":1}])";
  const std::string whole = request("POST", "/v1/jobs", body, "application/json", "Idempotency-Key: k\r\n");
  const auto first = std::make_shared<Conversation>(host, *this);
  first->read(whole.substr(0, whole.size() - 1));
  EXPECT_THAT(say(whole + request("GET", "/healthz")),
              testing::AllOf(HasSubstr("HTTP/1.1 409 "), HasSubstr("still being worked on"),
                             HasSubstr(R"({"status":"ok")")));
  first->read("]");
  settle();
  EXPECT_THAT(first->output(), HasSubstr(R"("pushed":1)"));
  EXPECT_THAT(say(whole), HasSubstr("Idempotency-Replayed: true"));
  first->hang_up();
}

TEST_F(BatchKeyTest, the_same_key_of_another_caller_is_another_key) {
  host.front->set_tokens({support::token("x", support::kSecretHash, only(Scope::kPush)),
                          support::token("x/y", support::kOtherHash, only(Scope::kPush))});
  const auto push_as = [this](std::string_view secret, std::string_view key) {
    return ask("POST", "/v1/topics/t/jobs", R"({"body":1})", "application/json",
               fmt::format("Authorization: Bearer {}\r\nIdempotency-Key: {}\r\n", secret, key));
  };
  EXPECT_EQ(push_as("other", "k").status, 201);
  const Answer theirs = push_as("secret", "y/k");
  EXPECT_EQ(theirs.status, 201);
  EXPECT_THAT(theirs.head, testing::Not(HasSubstr("Idempotency-Replayed")));
  EXPECT_NE(IdempotencyBook::name_of("x", "1 k"), IdempotencyBook::name_of("x1 ", "k"));
  EXPECT_NE(IdempotencyBook::name_of("", "1 xk"), IdempotencyBook::name_of("x", "k"));
}

// ---- the book

constexpr Moment kBegin{Millis{1'000}};
constexpr Sha256 kDigest{1};

TEST(IdempotencyBook, forgets_what_is_old_and_what_is_too_much) {
  using Outcome = IdempotencyBook::Outcome;
  IdempotencyBook book({Millis{100}, 10'000});
  const auto a = book.begin(kBegin, "a", kDigest);
  EXPECT_EQ(a.outcome, Outcome::kNew);
  book.finish(a.claim, {});
  EXPECT_EQ(book.begin(kBegin + Millis{99}, "a", kDigest).outcome, Outcome::kKnown);
  const auto later = book.begin(kBegin + Millis{100}, "a", kDigest);
  EXPECT_EQ(later.outcome, Outcome::kNew);
  Response large;
  large.body.assign(20'000, 'x');
  book.finish(later.claim, large);
  const auto b = book.begin(kBegin + Millis{100}, "b", kDigest);
  EXPECT_EQ(b.outcome, Outcome::kNew);
  const auto again = book.begin(kBegin + Millis{100}, "a", kDigest);
  EXPECT_EQ(again.outcome, Outcome::kNew) << "there was no room for it";
  book.abandon(again.claim);
  book.abandon(b.claim);
  EXPECT_EQ(book.size(), 0u);
  EXPECT_EQ(book.bytes(), 0u);
}

TEST(IdempotencyBook, what_is_running_is_not_forgotten) {
  IdempotencyBook book({Millis{100}, 10'000});
  const auto running = book.begin(kBegin, "a", kDigest);
  for (int i = 1; i < 10; ++i) {
    EXPECT_EQ(book.begin(kBegin + Millis{i * 1'000}, "a", kDigest).outcome,
              IdempotencyBook::Outcome::kRunning);
  }
}

TEST(IdempotencyBook, what_nobody_works_on_any_more_is_free_and_makes_room) {
  IdempotencyBook book({Millis{1'000}, 100'000});
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_EQ(book.begin(kBegin, std::to_string(i), kDigest).outcome, IdempotencyBook::Outcome::kNew);
    EXPECT_EQ(book.begin(kBegin, std::to_string(i), kDigest).outcome, IdempotencyBook::Outcome::kNew);
    ASSERT_LE(book.bytes(), 101'000U);
  }
  book.begin(kBegin + Millis{1'000}, "x", kDigest);
  book.begin(kBegin + Millis{1'000}, "x", kDigest);
  for (int i = 0; i < 10; ++i) book.begin(kBegin + Millis{1'000}, "x", kDigest);
  EXPECT_EQ(book.size(), 1U);
}

}  // namespace
}  // namespace delayq::http
