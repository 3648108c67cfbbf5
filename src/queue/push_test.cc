#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using support::at;
using support::kStart;
using testing::HasSubstr;

class Push : public testing::Test {
 protected:
  PushReport push_all(std::span<const PushRequest> jobs) {
    return queue_.must<PushReport>(
        "push", [&](auto reply) { queue_.queue().push(queue_.now(), jobs, std::move(reply)); });
  }

  Error refused(const PushRequest& job) { return queue_.try_push(job).error(); }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_};
};

TEST_F(Push, WithADelayWaitsAndWithoutOneIsReady) {
  const Result<PushReceipt> delayed = queue_.try_push({.topic = "t", .id = "later", .delay = Millis{1'500}});
  EXPECT_EQ(delayed->state, JobState::kDelayed);
  EXPECT_EQ(delayed->due, at(1'500));
  EXPECT_EQ(delayed->outcome, PushOutcome::kCreated);
  EXPECT_EQ(queue_.try_push({.topic = "t", .id = "now"})->state, JobState::kReady);
}

TEST_F(Push, AtAMoment) {
  EXPECT_EQ(queue_.try_push({.topic = "t", .id = "a", .at = at(700)})->due, at(700));
  const Result<PushReceipt> past = queue_.try_push({.topic = "t", .id = "b", .at = at(-700)});
  EXPECT_EQ(past->state, JobState::kReady);
  EXPECT_EQ(past->due, at(-700)) << "it stands in line by the time it was meant for";
}

TEST_F(Push, KeepsEverythingThatWasSaid) {
  queue_.push({.topic = "mail", .id = "x", .group = "g", .body = std::string_view{"a\0b", 3}, .priority = 7});
  const support::SeenJob job = queue_.get("mail", "x").value();
  EXPECT_EQ(job.group, "g");
  EXPECT_EQ(job.body, (std::string{"a\0b", 3}));
  EXPECT_EQ(job.priority, 7U);
  EXPECT_EQ(job.options, "");
  EXPECT_EQ(job.pushed, kStart);
}

TEST_F(Push, WithoutAnIdGetsAUuidThatSortsByTime) {
  const std::string first = queue_.push({.topic = "t"});
  const std::string second = queue_.push({.topic = "t"});
  EXPECT_EQ(first.size(), 36U);
  EXPECT_EQ(first[14], '7') << "version 7";
  EXPECT_LT(first, second);
  EXPECT_TRUE(queue_.get("t", second).has_value());
}

TEST_F(Push, TheTopicsPriorityHoldsWhenTheJobHasNone) {
  queue_.set("t", {.priority = 3});
  queue_.push({.topic = "t", .id = "a"});
  queue_.push({.topic = "t", .id = "b", .priority = 0});
  EXPECT_EQ(queue_.get("t", "a")->priority, 3U);
  EXPECT_EQ(queue_.get("t", "b")->priority, 0U);
}

TEST_F(Push, AnExistingIdIsAConflictUnlessSaidOtherwise) {
  queue_.push({.topic = "t", .id = "a", .body = "old", .delay = Millis{1'000}});
  const Error conflict = refused({.topic = "t", .id = "a"});
  EXPECT_EQ(conflict.code, ErrorCode::kConflict);
  EXPECT_THAT(conflict.detail, HasSubstr("\"a\" is already delayed"));

  const Result<PushReceipt> kept =
      queue_.try_push({.topic = "t", .id = "a", .on_conflict = OnConflict::kKeep});
  EXPECT_EQ(kept->outcome, PushOutcome::kKept);
  EXPECT_EQ(kept->due, at(1'000)) << "of the one that is there";
  const Result<PushReceipt> replaced = queue_.try_push(
      {.topic = "t", .id = "a", .body = "new", .delay = Millis{9}, .on_conflict = OnConflict::kReplace});
  EXPECT_EQ(replaced->outcome, PushOutcome::kReplaced);
  EXPECT_EQ(queue_.get("t", "a")->body, "new");
  EXPECT_EQ(queue_.stats("t").tallies.of(Tally::kPushed), 2U) << "neither the conflict nor the kept one";
}

TEST_F(Push, AnIdMayBeHeldUniqueAcrossTopics) {
  queue_.push({.topic = "one", .id = "a"});
  EXPECT_TRUE(queue_.try_push({.topic = "two", .id = "a"}).ok());
  EXPECT_EQ(refused({.topic = "three", .id = "a", .unique_across_topics = true}).code, ErrorCode::kConflict);
}

TEST_F(Push, AnInvalidItemDoesNotStopTheOthers) {
  const PushRequest jobs[] = {
      {.topic = "t", .id = "good 1"},
      {.topic = "not a topic", .id = "x"},
      {.topic = "t", .id = ""},
      {.topic = "t", .id = "good 2"},
      {.topic = "t", .id = "good 1"},
      {.topic = "u", .id = "good 3"},
      {.topic = "t", .id = "late", .delay = Millis{-1}},
  };
  const PushReport report = push_all(jobs);
  ASSERT_EQ(report.jobs.size(), 7U);
  EXPECT_EQ(report.jobs[0]->id, "good 1");
  EXPECT_THAT(report.jobs[1].error().detail, HasSubstr("topic"));
  EXPECT_THAT(report.jobs[2].error().detail, HasSubstr("id"));
  EXPECT_EQ(report.jobs[3]->id, "good 2");
  EXPECT_EQ(report.jobs[4].error().code, ErrorCode::kConflict) << "with the one in the same batch";
  EXPECT_EQ(report.jobs[5]->id, "good 3");
  EXPECT_THAT(report.jobs[6].error().detail, HasSubstr("delay"));
  EXPECT_EQ(report.jobs[6].error().op, "push");
  EXPECT_EQ(queue_.totals().counts.of(JobState::kReady), 3U);
  EXPECT_EQ(queue_.stats("t").tallies.of(Tally::kPushed), 2U);
  EXPECT_EQ(queue_.stats("u").tallies.of(Tally::kPushed), 1U);
}

TEST_F(Push, LimitsNameTheFieldAndNothingIsStored) {
  const std::string long_id(256, 'i');
  const std::string big(size_t{2} << 20, 'b');
  const std::pair<PushRequest, const char*> cases[] = {
      {{.topic = ""}, "topic"},
      {{.topic = "a/b"}, "topic"},
      {{.topic = "*"}, "topic"},
      {{.topic = "t", .id = long_id}, "id"},
      {{.topic = "t", .id = "a\nb"}, "id"},
      {{.topic = "t", .group = ""}, "group"},
      {{.topic = "t", .body = big}, "body"},
      {{.topic = "t", .delay = std::chrono::days{40'000}}, "delay"},
      {{.topic = "t", .at = kStart + std::chrono::days{40'000}}, "at"},
      {{.topic = "t", .delay = Millis{1}, .at = kStart}, "delay and at"},
      {{.topic = "t", .options = {.attempts = 5'000'000}}, "attempts"},
      {{.topic = "t", .options = {.lease = Millis{5}}}, "lease"},
      {{.topic = "t", .options = {.callback = "a\rb"}}, "callback"},
  };
  for (const auto& [request, field] : cases) {
    const Error error = refused(request);
    EXPECT_EQ(error.code, request.body.empty() ? ErrorCode::kInvalid : ErrorCode::kTooLarge) << field;
    EXPECT_THAT(error.detail, testing::StartsWith(field));
  }
  EXPECT_EQ(engine_.usage().jobs, 0U);
}

TEST_F(Push, ABatchHasABound) {
  const std::vector<PushRequest> jobs(Limits::kBatchJobs + 1, PushRequest{.topic = "t"});
  const Result<PushReport> report = queue_.ask<PushReport>(
      "push", [&](auto reply) { queue_.queue().push(queue_.now(), jobs, std::move(reply)); });
  EXPECT_EQ(report.error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(push_all({}).jobs.size(), 0U);
  EXPECT_EQ(push_all(std::span{jobs}.first(Limits::kBatchJobs)).jobs.size(), Limits::kBatchJobs);
}

}  // namespace
}  // namespace delayq
