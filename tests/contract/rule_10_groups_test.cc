// Rule 10: cancelling a group cancels all its waiting jobs at once, in all topics.
#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

class Rule10Groups : public EngineContract {};
DELAYQ_OVER_ALL_ENGINES(Rule10Groups);

TEST_P(Rule10Groups, FourJobsAndOneCancel) {
  constexpr int64_t kDay = 86'400'000;
  for (const int64_t day : {23, 28, 29}) {
    engine_.push(
        JobSpec("remind", "file 1 day " + std::to_string(day)).due_at(at(day * kDay)).in_group("file 1"));
  }
  engine_.push(JobSpec("delete", "file 1").due_at(at(30 * kDay)).in_group("file 1"));
  engine_.push(JobSpec("delete", "file 2").due_at(at(30 * kDay)).in_group("file 2"));
  engine_.push(JobSpec("delete", "file 3").due_at(at(30 * kDay)));
  const GroupCancelAnswer answer = engine_.cancel_group("file 1");
  EXPECT_EQ(answer.cancelled, 4U);
  EXPECT_EQ(answer.reserved, 0U);
  EXPECT_THAT(engine_.topic_names(), ElementsAre("delete"));
  EXPECT_THAT(engine_.ids_in("delete", JobState::kDelayed), lists_delayed({"file 2", "file 3"}));
}

TEST_P(Rule10Groups, ReadyOnesAreWaitingToo) {
  engine_.push_all({JobSpec("t", "a").in_group("g"), JobSpec("t", "b").due_at(at(5)).in_group("g")});
  EXPECT_EQ(engine_.cancel_group("g").cancelled, 2U);
  EXPECT_THAT(engine_.take("t", 9), IsEmpty());
}

TEST_P(Rule10Groups, RunningOnesAreNotRetried) {
  engine_.push_all(
      {JobSpec("t", "a").in_group("g"), JobSpec("u", "b").in_group("g"), JobSpec("u", "c").in_group("g")});
  const Taken a = engine_.take_one("t");
  const Taken b = engine_.take_one("u");
  const GroupCancelAnswer answer = engine_.cancel_group("g");
  EXPECT_EQ(answer.cancelled, 1U);
  EXPECT_EQ(answer.reserved, 2U);
  EXPECT_TRUE(engine_.get("t", "a")->cancel_requested);
  EXPECT_EQ(engine_.retry(a, at(0)), NackOutcome::kCancelled);
  EXPECT_EQ(engine_.ack(b), AckOutcome::kAcked);
}

TEST_P(Rule10Groups, ARunningOneIsMetOnce) {
  engine_.push_all({JobSpec("t", "a").in_group("g"), JobSpec("t", "b").in_group("g")});
  engine_.take("t", 1);
  EXPECT_EQ(engine_.cancel("t", "a"), CancelOutcome::kReserved);
  const GroupCancelAnswer first = engine_.cancel_group("g");
  EXPECT_EQ(first.cancelled, 1U);
  EXPECT_EQ(first.reserved, 0U);
  const GroupCancelAnswer second = engine_.cancel_group("g");
  EXPECT_EQ(second.cancelled + second.reserved, 0U) << "or a loop over a large group would not end";
}

