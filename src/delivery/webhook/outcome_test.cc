#include "delivery/webhook/outcome.h"

#include <gmock/gmock.h>

#include "core/limits.h"

namespace delayq::webhook {
namespace {

constexpr Moment kOutcomeNow = from_unix_ms(1'700'000'000'000);

CallResult answered(int status, std::string body = {}) {
  CallResult result;
  result.status = status;
  result.took = std::chrono::milliseconds{12};
  result.answer = std::move(body);
  return result;
}

Outcome judge(const CallResult& result, CallbackFormat format = CallbackFormat::kWebhook) {
  return outcome_of(result, format, kOutcomeNow);
}

TEST(Outcome, TwoHundredsAreSuccesses) {
  for (const int status : {200, 201, 204, 299}) EXPECT_EQ(judge(answered(status)).fate, Fate::kDone);
  for (const int status : {100, 199, 300, 302, 400, 404, 500, 503})
    EXPECT_EQ(judge(answered(status)).fate, Fate::kFailed) << status;
  EXPECT_EQ(judge(answered(410)).fate, Fate::kDead);
}

TEST(Outcome, TheTextSaysStatusTimeAndFirstBytes) {
  EXPECT_EQ(judge(answered(200, " fine\n")).text, "200 in 12 ms: fine");
  EXPECT_EQ(judge(answered(204)).text, "204 in 12 ms");
  EXPECT_EQ(judge(answered(500, std::string(300, 'x'))).text,
            "500 in 12 ms: " + std::string(200, 'x') + "...");
}

TEST(Outcome, TheTextOfAnErrorSaysWhich) {
  CallResult result;
  result.error = CallError::kConnect;
  result.error_text = "nobody listens at 127.0.0.1:1";
  result.took = std::chrono::milliseconds{3};
  const Outcome outcome = judge(result);
  EXPECT_EQ(outcome.text, "connect after 3 ms: nobody listens at 127.0.0.1:1");
  EXPECT_EQ(outcome.fate, Fate::kFailed);
  EXPECT_TRUE(outcome.host_failed);
}

TEST(Outcome, AnyAnswerMakesATextThatTheQueueTakes) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_TRUE(check_reason(judge(answered(500, all)).text).ok());
  EXPECT_TRUE(check_reason(judge(answered(500, "gr\xc3\xbc\xc3\x9f")).text).ok());
  CallResult result;
  result.error = CallError::kBroken;
  result.error_text = std::string(5'000, 'e');
  EXPECT_TRUE(check_reason(judge(result).text).ok());
}

TEST(Outcome, TheCallbackApiWantsOk) {
  const auto format = CallbackFormat::kCallbackApi;
  EXPECT_EQ(judge(answered(200, "ok"), format).fate, Fate::kDone);
  EXPECT_EQ(judge(answered(200, " ok\r\n"), format).fate, Fate::kDone);
  EXPECT_EQ(judge(answered(200, "OK"), format).fate, Fate::kFailed);
  EXPECT_EQ(judge(answered(200, "ok ok"), format).fate, Fate::kFailed);
  EXPECT_EQ(judge(answered(200), format).fate, Fate::kFailed);
  EXPECT_EQ(judge(answered(500, "ok"), format).fate, Fate::kFailed);
}

TEST(Outcome, RetryAfterCountsWithTwoStatuses) {
  CallResult result = answered(429);
  result.retry_after = RetryAfter{std::chrono::seconds{7}, {}};
  EXPECT_EQ(judge(result).retry_after, Millis{7'000});
  result.status = 503;
  EXPECT_EQ(judge(result).retry_after, Millis{7'000});
  result.status = 500;
  EXPECT_EQ(judge(result).retry_after, std::nullopt);
  result.status = 429;
  result.retry_after = RetryAfter{{}, kOutcomeNow + std::chrono::seconds{3}};
  EXPECT_EQ(judge(result).retry_after, Millis{3'000});
  result.retry_after = RetryAfter{std::chrono::days{900}, {}};
  EXPECT_EQ(judge(result).retry_after, kLongestRetryAfter);
}

TEST(Outcome, WhatCountsAgainstTheHost) {
  for (const int status : {502, 503, 504}) EXPECT_TRUE(judge(answered(status)).host_failed) << status;
  for (const int status : {200, 404, 410, 429, 500})
    EXPECT_FALSE(judge(answered(status)).host_failed) << status;
  CallResult bad;
  bad.error = CallError::kBadCall;
  EXPECT_FALSE(judge(bad).host_failed);
}

}  // namespace
}  // namespace delayq::webhook
