// Rule 8: attempts and backoff are set per topic and can be overridden per job; after the last attempt the
// job is dead and has its last error.
#include <algorithm>

#include "tests/contract/queue_contract.h"

namespace delayq::contract {
namespace {

class Rule08Retry : public QueueContract {
 protected:
  /// Makes the topic's only job fail until it is dead, or `most` times, and moves the clock to each retry.
  /// Returns the delay of each retry.
  std::vector<Millis> fail_until_dead(int most) {
    std::vector<Millis> delays;
    for (int failures = 0; failures < most; ++failures) {
      const Taken taken = queue_->pop_one("t");
      const Result<NackReceipt> receipt =
          queue_->nack({.lease = taken.lease, .reason = "failure " + std::to_string(failures + 1)});
      if (receipt->outcome == NackOutcome::kDead) return delays;
      delays.push_back(receipt->retry_at.value() - queue_->now());
      queue_->run_to(*receipt->retry_at);
    }
    return delays;
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule08Retry);

TEST_P(Rule08Retry, SixteenAttemptsByDefault) {
  queue_->push({.topic = "t", .id = "a"});
  EXPECT_THAT(fail_until_dead(100), SizeIs(15));
  const std::optional<SeenJob> job = queue_->get("t", "a");
  EXPECT_EQ(job->state, JobState::kDead);
  EXPECT_EQ(job->attempts, 16U);
  EXPECT_EQ(job->outcome, "failure 16");
}

TEST_P(Rule08Retry, AListOfDelaysWhoseLastRepeats) {
  queue_->set("t", {.attempts = 6, .backoff = parse_backoff("10s,1m,10m").value()});
  queue_->push({.topic = "t", .id = "a"});
  EXPECT_THAT(fail_until_dead(100),
              ElementsAre(seconds{10}, minutes{1}, minutes{10}, minutes{10}, minutes{10}));
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kDead);
}

TEST_P(Rule08Retry, AFixedDelay) {
  queue_->set("t", {.attempts = 4, .backoff = parse_backoff("30s").value()});
  queue_->push({.topic = "t", .id = "a"});
  EXPECT_THAT(fail_until_dead(100), ElementsAre(seconds{30}, seconds{30}, seconds{30}));
}

TEST_P(Rule08Retry, ExponentialWithACap) {
  queue_->set("t", {.attempts = 7, .backoff = ExponentialBackoff{seconds{1}, 2, seconds{10}, 0}});
  queue_->push({.topic = "t", .id = "a"});
  EXPECT_THAT(fail_until_dead(100),
              ElementsAre(seconds{1}, seconds{2}, seconds{4}, seconds{8}, seconds{10}, seconds{10}));
}

TEST_P(Rule08Retry, JitterSpreadsAndNeverExceeds) {
  queue_->set("t", {.attempts = 0, .backoff = ExponentialBackoff{seconds{100}, 1, seconds{100}, 0.5}});
  queue_->push({.topic = "t", .id = "a"});
  const std::vector<Millis> delays = fail_until_dead(40);
  EXPECT_GE(*std::min_element(delays.begin(), delays.end()), seconds{50});
  EXPECT_LE(*std::max_element(delays.begin(), delays.end()), seconds{100});
  EXPECT_NE(*std::min_element(delays.begin(), delays.end()), *std::max_element(delays.begin(), delays.end()));
}

TEST_P(Rule08Retry, ZeroAttemptsIsNoLimit) {
  queue_->set("t", {.attempts = 0, .backoff = StepBackoff{{Millis{1}}}});
  queue_->push({.topic = "t", .id = "a"});
  EXPECT_THAT(fail_until_dead(200), SizeIs(200));
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kReady);
}

TEST_P(Rule08Retry, AJobsOwnPolicyGoesBeforeItsTopics) {
  queue_->set("t", {.attempts = 9, .backoff = parse_backoff("1h").value()});
  queue_->push({.topic = "t", .id = "a", .options = {.attempts = 2, .backoff = parse_backoff("5s").value()}});
  EXPECT_THAT(fail_until_dead(100), ElementsAre(seconds{5}));
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kDead);
}

