#include "api/kafka/record_job.h"

#include <gmock/gmock.h>

#include "queue/job_headers.h"
#include "tests/support/fake_kafka.h"

namespace delayq::intake {
namespace {

using support::input_record;
using support::RecordSpec;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr Moment kStamp = from_unix_ms(1'700'000'000'123);

RecordSpec with(std::vector<std::pair<std::string, std::optional<std::string>>> headers) {
  RecordSpec spec;
  spec.offset = 17;
  spec.partition = 3;
  spec.timestamp = kStamp;
  spec.headers = std::move(headers);
  return spec;
}

/// A push, with all that its views point to.
class JobOf : public testing::Test {
 protected:
  Result<PushRequest> read(const RecordSpec& spec) {
    record_ = input_record(spec);
    return job_of(record_, rules_, texts_);
  }
  std::string refusal(const RecordSpec& spec) {
    const auto job = read(spec);
    return job.ok() ? "accepted" : job.error().detail;
  }
  JobHeaders carried(const RecordSpec& spec) {
    const auto job = read(spec);
    EXPECT_TRUE(job.ok()) << refusal(spec);
    const auto decoded = decode_job_headers(job->options.headers);
    EXPECT_TRUE(decoded);
    return decoded.value_or(JobHeaders{});
  }

  Rules rules_;
  kafka::InputRecord record_;
  Arena texts_;
};

TEST_F(JobOf, WithoutHeadersItIsDueAtItsTimestampInATopicOfItsName) {
  const auto job = read(with({}));
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->topic, "orders");
  EXPECT_EQ(job->id, "orders-3-17");
  EXPECT_EQ(job->on_conflict, OnConflict::kKeep);
  EXPECT_EQ(job->body, "body");
  EXPECT_EQ(job->at, kStamp);
  EXPECT_FALSE(job->delay || job->group || job->priority || job->options.attempts);
  EXPECT_EQ(job->options.kafka_topic, "");
}

TEST_F(JobOf, HeadersSayWhatBecomesOfIt) {
  rules_.on_conflict = OnConflict::kReplace;
  const auto job = read(with({{"delayq-delay", "1h30m"},
                              {"delayq-topic", "paid"},
                              {"delayq-id", "order 7"},
                              {"delayq-target", "orders.late"},
                              {"delayq-group", "customer:1"},
                              {"delayq-priority", "5"},
                              {"delayq-attempts", "0"}}));
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->at, kStamp + 90min);
  EXPECT_EQ(job->topic, "paid");
  EXPECT_EQ(job->id, "order 7");
  EXPECT_EQ(job->on_conflict, OnConflict::kReplace);
  EXPECT_EQ(job->options.kafka_topic, "orders.late");
  EXPECT_EQ(job->group, "customer:1");
  EXPECT_EQ(job->priority, 5U);
  EXPECT_EQ(job->options.attempts, 0U);
}

TEST_F(JobOf, ADelayCountsFromTheRecordOrItsArrival) {
  EXPECT_EQ(read(with({{"delayq-delay", "15m"}}))->at, kStamp + 15min);
  EXPECT_EQ(read(with({{"delayq-at", "2030-01-31T08:00:00Z"}}))->at, from_unix_ms(1'896'076'800'000));
  EXPECT_EQ(read(with({{"delayq-at", "1896076800.25"}}))->at, from_unix_ms(1'896'076'800'250));
  rules_.delay = 5s;
  EXPECT_EQ(read(with({}))->at, kStamp + 5s);
  RecordSpec unstamped = with({});
  unstamped.timestamp.reset();
  EXPECT_EQ(read(unstamped)->delay, Millis{5s});
  EXPECT_FALSE(read(unstamped)->at);
  rules_.delays_from_arrival = true;
  EXPECT_EQ(read(with({{"delayq-delay", "15m"}}))->delay, Millis{15min});
}

TEST_F(JobOf, OfSeveralHeadersTheLastCounts) {
  EXPECT_EQ(read(with({{"delayq-delay", "nonsense"}, {"delayq-delay", "2s"}}))->at, kStamp + 2s);
}

TEST_F(JobOf, HeadersMayHaveOtherNames) {
  rules_.headers.at = "x-deliver-at";
  const auto job = read(with({{"x-deliver-at", "1896076800"}, {"delayq-at", "other"}}));
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->at, from_unix_ms(1'896'076'800'000));
  const auto kept = decode_job_headers(job->options.headers);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->headers, (std::vector<JobHeaders::Header>{{"delayq-at", "other"}}));
}

