#include <gmock/gmock.h>

#include "core/limits.h"
#include "delivery/webhook/call.h"
#include "queue/job_headers.h"

namespace delayq::webhook {
namespace {

constexpr Moment kMessageNow = from_unix_ms(1'700'000'000'500);
const std::vector<std::string> kSecrets{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};

class Message : public testing::Test {
 protected:
  Message() {
    job_.topic = "order";
    job_.id = "7";
    job_.body = R"({"uid":1})";
    job_.attempts = 2;
    job_.due = from_unix_ms(1'700'000'000'000);
    job_.pushed = from_unix_ms(1'699'999'000'000);
    topic_.callback = "https://shop.example/hook";
  }
  Call make() {
    const CallRoute route = route_of(options_, topic_);
    return make_call(job_, options_, route, signer_, kMessageNow);
  }
  std::string header(const Call& call, std::string_view name) {
    return std::string(call.headers.find(name).value_or("(none)"));
  }

  Job job_;
  JobOptions options_;
  EffectiveSettings topic_;
  signing::Signer signer_ = std::move(*signing::Signer::create(kSecrets));
};

TEST_F(Message, NativeFormat) {
  const Call call = make();
  EXPECT_EQ(call.url, "https://shop.example/hook");
  EXPECT_EQ(call.method, "POST");
  EXPECT_EQ(call.body, R"({"uid":1})");
  EXPECT_EQ(header(call, "content-type"), "application/json");
  EXPECT_EQ(header(call, "webhook-id"), message_id(job_));
  EXPECT_EQ(header(call, "webhook-timestamp"), "1700000000");
  EXPECT_EQ(header(call, "delayq-topic"), "order");
  EXPECT_EQ(header(call, "delayq-job-id"), "7");
  EXPECT_EQ(header(call, "delayq-attempt"), "2");
  EXPECT_EQ(header(call, "delayq-due"), "2023-11-14T22:13:20.000Z");
  EXPECT_EQ(header(call, "webhook-signature"), signer_.sign({message_id(job_), kMessageNow, call.body}));
  EXPECT_EQ(header(call, "ce-id"), "(none)");
}

TEST_F(Message, HeaderLinesOfTheTopicGoToItsCallbackAlone) {
  topic_.callback_headers = {"Authorization: Bearer topic", "X-Tenant: acme"};
  EXPECT_EQ(header(make(), "Authorization"), "Bearer topic");
  EXPECT_EQ(header(make(), "X-Tenant"), "acme");
  options_.callback = "https://elsewhere.example/";
  EXPECT_EQ(header(make(), "Authorization"), "(none)") << "the producer chose that URL";
  options_.callback_headers = "Authorization: Bearer own\nX-More: a: b";
  EXPECT_EQ(header(make(), "Authorization"), "Bearer own");
  EXPECT_EQ(header(make(), "X-More"), "a: b");
  EXPECT_EQ(header(make(), "X-Tenant"), "(none)");
}

TEST_F(Message, AHeaderLineOfTheCallbackReplacesOneOfTheJob) {
  topic_.callback_headers = {"X-Tenant: acme"};
  std::string encoded;
  const std::vector<JobHeader> own{{"x-tenant", "mallory"}, {"x-other", "1"}};
  encode_job_headers(own, encoded);
  options_.headers = encoded;
  const Call call = make();
  EXPECT_EQ(header(call, "X-Tenant"), "acme");
  EXPECT_EQ(header(call, "x-tenant"), "(none)");
  EXPECT_EQ(header(call, "x-other"), "1");
}

TEST_F(Message, WithoutSecretsThereIsNoSignature) {
  signer_ = std::move(*signing::Signer::create({}));
  EXPECT_EQ(header(make(), "webhook-signature"), "(none)");
}

TEST_F(Message, TheIdStaysOverAttemptsAndChangesWithThePush) {
  const std::string id = message_id(job_);
  EXPECT_EQ(id.size(), 36U);
  EXPECT_TRUE(id.starts_with("msg_"));
  Job again = job_;
  again.attempts = 9;
  again.due = kMessageNow;
  EXPECT_EQ(message_id(again), id);
  again.pushed += Millis{1};
  EXPECT_NE(message_id(again), id);
  Job shifted = job_;
  shifted.topic = "orde";
  shifted.id = "r7";
  EXPECT_NE(message_id(shifted), id);
}

TEST_F(Message, TheJobsOwnWordGoesFirst) {
  topic_.callback_method = "PATCH";
  EXPECT_EQ(make().method, "PATCH");
  options_.callback = "http://own.example/";
  options_.method = "DELETE";
  options_.format = CallbackFormat::kCloudEvents;
  options_.content_type = "text/plain";
  const Call call = make();
  EXPECT_EQ(call.url, "http://own.example/");
  EXPECT_EQ(call.method, "DELETE");
  EXPECT_EQ(header(call, "content-type"), "text/plain");
  EXPECT_EQ(header(call, "ce-specversion"), "1.0");
}

TEST_F(Message, HeadersOfTheJobAreSentButNeverThoseOfTheCall) {
  JobHeaders record;
  record.is_record = true;
  record.headers = {{"traceparent", "00-1"},
                    {"empty", ""},
                    {"Content-Type", "text/evil"},
                    {"content_type", "x"},
                    {"HOST", "evil"},
                    {"webhook_signature", "v1,x"},
                    {"Transfer.Encoding", "chunked"},
                    {"delayq-topic", "other"},
                    {"x-forwarded-for", "::1"},
                    {"bad name", "x"},
                    {"two", "a\r\nHost: x"},
                    {"Authorization", "Basic eA=="}};
  std::string encoded;
  encode_job_headers(record, encoded);
  options_.headers = encoded;
  const Call plain = [&] {
    options_.headers = {};
    return make();
  }();
  options_.headers = encoded;
  const Call call = make();
  EXPECT_TRUE(call.headers.valid());
  EXPECT_EQ(call.headers.lines(),
            plain.headers.lines() + std::string("traceparent: 00-1") + '\0' + "empty;" + '\0');
}

TEST_F(Message, CloudEventsInBinaryMode) {
  topic_.callback_format = CallbackFormat::kCloudEvents;
  job_.topic = "gr\xc3\xbc n";
  const Call call = make();
  EXPECT_EQ(header(call, "ce-id"), message_id(job_));
  EXPECT_EQ(header(call, "ce-source"), "/delayq/topics/gr%c3%bc%20n");
  EXPECT_EQ(header(call, "ce-type"), "delayq.job.due");
  EXPECT_EQ(header(call, "ce-subject"), "7");
  EXPECT_EQ(header(call, "ce-time"), "2023-11-14T22:13:20.000Z");
  EXPECT_EQ(call.body, job_.body);
}

TEST_F(Message, TheCallbackApiSendsTheWholeJob) {
  topic_.callback_format = CallbackFormat::kCallbackApi;
  const Call call = make();
  EXPECT_EQ(call.method, "PUT");
  EXPECT_EQ(
      call.body,
      R"({"topic":"order","id":"7","delay":1000,"callback":"https://shop.example/hook","body":{"uid":1}})");
  EXPECT_EQ(header(call, "content-type"), "application/json");
  job_.body = "not \"json\"";
  EXPECT_THAT(make().body, testing::HasSubstr(R"("body":"not \"json\"")"));
}

TEST_F(Message, AnIdCannotWriteHeadersOfItsOwn) {
  job_.id = "a\r\nx-evil: 1";
  EXPECT_EQ(header(make(), "delayq-job-id"), "a%0d%0ax-evil:%201");
}

TEST_F(Message, BytesThatAreNotJsonHaveNoBetterType) {
  job_.body = "plain words";
  EXPECT_EQ(header(make(), "content-type"), "application/octet-stream");
}

constexpr Moment kOutcomeNow = from_unix_ms(1'700'000'000'000);

CallResult answered(int status, std::string body = {}) {
  CallResult result;
  result.status = status;
  result.took = std::chrono::milliseconds{12};
  result.answer = std::move(body);
  return result;
}

CallOutcome judge(const CallResult& result, CallbackFormat format = CallbackFormat::kWebhook) {
  return outcome_of(result, format, kOutcomeNow);
}

TEST(Outcome, TwoHundredsAreSuccesses) {
  for (const int status : {200, 201, 204, 299}) EXPECT_EQ(judge(answered(status)).fate, CallFate::kDone);
  for (const int status : {100, 199, 300, 302, 400, 404, 500, 503})
    EXPECT_EQ(judge(answered(status)).fate, CallFate::kFailed) << status;
  EXPECT_EQ(judge(answered(410)).fate, CallFate::kDead);
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
  const CallOutcome outcome = judge(result);
  EXPECT_EQ(outcome.text, "connect after 3 ms: nobody listens at 127.0.0.1:1");
  EXPECT_EQ(outcome.fate, CallFate::kFailed);
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
  EXPECT_EQ(judge(answered(200, "ok"), format).fate, CallFate::kDone);
  EXPECT_EQ(judge(answered(200, " ok\r\n"), format).fate, CallFate::kDone);
  EXPECT_EQ(judge(answered(200, "OK"), format).fate, CallFate::kFailed);
  EXPECT_EQ(judge(answered(200, "ok ok"), format).fate, CallFate::kFailed);
  EXPECT_EQ(judge(answered(200), format).fate, CallFate::kFailed);
  EXPECT_EQ(judge(answered(500, "ok"), format).fate, CallFate::kFailed);
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
