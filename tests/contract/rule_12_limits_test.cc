// Rule 12: a value over its limit is an error that names the field, and nothing is stored; up to the
// limit everything works.
#include "queue/job_headers.h"
#include "queue/job_options.h"
#include "tests/contract/queue_contract.h"

namespace delayq::contract {
namespace {

class Rule12Limits : public QueueContract {
 protected:
  void expect_refused(const PushRequest& request, ErrorCode code, std::string_view field) {
    const Result<PushReceipt> receipt = queue_->try_push(request);
    ASSERT_FALSE(receipt.ok()) << field;
    EXPECT_EQ(receipt.error().code, code) << field;
    EXPECT_THAT(receipt.error().detail, testing::StartsWith(std::string{field}));
    EXPECT_EQ(queue_->totals().usage.jobs, 0U) << "nothing is stored";
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule12Limits);

TEST_P(Rule12Limits, AboveTheLimitNamesTheField) {
  const std::string long_topic(201, 't');
  const std::string long_id(256, 'i');
  const std::string large_body((size_t{1} << 20) + 1, 'b');
  expect_refused({.topic = ""}, ErrorCode::kInvalid, "topic");
  expect_refused({.topic = long_topic}, ErrorCode::kInvalid, "topic");
  expect_refused({.topic = "a b"}, ErrorCode::kInvalid, "topic");
  expect_refused({.topic = "a/b"}, ErrorCode::kInvalid, "topic");
  expect_refused({.topic = "*"}, ErrorCode::kInvalid, "topic");
  expect_refused({.topic = "t", .id = ""}, ErrorCode::kInvalid, "id");
  expect_refused({.topic = "t", .id = long_id}, ErrorCode::kInvalid, "id");
  expect_refused({.topic = "t", .id = "line\nbreak"}, ErrorCode::kInvalid, "id");
  expect_refused({.topic = "t", .group = ""}, ErrorCode::kInvalid, "group");
  expect_refused({.topic = "t", .group = long_id}, ErrorCode::kInvalid, "group");
  expect_refused({.topic = "t", .body = large_body}, ErrorCode::kTooLarge, "body");
  expect_refused({.topic = "t", .delay = Millis{-1}}, ErrorCode::kInvalid, "delay");
  expect_refused({.topic = "t", .delay = Limits::kMaxDelay + Millis{1}}, ErrorCode::kInvalid, "delay");
  expect_refused({.topic = "t", .at = at(0) + Limits::kMaxDelay + Millis{1}}, ErrorCode::kInvalid, "at");
  expect_refused({.topic = "t", .delay = Millis{1}, .at = at(1)}, ErrorCode::kInvalid, "");
  expect_refused({.topic = "t", .options = {.lease = Millis{1}}}, ErrorCode::kInvalid, "lease");
}

TEST_P(Rule12Limits, HeadersAreNamed) {
  const std::string large(HeaderLimits::kValueBytes + 1, 'v');
  for (const auto& [header, field] : {std::pair{JobHeader{"tenant", large}, "headers.tenant"},
                                      {JobHeader{"tenant", "a\r\nHost: b"}, "headers.tenant"},
                                      {JobHeader{"Host", "b"}, "headers.Host"},
                                      {JobHeader{"no name", "b"}, "headers"}}) {
    std::string encoded;
    encode_job_headers({&header, 1}, encoded);
    expect_refused({.topic = "t", .options = {.headers = encoded}}, ErrorCode::kInvalid, field);
  }
}

TEST_P(Rule12Limits, HeadersUpToTheLimitStayThroughTheWholeLife) {
  const std::string value(HeaderLimits::kValueBytes - 1, 'v');
  const auto headers_with = [&value](std::string_view first) {
    std::string encoded;
    encode_job_headers(std::vector<JobHeader>{{first, value}, {"b", value}, {"C", value}, {"d", value}},
                       encoded);
    return encoded;
  };
  const std::string first = headers_with("a");
  const std::string second = headers_with("x");
  const auto expect_headers = [this](const std::string& wanted) {
    const std::optional<support::SeenJob> job = queue_->get("t", "1");
    ASSERT_TRUE(job);
    EXPECT_EQ(visible_headers(decode_job_options(job->options).headers), visible_headers(wanted));
  };
  queue_->push({.topic = "t", .id = "1", .delay = Millis{10}, .options = {.headers = first}});
  expect_headers(first);
  if (GetParam().durable) restart();
  expect_headers(first);
  queue_->push({.topic = "t",
                .id = "1",
                .delay = Millis{10},
                .options = {.headers = second},
                .on_conflict = OnConflict::kReplace});
  expect_headers(second);
  queue_->push({.topic = "t", .id = "1", .options = {.headers = first}, .on_conflict = OnConflict::kKeep});
  expect_headers(second);
  queue_->run_to(at(10));
  const Taken taken = queue_->pop_one("t");
  EXPECT_EQ(visible_headers(decode_job_options(taken.job.options).headers), visible_headers(second));
  ASSERT_TRUE(queue_->nack({.lease = taken.lease, .delay = Millis{0}}).ok());
  ASSERT_TRUE(queue_->nack({.lease = queue_->pop_one("t").lease, .dead = true}).ok());
  expect_headers(second);
  if (GetParam().durable) restart();
  queue_->go_to(std::max(queue_->now(), at(10)));
  EXPECT_EQ(queue_->must<uint64_t>("redrive",
                                   [this](Reply<uint64_t> reply) {
                                     queue_->queue().redrive_all(queue_->now(), "t", std::move(reply));
                                   }),
            1U);
  EXPECT_EQ(visible_headers(decode_job_options(queue_->pop_one("t").job.options).headers),
            visible_headers(second));
}

TEST_P(Rule12Limits, UpToTheLimitEverythingWorks) {
  const std::string topic(200, 't');
  const std::string id(255, 'i');
  const std::string group(255, 'g');
  const std::string body(size_t{1} << 20, '\xfe');
  queue_->push({.topic = topic,
                .id = id,
                .group = group,
                .body = body,
                .delay = Limits::kMaxDelay,
                .priority = UINT32_MAX});
  queue_->run_to(at(0) + Limits::kMaxDelay - Millis{1});
  EXPECT_THAT(queue_->pop(topic), IsEmpty());
  queue_->run_to(at(0) + Limits::kMaxDelay);
  const Taken taken = queue_->pop_one(topic);
  EXPECT_EQ(taken.job.id, id);
  EXPECT_EQ(taken.job.group, group);
  EXPECT_TRUE(taken.job.body == body);
  EXPECT_TRUE(queue_->ack(taken.lease).ok());
}

TEST_P(Rule12Limits, TheBodyLimitIsConfiguration) {
  QueueConfig config;
  config.limits.body_bytes = size_t{4} << 20;
  restart(config);
  const std::string body(size_t{4} << 20, 'x');
  queue_->push({.topic = "t", .id = "a", .body = body});
  EXPECT_TRUE(queue_->pop_one("t").job.body == body);
  EXPECT_EQ(refused({.topic = "t", .body = body + "x"}).code, ErrorCode::kTooLarge);
}

TEST_P(Rule12Limits, TopicsMayUseLettersOfAllScripts) {
  for (const char* topic : {"order_1.a:b-C", "заказы", "订单", "naïve"}) {
    queue_->push({.topic = topic, .id = "a"});
    EXPECT_EQ(queue_->pop_one(topic).job.topic, topic);
  }
}

TEST_P(Rule12Limits, AnInvalidItemDoesNotStopTheOthers) {
  const std::vector<PushRequest> jobs{
      {.topic = "t", .id = "a"}, {.topic = "", .id = "b"}, {.topic = "t", .id = "c"}};
  const auto report = queue_->must<PushReport>(
      "push", [&](auto reply) { queue_->queue().push(queue_->now(), jobs, std::move(reply)); });
  EXPECT_TRUE(report.jobs[0].ok());
  EXPECT_EQ(report.jobs[1].error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(report.jobs[2].ok());
  EXPECT_THAT(ids_of(queue_->pop("t", 5)), ElementsAre("a", "c"));
}

TEST_P(Rule12Limits, AReasonHasALimitToo) {
  const Taken taken = reserve("a");
  const std::string reason(Limits::kReasonBytes + 1, 'r');
  EXPECT_EQ(queue_->nack({.lease = taken.lease, .reason = reason}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kReserved) << "nothing happened";
  EXPECT_TRUE(queue_->nack({.lease = taken.lease, .reason = std::string_view{reason}.substr(1)}).ok());
  EXPECT_EQ(queue_->get("t", "a")->outcome, reason.substr(1));
}

TEST_P(Rule12Limits, ABatchHasALimit) {
  const std::vector<PushRequest> jobs(Limits::kBatchJobs + 1, PushRequest{.topic = "t"});
  const auto report = queue_->ask<PushReport>(
      "push", [&](auto reply) { queue_->queue().push(queue_->now(), jobs, std::move(reply)); });
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(queue_->totals().usage.jobs, 0U);
}

}  // namespace
}  // namespace delayq::contract
