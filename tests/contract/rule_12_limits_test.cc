// Rule 12: a value over its limit is an error that names the field, and nothing is stored; up to the
// limit everything works.
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
