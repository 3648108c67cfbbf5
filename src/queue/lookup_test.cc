#include "queue/lookup.h"

#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using support::at;
using support::ids_of;
using testing::ElementsAre;
using testing::HasSubstr;

class LookupTest : public testing::Test {
 protected:
  Result<std::optional<FoundJob>> find(std::string_view id) {
    return queue_.ask<std::optional<FoundJob>>(
        "find", [&](auto reply) { queue_.queue().find(queue_.now(), id, kAllTopics, std::move(reply)); });
  }
  Result<CancelOutcome> cancel_by_id(std::string_view id) {
    return queue_.ask<CancelOutcome>(
        "cancel_by_id", [&](auto reply) { queue_.queue().cancel_by_id(queue_.now(), id, std::move(reply)); });
  }
  std::vector<Result<RescheduleOutcome>> reschedule_all(std::span<const RescheduleItem> items) {
    return queue_.must<std::vector<Result<RescheduleOutcome>>>(
        "reschedule", [&](auto reply) { queue_.queue().reschedule(queue_.now(), items, std::move(reply)); });
  }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_};
};

TEST_F(LookupTest, GetFindsByTopicAndId) {
  queue_.push({.topic = "t", .id = "a", .body = "hello", .delay = Millis{5}});
  EXPECT_EQ(queue_.get("t", "a")->body, "hello");
  EXPECT_EQ(queue_.get("t", "b"), std::nullopt);
  EXPECT_EQ(queue_.get("u", "a"), std::nullopt);
  const auto refused = queue_.ask<std::optional<FoundJob>>("get", [&](auto reply) {
    queue_.queue().get(queue_.now(), {"t", ""}, std::move(reply));
  });
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(refused.error().op, "get");
}

TEST_F(LookupTest, AnIdAloneIsEnoughWhenItIsLiveInOneTopic) {
  queue_.push({.topic = "t", .id = "a", .body = "hello"});
  EXPECT_EQ(find("a").value()->job.body, "hello");
  EXPECT_EQ(find("a").value()->job.topic, "t");
  EXPECT_FALSE(find("b").value().has_value());
  EXPECT_EQ(find("").error().code, ErrorCode::kInvalid);

  queue_.push({.topic = "u", .id = "a"});
  const Error ambiguous = find("a").error();
  EXPECT_EQ(ambiguous.code, ErrorCode::kConflict);
  EXPECT_THAT(ambiguous.detail, HasSubstr("2 topics"));
  EXPECT_EQ(cancel_by_id("a").error().code, ErrorCode::kConflict);

  EXPECT_EQ(queue_.cancel("t", "a"), CancelOutcome::kCancelled);
  EXPECT_EQ(find("a").value()->job.topic, "u");
}

