// Rule 15: after a stop, handed-out jobs can be acked for a grace period, new work is refused, and
// everything is flushed.
#include "tests/contract/queue_contract.h"

namespace delayq::contract {
namespace {

class Rule15Stop : public QueueContract {
 protected:
  void stop(Millis grace) {
    queue_->queue().stop(queue_->now(), grace,
                         [this](Result<StopReport> report) { stopped_ = std::move(report); });
  }

  std::optional<Result<StopReport>> stopped_;
};
DELAYQ_OVER_ALL_ENGINES(Rule15Stop);

TEST_P(Rule15Stop, AtOnceWhenNothingIsOut) {
  queue_->push({.topic = "t", .id = "a", .delay = hours{1}});
  stop(seconds{30});
  queue_->run();
  ASSERT_TRUE(stopped_);
  ASSERT_TRUE(stopped_->ok());
  EXPECT_EQ((*stopped_)->leases_left, 0U);
}

TEST_P(Rule15Stop, TakesNothingNew) {
  reserve("a");
  stop(seconds{30});
  queue_->run();
  const auto pushed = queue_->ask<PushReport>("push", [&](auto reply) {
    const PushRequest job{.topic = "t", .id = "new"};
    queue_->queue().push(queue_->now(), {&job, 1}, std::move(reply));
  });
  EXPECT_EQ(pushed.error().code, ErrorCode::kStopping);
  const PendingPop pop = queue_->begin_pop("t", Millis{0});
  queue_->run();
  EXPECT_EQ(pop.error().code, ErrorCode::kStopping);
  EXPECT_EQ(queue_->get("t", "new"), std::nullopt);
}

TEST_P(Rule15Stop, SendsThoseWhoWaitHome) {
  const PendingPop waiting = queue_->begin_pop("t", hours{1});
  queue_->run();
  stop(seconds{30});
  queue_->run();
  EXPECT_THAT(waiting.jobs(), IsEmpty());
}

TEST_P(Rule15Stop, WaitsForTheAcks) {
  const Taken a = reserve("a");
  const Taken b = reserve("b");
  stop(seconds{30});
  queue_->run_to(at(10'000));
  EXPECT_FALSE(stopped_);
  EXPECT_TRUE(queue_->ack(a.lease).ok());
  queue_->run();
  EXPECT_FALSE(stopped_);
  EXPECT_TRUE(queue_->nack({.lease = b.lease, .reason = "stopping"}).ok());
  queue_->run();
  ASSERT_TRUE(stopped_);
  EXPECT_EQ((*stopped_)->leases_left, 0U);
}

TEST_P(Rule15Stop, NotForLongerThanTheGracePeriod) {
  reserve("a");
  stop(seconds{30});
  queue_->run_to(at(29'999));
  EXPECT_FALSE(stopped_);
  queue_->run_to(at(30'000));
  ASSERT_TRUE(stopped_);
  EXPECT_EQ((*stopped_)->leases_left, 1U);
}

TEST_P(Rule15Stop, EverythingIsThereAfterTheRestart) {
  const Taken held = reserve("held");
  queue_->push({.topic = "t", .id = "delayed", .body = "body", .delay = minutes{5}});
  stop(Millis{0});
  queue_->run();
  ASSERT_TRUE(stopped_);
  restart();
  EXPECT_EQ(queue_->get("t", "delayed")->body, "body");
  EXPECT_TRUE(queue_->ack(held.lease).ok()) << "a consumer need not notice the restart";
  queue_->push({.topic = "t", .id = "new"});
}

// A stop without a grace period: replies that are outstanding never come. Sanitizers check the use of memory.
TEST_P(Rule15Stop, InAHurryLeavesWhatIsNotAnsweredUnanswered) {
  const Taken held = reserve("a");
  queue_->push({.topic = "t", .id = "b", .delay = seconds{1}});
  size_t answers = 0;
  const auto count = [&answers](const auto&) { ++answers; };
  Queue& queue = queue_->queue();
  const Moment later = queue_->now() + seconds{1};
  const PushRequest job{.topic = "t", .id = "c"};
  const AckItem ack{.lease = held.lease};
  const std::string_view topics[] = {"t"};
  queue.pop(later, {.topics = topics, .count = 10}, count);
  queue.push(later, {&job, 1}, count);
  queue.ack(later, {&ack, 1}, count);
  queue.set_settings(later, "t", {.concurrency = 7}, count);
  queue.redrive_all(later, "t", count);
  queue.topics(later, {}, 10, count);
  queue.stop(later, Millis{0}, count);
  queue.tick(later);
  subject_->pump();
  queue_.reset();
  subject_->pump();
  subject_.reset();
  EXPECT_EQ(answers, 0U);
}

}  // namespace
}  // namespace delayq::contract
