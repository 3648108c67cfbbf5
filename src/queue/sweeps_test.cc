#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "queue/lookup.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using support::at;
using support::Taken;

class SweepsTest : public testing::Test {
 protected:
  void push_many(std::string_view topic, size_t count, std::string_view group = {}) {
    PushRequest job{.topic = topic};
    if (!group.empty()) job.group = group;
    const std::vector<PushRequest> jobs(count, job);
    queue_.must<PushReport>("push",
                            [&](auto reply) { queue_.queue().push(queue_.now(), jobs, std::move(reply)); });
  }
  /// Makes all ready jobs of the topic dead.
  void bury_all(std::string_view topic, std::string_view reason) {
    for (;;) {
      const std::vector<Taken> taken = queue_.pop(topic, Limits::kPopJobs);
      if (taken.empty()) return;
      std::vector<NackItem> items;
      for (const Taken& job : taken) items.push_back({.lease = job.lease, .reason = reason, .dead = true});
      queue_.must<std::vector<Result<NackReceipt>>>(
          "nack", [&](auto reply) { queue_.queue().nack(queue_.now(), items, std::move(reply)); });
    }
  }
  Result<uint64_t> redrive_all(std::string_view topic) {
    return queue_.ask<uint64_t>(
        "redrive", [&](auto reply) { queue_.queue().redrive_all(queue_.now(), topic, std::move(reply)); });
  }
  Result<uint64_t> redrive_by_error(std::string_view topic, std::string_view error) {
    return queue_.ask<uint64_t>("redrive", [&](auto reply) {
      queue_.queue().redrive_by_error(queue_.now(), topic, error, std::move(reply));
    });
  }
  Result<uint64_t> redrive(std::string_view topic, std::vector<std::string_view> ids) {
    return queue_.ask<uint64_t>(
        "redrive", [&](auto reply) { queue_.queue().redrive(queue_.now(), topic, ids, std::move(reply)); });
  }
  Result<uint64_t> purge(std::string_view topic, std::optional<JobState> state = {}) {
    return queue_.ask<uint64_t>(
        "purge", [&](auto reply) { queue_.queue().purge(queue_.now(), topic, state, std::move(reply)); });
  }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_};
};

TEST_F(SweepsTest, CancellingAGroupCancelsAllOfItInEveryTopic) {
  queue_.push({.topic = "other", .id = "stays", .group = "other"});
  queue_.push({.topic = "running", .id = "r", .group = "g"});
  const Taken running = queue_.pop_one("running");
  push_many("a", 1'500, "g");
  push_many("b", 600, "g");
  const GroupCancelAnswer answer = queue_.cancel_group("g");
  EXPECT_EQ(answer.cancelled, 2'100U) << "more than one step of the engine";
  EXPECT_EQ(answer.reserved, 1U);
  EXPECT_EQ(queue_.cancel_group("g").cancelled, 0U);
  EXPECT_EQ(queue_.nack({.lease = running.lease})->outcome, NackOutcome::kCancelled);
  EXPECT_EQ(queue_.state_of("other", "stays"), JobState::kReady);
  EXPECT_EQ(queue_.totals().tallies.of(Tally::kCancelled), 2'101U);
}

TEST_F(SweepsTest, AGroupNeedsAName) {
  const auto refused = queue_.ask<GroupCancelAnswer>("cancel_group", [&](auto reply) {
    queue_.queue().cancel_group(queue_.now(), "", kAllTopics, std::move(reply));
  });
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
}

TEST_F(SweepsTest, RedriveAllOfThem) {
  push_many("t", 2'500);
  bury_all("t", "boom");
  EXPECT_EQ(queue_.count("t", JobState::kDead), 2'500U);
  queue_.run_to(at(1'000));
  EXPECT_EQ(redrive_all("t").value(), 2'500U);
  EXPECT_EQ(queue_.count("t", JobState::kReady), 2'500U);
  const Taken again = queue_.pop_one("t");
  EXPECT_EQ(again.job.attempts, 1U) << "a new life";
  EXPECT_EQ(again.job.outcome, "boom") << "but the error is remembered";
  EXPECT_EQ(redrive_all("not a topic").error().code, ErrorCode::kInvalid);
}

TEST_F(SweepsTest, RedriveById) {
  for (const char* id : {"a", "b", "c"}) queue_.push({.topic = "t", .id = id});
  bury_all("t", "boom");
  EXPECT_EQ(redrive("t", {"a", "c", "unknown"}).value(), 2U);
  EXPECT_EQ(queue_.state_of("t", "b"), JobState::kDead);
  EXPECT_EQ(redrive("t", {"a"}).value(), 0U) << "it is not dead any more";
  EXPECT_EQ(redrive("t", {""}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(redrive("", {"a"}).error().code, ErrorCode::kInvalid);
}

TEST_F(SweepsTest, RedriveByErrorFindsTheTwelve) {
  push_many("t", 3'000);
  bury_all("t", "timeout");
  push_many("t", 12);
  bury_all("t", "HTTP 418: I am a teapot");
  EXPECT_EQ(redrive_by_error("t", "teapot").value(), 12U);
  EXPECT_EQ(queue_.count("t", JobState::kReady), 12U);
  EXPECT_EQ(queue_.count("t", JobState::kDead), 3'000U);
  EXPECT_EQ(redrive_by_error("t", "timeout").value(), 3'000U);
  EXPECT_EQ(redrive_by_error("t", "a\x01").error().code, ErrorCode::kInvalid);
}

TEST_F(SweepsTest, PurgeOneStateOrAll) {
  push_many("t", 1'200);
  bury_all("t", "boom");
  queue_.push({.topic = "t", .id = "running"});
  const Taken running = queue_.pop_one("t");
  push_many("t", 2'300);
  queue_.push({.topic = "t", .id = "later", .delay = Millis{5'000}});
  EXPECT_EQ(purge("t", JobState::kDead).value(), 1'200U);
  EXPECT_EQ(queue_.count("t", JobState::kReady), 2'300U);
  EXPECT_EQ(purge("t").value(), 2'302U);
  EXPECT_EQ(queue_.ack(running.lease).error().code, ErrorCode::kStaleLease);
  EXPECT_EQ(engine_.usage().jobs, 0U);
  EXPECT_EQ(purge("bad topic").error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace delayq