TEST_F(JobOf, BadHeadersAreRefusedByName) {
  const std::pair<RecordSpec, const char*> cases[] = {
      {with({{"delayq-delay", "soon"}}), "header delayq-delay"},
      {with({{"delayq-delay", "-1s"}}), "header delayq-delay"},
      {with({{"delayq-delay", "101y"}}), "header delayq-delay"},
      {with({{"delayq-delay", "40000d"}}), "header delayq-delay"},
      {with({{"delayq-delay", std::nullopt}}), "header delayq-delay"},
      {with({{"delayq-at", "tomorrow"}}), "header delayq-at"},
      {with({{"delayq-at", "1896076800"}, {"delayq-delay", "1s"}}), "at most one"},
      {with({{"delayq-target", "not a topic"}}), "header delayq-target"},
      {with({{"delayq-priority", "-1"}}), "header delayq-priority"},
      {with({{"delayq-priority", "4294967296"}}), "header delayq-priority"},
      {with({{"delayq-attempts", "many"}}), "header delayq-attempts"},
      {with({{"delayq-attempts", "1000001"}}), "header delayq-attempts"}};
  for (const auto& [spec, what] : cases) EXPECT_THAT(refusal(spec), HasSubstr(what));
}

TEST_F(JobOf, KeyAndForeignHeadersTravel) {
  RecordSpec spec = with({{"trace", "1"}, {"delayq-delay", "1s"}, {"none", std::nullopt}, {"trace", "2"}});
  spec.key = "customer-1";
  JobHeaders record = carried(spec);
  EXPECT_EQ(record.key, "customer-1");
  EXPECT_FALSE(record.is_tombstone);
  EXPECT_EQ(record.headers,
            (std::vector<JobHeaders::Header>{{"trace", "1"}, {"none", std::nullopt}, {"trace", "2"}}));

  spec.value.reset();
  spec.key.reset();
  record = carried(spec);
  EXPECT_TRUE(record.is_tombstone);
  EXPECT_FALSE(record.key);

  rules_.carries = false;
  EXPECT_EQ(read(spec)->options.headers, "");
}

TEST_F(JobOf, WhatIsTooLargeToTravelIsRefused) {
  RecordSpec spec = with({{"trace", std::string(HeaderLimits::kRecordBytes, 'x')}});
  const auto job = read(spec);
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.error().code, ErrorCode::kTooLarge);
  rules_.carries = false;
  EXPECT_TRUE(read(spec).ok());
}

TEST_F(JobOf, RetriesFollowTheBackoffAndAreCounted) {
  rules_.retry = RetryRule{3, StepBackoff{{10s, 1min}}};
  EXPECT_EQ(read(with({}))->at, kStamp + 10s);
  EXPECT_EQ(carried(with({})).headers, (std::vector<JobHeaders::Header>{{"delayq-retries", "1"}}));
  const RecordSpec again = with({{"delayq-retries", "2"}, {"other", "x"}});
  EXPECT_EQ(read(again)->at, kStamp + 1min);
  EXPECT_EQ(carried(again).headers,
            (std::vector<JobHeaders::Header>{{"other", "x"}, {"delayq-retries", "3"}}));
  EXPECT_THAT(refusal(with({{"delayq-retries", "3"}})), HasSubstr("come back 3 times"));
  EXPECT_THAT(refusal(with({{"delayq-retries", "x"}})), HasSubstr("delayq-retries"));
  EXPECT_EQ(read(with({{"delayq-retries", "1"}, {"delayq-delay", "1s"}}))->at, kStamp + 1s);
  rules_.carries = false;
  EXPECT_EQ(carried(again).headers, (std::vector<JobHeaders::Header>{{"delayq-retries", "3"}}));
}

TEST_F(JobOf, TheSameRecordGivesTheSameJobWheneverItIsRead) {
  rules_.retry = RetryRule{3, ExponentialBackoff{10s, 2, 1h, 1.0}};
  const auto first = read(with({}))->at;
  EXPECT_EQ(read(with({}))->at, first);
  RecordSpec other = with({});
  other.offset = 18;
  EXPECT_NE(read(other)->at, first) << "jitter spreads records";
}

}  // namespace
}  // namespace delayq::intake