TEST_P(Rule08Retry, ATopicsPolicyGoesBeforeTheDefaults) {
  queue_->set("*", {.attempts = 3, .backoff = parse_backoff("7s").value()});
  queue_->push({.topic = "t", .id = "a"});
  EXPECT_THAT(fail_until_dead(100), ElementsAre(seconds{7}, seconds{7}));
  queue_->set("t", {.attempts = 2});
  queue_->push({.topic = "t", .id = "b"});
  EXPECT_THAT(fail_until_dead(100), ElementsAre(seconds{7}))
      << "attempts are the topic's, backoff the default's";
}

TEST_P(Rule08Retry, NackMayGiveItsOwnDelay) {
  queue_->set("t", {.attempts = 2, .backoff = parse_backoff("1h").value()});
  const Taken taken = reserve("a");
  EXPECT_EQ(queue_->nack({.lease = taken.lease, .delay = Millis{250}})->retry_at, at(250));
  queue_->run_to(at(249));
  EXPECT_THAT(queue_->pop("t"), IsEmpty());
  queue_->run_to(at(250));
  const Taken last = queue_->pop_one("t");
  EXPECT_EQ(queue_->nack({.lease = last.lease, .delay = Millis{250}})->outcome, NackOutcome::kDead)
      << "the attempts count all the same";
}

TEST_P(Rule08Retry, NackWithoutDelayRunsAgainAtOnce) {
  const Taken taken = reserve("a");
  EXPECT_EQ(queue_->nack({.lease = taken.lease, .delay = Millis{0}})->retry_at, at(0));
  EXPECT_EQ(queue_->pop_one("t").job.attempts, 2U);
}

TEST_P(Rule08Retry, NackMayGiveUp) {
  const Taken taken = reserve("a");
  EXPECT_EQ(queue_->nack({.lease = taken.lease, .reason = "hopeless", .dead = true})->outcome,
            NackOutcome::kDead);
  EXPECT_EQ(queue_->get("t", "a")->outcome, "hopeless");
}

TEST_P(Rule08Retry, LeasesThatRunOutUseUpAttemptsToo) {
  queue_->set("t", {.attempts = 2, .backoff = StepBackoff{{seconds{10}}}, .lease = seconds{1}});
  reserve("a");
  queue_->run_to(at(1'000));
  EXPECT_EQ(queue_->get("t", "a")->due, at(11'000));
  queue_->run_to(at(11'000));
  queue_->pop_one("t");
  queue_->run_to(at(12'000));
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kDead);
  EXPECT_NE(queue_->get("t", "a")->outcome, "");
}

TEST_P(Rule08Retry, ARedrivenJobHasAllItsAttemptsAgain) {
  queue_->set("t", {.attempts = 3, .backoff = StepBackoff{{seconds{1}}}});
  queue_->push({.topic = "t", .id = "a"});
  fail_until_dead(100);
  const auto redriven = queue_->must<uint64_t>(
      "redrive_all", [&](auto reply) { queue_->queue().redrive_all(queue_->now(), "t", std::move(reply)); });
  EXPECT_EQ(redriven, 1U);
  EXPECT_THAT(fail_until_dead(100), SizeIs(2));
}

TEST_P(Rule08Retry, ThePolicyOutlivesARestart) {
  queue_->set("t", {.attempts = 2, .backoff = parse_backoff("5s").value()});
  queue_->push({.topic = "t", .id = "a", .options = {.backoff = parse_backoff("6s").value()}});
  restart();
  EXPECT_THAT(fail_until_dead(100), ElementsAre(seconds{6}));
}

}  // namespace
}  // namespace delayq::contract