TEST_F(LookupTest, CancelByIdAlone) {
  queue_.push({.topic = "t", .id = "a"});
  EXPECT_EQ(cancel_by_id("a").value(), CancelOutcome::kCancelled);
  EXPECT_EQ(cancel_by_id("a").value(), CancelOutcome::kUnknown);
  EXPECT_EQ(cancel_by_id("a\n").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(queue_.stats("t").tallies.of(Tally::kCancelled), 1U);
}

TEST_F(LookupTest, CancelTellsTheTruth) {
  queue_.push({.topic = "t", .id = "delayed", .delay = Millis{5}});
  EXPECT_EQ(queue_.cancel("t", "delayed"), CancelOutcome::kCancelled);
  queue_.push({.topic = "t", .id = "ready"});
  EXPECT_EQ(queue_.cancel("t", "ready"), CancelOutcome::kCancelled);
  queue_.push({.topic = "t", .id = "running"});
  const support::Taken running = queue_.pop_one("t");
  EXPECT_EQ(queue_.cancel("t", "running"), CancelOutcome::kReserved);
  EXPECT_TRUE(queue_.ack(running.lease).ok());
  EXPECT_EQ(queue_.cancel("t", "running"), CancelOutcome::kDone);
  queue_.push({.topic = "t", .id = "failed"});
  EXPECT_TRUE(queue_.nack({.lease = queue_.pop_one("t").lease, .dead = true}).ok());
  EXPECT_EQ(queue_.cancel("t", "failed"), CancelOutcome::kDead);
  EXPECT_EQ(queue_.cancel("t", "never seen"), CancelOutcome::kUnknown);
  EXPECT_EQ(queue_.stats("t").tallies.of(Tally::kCancelled), 2U);
}

TEST_F(LookupTest, ABatchOfCancelsAnswersForEach) {
  queue_.push({.topic = "t", .id = "a"});
  queue_.push({.topic = "u", .id = "b"});
  const JobRef jobs[] = {{"t", "a"}, {"no/topic", "a"}, {"t", "a"}, {"u", "b"}, {"nowhere", "x"}};
  const auto results = queue_.must<std::vector<Result<CancelOutcome>>>(
      "cancel", [&](auto reply) { queue_.queue().cancel(queue_.now(), jobs, std::move(reply)); });
  EXPECT_EQ(results[0].value(), CancelOutcome::kCancelled);
  EXPECT_EQ(results[1].error().code, ErrorCode::kInvalid);
  EXPECT_EQ(results[2].value(), CancelOutcome::kUnknown);
  EXPECT_EQ(results[3].value(), CancelOutcome::kCancelled);
  EXPECT_EQ(results[4].value(), CancelOutcome::kUnknown);
  EXPECT_EQ(queue_.stats("u").tallies.of(Tally::kCancelled), 1U);
}

TEST_F(LookupTest, RescheduleMovesAJob) {
  queue_.push({.topic = "t", .id = "a", .delay = Millis{1'000}});
  EXPECT_EQ(queue_.reschedule({.job = {"t", "a"}, .delay = Millis{5}}), RescheduleOutcome::kMoved);
  EXPECT_EQ(queue_.get("t", "a")->due, at(5));
  EXPECT_EQ(queue_.reschedule({.job = {"t", "a"}, .at = at(9'000)}), RescheduleOutcome::kMoved);
  EXPECT_EQ(queue_.get("t", "a")->due, at(9'000));
  EXPECT_EQ(queue_.reschedule({.job = {"t", "a"}, .delay = Millis{0}}), RescheduleOutcome::kMoved);
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kReady) << "run now";
  EXPECT_EQ(queue_.reschedule({.job = {"t", "a"}, .at = at(-9'000)}), RescheduleOutcome::kMoved);
  EXPECT_EQ(queue_.get("t", "a")->due, at(0)) << "the past means now";
  queue_.pop_one("t");
  EXPECT_EQ(queue_.reschedule({.job = {"t", "a"}, .delay = Millis{5}}), RescheduleOutcome::kReserved);
}

TEST_F(LookupTest, RescheduleToNowWakesAWaiter) {
  queue_.push({.topic = "t", .id = "a", .delay = Millis{100'000}});
  const support::PendingPop pop = queue_.begin_pop("t", Millis{30'000});
  queue_.run();
  EXPECT_FALSE(pop.answered());
  queue_.reschedule({.job = {"t", "a"}, .delay = Millis{0}});
  queue_.run();
  EXPECT_THAT(ids_of(pop.jobs()), ElementsAre("a"));
}

TEST_F(LookupTest, ABatchOfReschedulesAnswersForEach) {
  queue_.push({.topic = "t", .id = "a", .delay = Millis{1'000}});
  const RescheduleItem items[] = {{.job = {"t", "a"}},
                                  {.job = {"t", "a"}, .delay = Millis{1}, .at = at(1)},
                                  {.job = {"t", "b"}, .delay = Millis{1}},
                                  {.job = {"t", ""}, .delay = Millis{1}},
                                  {.job = {"t", "a"}, .delay = std::chrono::days{40'000}},
                                  {.job = {"t", "a"}, .at = at(7)}};
  const auto results = reschedule_all(items);
  EXPECT_THAT(results[0].error().detail, HasSubstr("exactly one"));
  EXPECT_THAT(results[1].error().detail, HasSubstr("exactly one"));
  EXPECT_EQ(results[2].value(), RescheduleOutcome::kUnknown);
  EXPECT_THAT(results[3].error().detail, HasSubstr("id"));
  EXPECT_THAT(results[4].error().detail, HasSubstr("delay"));
  EXPECT_EQ(results[5].value(), RescheduleOutcome::kMoved);
  EXPECT_EQ(queue_.get("t", "a")->due, at(7));
}

}  // namespace
}  // namespace delayq
