#include "queue/admission.h"

#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "tests/support/forwarding_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using support::Taken;
using testing::HasSubstr;

/// Reports the usage that the test sets, and can delay the answers to pushes.
class LoadedEngine final : public support::ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;
  EngineUsage usage() const override {
    EngineUsage usage = ForwardingEngine::usage();
    if (disk_free) usage.disk_free = *disk_free;
    usage.lacks_room = lacks_room;
    if (memory_bytes) usage.memory_bytes = *memory_bytes;
    return usage;
  }
  void push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) override {
    ForwardingEngine::push(
        now, jobs, [this, reply = std::move(reply)](Result<std::vector<PushAnswer>> answer) mutable {
          if (!hold) return reply(std::move(answer));
          held.push_back(
              [reply = std::move(reply), answer = std::move(answer)]() mutable { reply(std::move(answer)); });
        });
  }
  bool poll(EngineListener& listener) override {
    const bool any = ForwardingEngine::poll(listener);
    if (hold) return any;
    auto ready = std::exchange(held, {});
    for (auto& give : ready) give();
    return any || !ready.empty();
  }
  std::optional<uint64_t> disk_free;
  bool lacks_room = false;
  std::optional<uint64_t> memory_bytes;
  bool hold = false;
  std::vector<absl::AnyInvocable<void()>> held;
};

class Overload : public testing::Test {
 protected:
  static QueueConfig config() {
    QueueConfig config;
    config.unanswered_bytes = 1'000;
    config.jobs = 5;
    config.memory_bytes = 1'000'000;
    config.disk_free_bytes = 5'000;
    config.limits.topics = 3;
    return config;
  }
  Error refused(const PushRequest& job) { return queue_.try_push(job).error(); }

  MemoryEngine memory_;
  LoadedEngine engine_{memory_};
  support::QueueDriver queue_{engine_, config()};
};

TEST_F(Overload, TooManyJobs) {
  const std::vector<PushRequest> jobs(7, PushRequest{.topic = "t"});
  const auto report = queue_.must<PushReport>(
      "push", [&](auto reply) { queue_.queue().push(queue_.now(), jobs, std::move(reply)); });
  EXPECT_TRUE(report.jobs[4].ok());
  EXPECT_EQ(report.jobs[5].error().code, ErrorCode::kOverloaded) << "also within one batch";
  EXPECT_THAT(report.jobs[6].error().detail, HasSubstr("5 jobs"));
  EXPECT_GT(report.jobs[6].error().retry_after, Millis{0});

  // Verbs that free room still work, and afterwards there is room.
  const Taken taken = queue_.pop_one("t");
  queue_.set("t", {.keep_done = Retention{}});
  EXPECT_TRUE(queue_.ack(taken.lease).ok());
  EXPECT_TRUE(queue_.try_push({.topic = "t"}).ok());
  EXPECT_FALSE(queue_.try_push({.topic = "t"}).ok());
}

TEST_F(Overload, TooLittleDisk) {
  queue_.push({.topic = "t", .id = "a"});
  engine_.disk_free = 4'999;
  const Error error = refused({.topic = "t"});
  EXPECT_EQ(error.code, ErrorCode::kDiskFull);
  EXPECT_THAT(error.detail, HasSubstr("4999 bytes are free"));
  EXPECT_GT(error.retry_after, Millis{0});
  const auto ready = [&](auto reply) { queue_.queue().ready(queue_.now(), std::move(reply)); };
  EXPECT_EQ(queue_.ask<void>("ready", ready).error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(queue_.cancel("t", "a"), CancelOutcome::kCancelled);
  engine_.disk_free = 5'000;
  engine_.lacks_room = true;
  EXPECT_EQ(refused({.topic = "t"}).code, ErrorCode::kDiskFull);
  EXPECT_EQ(queue_.ask<void>("ready", ready).error().code, ErrorCode::kDiskFull) << "at once";
  engine_.lacks_room = false;
  EXPECT_TRUE(queue_.ask<void>("ready", ready).ok());
  EXPECT_TRUE(queue_.try_push({.topic = "t"}).ok());
}

TEST_F(Overload, TooMuchMemory) {
  engine_.memory_bytes = 1'000'000;
  EXPECT_EQ(refused({.topic = "t"}).code, ErrorCode::kOverloaded);
  engine_.memory_bytes = 999'999;
  EXPECT_TRUE(queue_.try_push({.topic = "t"}).ok());
}

TEST_F(Overload, TooManyUnansweredBytes) {
  const std::string body(600, 'x');
  std::vector<Result<PushReport>> answers;
  const auto push = [&](std::string_view bytes) {
    const PushRequest job{.topic = "t", .body = bytes};
    queue_.queue().push(queue_.now(), {&job, 1},
                        [&](Result<PushReport> report) { answers.push_back(std::move(report)); });
    queue_.run();
  };
  engine_.hold = true;
  const std::string huge(5'000, 'x');
  push(huge);
  EXPECT_TRUE(answers.empty()) << "alone, even a huge one may pass";
  push(body);
  ASSERT_EQ(answers.size(), 1U) << "refused at once";
  EXPECT_EQ(answers[0]->jobs[0].error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(queue_.totals().unanswered_bytes, 5'001U);
  engine_.hold = false;
  queue_.run();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_TRUE(answers[1]->jobs[0].ok());
  EXPECT_EQ(queue_.totals().unanswered_bytes, 0U);
  push(body);
  EXPECT_TRUE(answers.back()->jobs[0].ok());
}

TEST_F(Overload, TooManyTopics) {
  for (const char* topic : {"a", "b", "c"}) queue_.push({.topic = topic});
  EXPECT_EQ(refused({.topic = "d"}).code, ErrorCode::kOverloaded);
  EXPECT_TRUE(queue_.try_push({.topic = "a"}).ok()) << "an old topic is none too many";
  const support::PendingPop pop = queue_.begin_pop("d", Millis{100});
  queue_.run();
  EXPECT_EQ(pop.error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(queue_.totals().waiters, 0U);
}

TEST_F(Overload, TopicsThatHaveJobsAreKnownAfterARestart) {
  for (const char* topic : {"a", "b", "c"}) queue_.push({.topic = topic});
  support::QueueDriver restarted{engine_, config()};
  EXPECT_EQ(restarted.try_push({.topic = "d"}).error().code, ErrorCode::kOverloaded);
  EXPECT_TRUE(restarted.try_push({.topic = "c"}).ok());
}

}  // namespace
}  // namespace delayq
