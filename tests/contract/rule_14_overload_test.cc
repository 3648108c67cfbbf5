// Rule 14: above its bounds a queue replies `overloaded` and when to retry; verbs that free room still work.
#include "tests/contract/queue_contract.h"

namespace delayq::contract {
namespace {

class Rule14Overload : public QueueContract {
 protected:
  static void expect_overloaded(const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::kOverloaded) << to_string(error);
    EXPECT_GT(error.retry_after, Millis{0});
    EXPECT_NE(error.detail, "");
  }
  /// The figures of engines with remote storage may be a second old.
  void let_figures_come() { queue_->run_to(queue_->now() + seconds{1}); }
};
DELAYQ_OVER_ALL_ENGINES(Rule14Overload);

TEST_P(Rule14Overload, TooManyJobs) {
  QueueConfig config;
  config.jobs = 10;
  config.defaults.keep_done = Retention{};
  restart(config);
  for (int i = 0; i < 10; ++i) queue_->push({.topic = "t", .id = std::to_string(i)});
  let_figures_come();
  expect_overloaded(refused({.topic = "t", .id = "one too many"}));
  EXPECT_EQ(queue_->get("t", "one too many"), std::nullopt);

  EXPECT_TRUE(queue_->ack(queue_->pop_one("t").lease).ok());
  EXPECT_EQ(queue_->cancel("t", "5"), CancelOutcome::kCancelled);
  let_figures_come();
  queue_->push({.topic = "t", .id = "a"});
  queue_->push({.topic = "t", .id = "b"});
  let_figures_come();
  expect_overloaded(refused({.topic = "t", .id = "c"}));
}

TEST_P(Rule14Overload, WithTooManyJobsThoseThatAreThereCanBeReplaced) {
  QueueConfig config;
  config.jobs = 3;
  restart(config);
  queue_->push({.topic = "t", .id = "done"});
  ASSERT_TRUE(queue_->ack(queue_->pop_one("t").lease).ok());
  queue_->push({.topic = "t", .id = "a", .body = "old", .delay = hours{1}});
  queue_->push({.topic = "t", .id = "b", .delay = hours{1}});
  let_figures_come();
  expect_overloaded(refused({.topic = "t", .body = "without an id"}));
  for (const OnConflict policy : {OnConflict::kReject, OnConflict::kReplace, OnConflict::kKeep}) {
    expect_overloaded(refused({.topic = "t", .id = "new", .on_conflict = policy}));
    expect_overloaded(refused({.topic = "u", .id = "a", .on_conflict = policy}));
  }
  const auto replaced = queue_->try_push(
      {.topic = "t", .id = "a", .body = "new", .delay = hours{2}, .on_conflict = OnConflict::kReplace});
  ASSERT_TRUE(replaced.ok());
  EXPECT_EQ(replaced->outcome, PushOutcome::kReplaced);
  EXPECT_EQ(queue_->get("t", "a")->body, "new");
  const auto kept = queue_->try_push({.topic = "t", .id = "a", .on_conflict = OnConflict::kKeep});
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->outcome, PushOutcome::kKept);
  EXPECT_EQ(refused({.topic = "t", .id = "b"}).code, ErrorCode::kConflict);
  const auto supersedes = queue_->try_push({.topic = "t", .id = "done", .delay = hours{1}});
  ASSERT_TRUE(supersedes.ok()) << "a kept job makes room";
  let_figures_come();
  EXPECT_EQ(queue_->totals().usage.jobs, 3U);
}

TEST_P(Rule14Overload, TooManyBytesUnderWay) {
  QueueConfig config;
  config.unanswered_bytes = 100'000;
  restart(config);
  const std::string body(30'000, 'x');
  const std::vector<PushRequest> jobs(8, PushRequest{.topic = "t", .body = body});
  size_t answers = 0;
  size_t refusals = 0;
  for (const PushRequest& job : jobs) {
    queue_->queue().push(queue_->now(), {&job, 1}, [&](Result<PushReport> report) {
      ++answers;
      if (report->jobs.at(0).ok()) return;
      ++refusals;
      expect_overloaded(report->jobs.at(0).error());
    });
  }
  queue_->run();
  EXPECT_EQ(answers, 8U);
  EXPECT_EQ(refusals, 5U) << "three fit";
  queue_->push({.topic = "t", .body = body});
}

TEST_P(Rule14Overload, TooManyTopics) {
  QueueConfig config;
  config.limits.topics = 3;
  restart(config);
  for (const char* topic : {"a", "b", "c"}) queue_->push({.topic = topic});
  expect_overloaded(refused({.topic = "d"}));
  queue_->push({.topic = "a"});
}

TEST_P(Rule14Overload, TooManyWaiters) {
  QueueConfig config;
  config.limits.waiters = 2;
  restart(config);
  const PendingPop one = queue_->begin_pop("t", seconds{30});
  const PendingPop two = queue_->begin_pop("t", seconds{30});
  const PendingPop three = queue_->begin_pop("t", seconds{30});
  queue_->run();
  EXPECT_FALSE(one.answered());
  EXPECT_FALSE(two.answered());
  ASSERT_TRUE(three.answered());
  expect_overloaded(three.error());
}

TEST_P(Rule14Overload, TooMuchMemory) {
  QueueConfig config;
  config.memory_bytes = 1;
  queue_->push({.topic = "t", .id = "a"});
  restart(config);
  let_figures_come();
  expect_overloaded(refused({.topic = "t", .id = "b"}));
  EXPECT_TRUE(queue_->ack(queue_->pop_one("t").lease).ok()) << "what frees room goes on";
}

}  // namespace
}  // namespace delayq::contract