TEST_P(Rule10Groups, OnlyInTheTopicsThatAreMeant) {
  for (const char* topic : {"order", "order.paid", "orders", "bill"}) {
    engine_.push(JobSpec(topic, "running").in_group("g"));
    engine_.take_one(topic);
    engine_.push_all(
        {JobSpec(topic, "waiting").in_group("g"), JobSpec(topic, "later").due_at(at(1'000)).in_group("g")});
  }
  const std::vector<std::string> nobodys;
  EXPECT_EQ(engine_.cancel_group("g", 100, nobodys).cancelled, 0U);
  const std::vector<std::string> mine{"order", "order.*", "nothing"};
  const GroupCancelAnswer answer = engine_.cancel_group("g", 100, mine);
  EXPECT_EQ(answer.cancelled, 4U);
  EXPECT_EQ(answer.reserved, 2U);
  EXPECT_THAT(answer.cancelled_by_topic,
              UnorderedElementsAre(testing::Pair("order", 2U), testing::Pair("order.paid", 2U)));
  EXPECT_EQ(engine_.get("order", "waiting"), std::nullopt);
  EXPECT_FALSE(engine_.get("bill", "running")->cancel_requested);
  EXPECT_EQ(engine_.get("bill", "waiting")->state, JobState::kReady);
  EXPECT_EQ(engine_.get("orders", "later")->state, JobState::kDelayed);
  EXPECT_EQ(engine_.cancel_group("g").cancelled, 4U) << "the others are still in the group";
}

TEST_P(Rule10Groups, ALargeGroupGoesInStepsPastWhatStays) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 600; ++i)
    jobs.push_back(
        JobSpec(i % 3 == 0 ? "mine" : "theirs", std::to_string(i)).due_at(at(1'000)).in_group("g"));
  engine_.push_all(jobs);
  const std::vector<std::string> mine{"mine"};
  std::string cursor;
  uint64_t cancelled = 0;
  for (int calls = 0; calls < 100; ++calls) {
    const GroupCancelAnswer step = engine_.cancel_of_group({"g", mine, 70, cursor});
    ASSERT_LE(step.cancelled, 70U);
    cancelled += step.cancelled;
    cursor = step.cursor;
    if (cursor.empty()) break;
  }
  EXPECT_EQ(cursor, "");
  EXPECT_EQ(cancelled, 200U);
  EXPECT_EQ(engine_.counts("theirs").of(JobState::kDelayed), 400U);
}

/// A call looks at fewer jobs than the other topics have here. If each call passed over the same jobs again,
/// the walk would never come to those that are meant.
TEST_P(Rule10Groups, AStepDoesNotPassOverTheSameJobsAgain) {
  constexpr uint64_t kMine = 1'000;
  std::vector<JobSpec> jobs;
  const auto add = [&](std::string_view topic, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i)
      jobs.push_back(JobSpec(std::string(topic), std::to_string(i)).due_at(at(1'000)).in_group("g"));
  };
  // Whichever end a walk begins at, jobs of other topics come first.
  add("theirs", 5'000);
  add("mine", kMine);
  add("others", 5'000);
  engine_.push_all(jobs);
  const std::vector<std::string> mine{"mine"};
  std::string cursor;
  uint64_t cancelled = 0;
  uint64_t calls = 0;
  do {
    const GroupCancelAnswer step = engine_.cancel_of_group({"g", mine, 10, cursor});
    cancelled += step.cancelled;
    cursor = step.cursor;
    ASSERT_LE(++calls, 200U);
  } while (!cursor.empty());
  EXPECT_EQ(cancelled, kMine);
  EXPECT_EQ(engine_.counts("theirs").of(JobState::kDelayed), 5'000U);
  EXPECT_EQ(engine_.counts("others").of(JobState::kDelayed), 5'000U);
}

TEST_P(Rule10Groups, AWalkGoesOnWhenTheJobsWhereItStoppedAreGone) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 300; ++i)
    jobs.push_back(
        JobSpec(i % 2 == 0 ? "mine" : "theirs", std::to_string(i)).due_at(at(1'000)).in_group("g"));
  engine_.push_all(jobs);
  const std::vector<std::string> mine{"mine"};
  const GroupCancelAnswer first = engine_.cancel_of_group({"g", mine, 50});
  ASSERT_EQ(first.cancelled, 50U);
  ASSERT_NE(first.cursor, "");
  // All of the other topic, and half of what is left of this one.
  engine_.purge("theirs", JobState::kDelayed);
  uint64_t others = 0;
  for (int i = 0; i < 300; i += 4)
    others += engine_.cancel("mine", std::to_string(i)) == CancelOutcome::kCancelled ? 1 : 0;
  uint64_t rest = 0;
  std::string cursor = first.cursor;
  while (!cursor.empty()) {
    const GroupCancelAnswer step = engine_.cancel_of_group({"g", mine, 50, cursor});
    rest += step.cancelled;
    cursor = step.cursor;
  }
  EXPECT_EQ(50 + others + rest, 150U);
  EXPECT_EQ(engine_.usage().jobs, 0U);
}

/// Cursors are bounded in number: the oldest walks start again.
TEST_P(Rule10Groups, ManyWalksAtOnce) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 400; ++i)
    jobs.push_back(JobSpec("t", std::to_string(i)).due_at(at(1'000)).in_group("g"));
  engine_.push_all(jobs);
  std::vector<std::string> cursors(100);
  uint64_t cancelled = 0;
  for (std::string& cursor : cursors) {
    const GroupCancelAnswer step = engine_.cancel_of_group({"g", kAllTopics, 1});
    cancelled += step.cancelled;
    cursor = step.cursor;
  }
  ASSERT_EQ(cancelled, 100U);
  for (const std::string& cursor : cursors) {
    const GroupCancelAnswer step = engine_.cancel_of_group({"g", kAllTopics, 1, cursor});
    cancelled += step.cancelled;
  }
  for (const std::string_view nonsense : {"x", "1", "99999999999999999999", "0:0,1:", "7", ":", "-1"})
    cancelled += engine_.cancel_of_group({"g", kAllTopics, 1, nonsense}).cancelled;
  cancelled += engine_.cancel_group("g").cancelled;
  EXPECT_EQ(cancelled, 400U);
}

TEST_P(Rule10Groups, WhatIsOverIsNotTouched) {
  engine_.push_all({JobSpec("t", "done").in_group("g"), JobSpec("t", "dead").in_group("g")});
  engine_.ack(engine_.take_one("t"));
  engine_.bury(engine_.take_one("t"));
  const GroupCancelAnswer answer = engine_.cancel_group("g");
  EXPECT_EQ(answer.cancelled + answer.reserved, 0U);
  EXPECT_EQ(engine_.state_of("t", "done"), JobState::kDone);
  EXPECT_EQ(engine_.state_of("t", "dead"), JobState::kDead);
}

TEST_P(Rule10Groups, ARedrivenJobIsInItsGroupAgain) {
  engine_.push_all({JobSpec("t", "a").in_group("g"), JobSpec("t", "b").in_group("g")});
  engine_.bury(engine_.take_one("t"));
  engine_.bury(engine_.take_one("t"));
  engine_.redrive("t", {"a"});
  engine_.reschedule("t", "b", at(100));
  EXPECT_EQ(engine_.get("t", "a")->group, "g");
  EXPECT_EQ(engine_.cancel_group("g").cancelled, 2U);
}

TEST_P(Rule10Groups, ARetriedJobStaysInItsGroup) {
  engine_.push(JobSpec("t", "a").in_group("g"));
  engine_.retry(engine_.take_one("t"), at(100));
  EXPECT_EQ(engine_.cancel_group("g").cancelled, 1U);
}

TEST_P(Rule10Groups, UnknownAndEmptyNames) {
  engine_.push(JobSpec("t", "no group").due_at(at(5)));
  EXPECT_EQ(engine_.cancel_group("nobody").cancelled, 0U);
  EXPECT_EQ(engine_.cancel_group("").cancelled, 0U) << "no group is not a group";
  EXPECT_EQ(engine_.state_of("t", "no group"), JobState::kDelayed);
}

TEST_P(Rule10Groups, NamesAreBytes) {
  const std::vector<std::string> names{"g", "G", "gg", std::string("g\0", 2), std::string(255, 'g')};
  for (const std::string& name : names) engine_.push(JobSpec("t", name).due_at(at(5)).in_group(name));
  for (const std::string& name : names) {
    EXPECT_EQ(engine_.get("t", name)->group, name);
    EXPECT_EQ(engine_.cancel_group(name).cancelled, 1U) << support::brief(name);
  }
}

TEST_P(Rule10Groups, LargeGroupsInSteps) {
  constexpr uint32_t kStep = 700;
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 5'000; ++i) {
    jobs.push_back(JobSpec("t" + std::to_string(i % 10), std::to_string(i)).due_at(at(i % 3)).in_group("g"));
  }
  engine_.push_all(jobs);
  engine_.take("t0", 100);
  uint64_t cancelled = 0;
  uint64_t reserved = 0;
  std::string cursor;
  for (int calls = 0; calls < 100; ++calls) {
    const GroupCancelAnswer answer = engine_.cancel_of_group({"g", kAllTopics, kStep, cursor});
    ASSERT_LE(answer.cancelled + answer.reserved, kStep);
    cancelled += answer.cancelled;
    reserved += answer.reserved;
    cursor = answer.cursor;
    if (cursor.empty()) break;
  }
  EXPECT_EQ(cancelled, 4'900U);
  EXPECT_EQ(reserved, 100U);
  EXPECT_EQ(engine_.usage().jobs, 100U);
}

}  // namespace
}  // namespace delayq::contract
