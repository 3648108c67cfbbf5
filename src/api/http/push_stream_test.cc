// Batches that come in pieces, and requests that never come whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_client.h"

namespace delayq::http {
namespace {

using testing::HasSubstr;

using Answer = HttpClient::Answer;

class PushStreamTest : public testing::Test, public HttpClient {};

TEST_F(PushStreamTest, a_long_one_is_pushed_while_it_comes) {
  constexpr int kPushed = 25'000;
  say("POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: "
      "chunked\r\n\r\n");
  std::string answer;
  for (int i = 0; i < kPushed; ++i) {
    const std::string line =
        fmt::format("{{\"topic\":\"t\",\"id\":\"{}\",\"body\":1}}\n", i == 20'000 ? 1 : i);
    answer += say(fmt::format("{:x}\r\n{}\r\n", line.size(), line));
    if (i == kPushed - 1) {
      EXPECT_EQ(engine.usage().jobs, 20'000u) << "two steps are stored before the rest has come";
    }
  }
  answer += say("0\r\n\r\n");
  const Answer parsed = parse(answer);
  EXPECT_EQ(parsed.status, 200);
  EXPECT_THAT(parsed.body, HasSubstr(R"({"pushed":24999,"failed":1,"results":[{"index":20000,)"));
  EXPECT_THAT(parsed.body, HasSubstr(R"("code":"conflict")"));
}

TEST_F(PushStreamTest, one_that_breaks_off_stores_nothing_of_its_last_step) {
  const Answer broken = ask("POST", "/v1/jobs", R"([{"topic":"t","id":"a","body":1},{"topic")");
  EXPECT_EQ(broken.status, 400);
  EXPECT_THAT(broken.body, HasSubstr("job 1: it ends in the middle"));
  EXPECT_EQ(engine.usage().jobs, 0u);
  EXPECT_EQ(ask("POST", "/v1/jobs", R"([{"topic":"t","body":1}, oops])").status, 400);
  EXPECT_EQ(ask("POST", "/v1/jobs", R"({"topic":"t","body":1})").status, 400);
  EXPECT_EQ(engine.usage().jobs, 0u);
  EXPECT_EQ(ask("POST", "/v1/jobs", "[]").body, R"({"pushed":0,"failed":0,"results":[]})");
}

TEST_F(PushStreamTest, who_hangs_up_amid_it_leaves_no_trace) {
  say("POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n[{\"topic\":\"t\",\"body\":1},");
  std::weak_ptr<api::Conversation> alive = conversation->weak_from_this();
  conversation->hang_up();
  conversation = std::make_shared<Conversation>(host, *this);
  settle();
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(engine.usage().jobs, 0u);
}

TEST_F(PushStreamTest, one_that_takes_too_long_is_told_so) {
  say("POST /v1/topics/t/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_TRUE(conversation->is_amid_request());
  conversation->time_out();
  const Answer answer = parse(say(""));
  EXPECT_EQ(answer.status, 408);
  EXPECT_TRUE(conversation->is_over());
}

TEST_F(PushStreamTest, a_head_promises_little_of_what_others_may_be_answered) {
  say("POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: "
      "60\r\n\r\n{");
  EXPECT_LT(conversation->held(), 64U * 1'024) << "or a few hundred clients could stop all others";
}

}  // namespace
}  // namespace delayq::http
