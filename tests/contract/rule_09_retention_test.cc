// Rule 9, the queue's part: the default retention, and how a topic changes it.
#include "tests/contract/queue_contract.h"

namespace delayq::contract {
namespace {

class Rule09Retention : public QueueContract {
 protected:
  void finish(std::string_view id) { ASSERT_TRUE(queue_->ack(reserve(id).lease).ok()); }
  void bury(std::string_view id, std::string_view reason) {
    ASSERT_TRUE(queue_->nack({.lease = reserve(id).lease, .reason = reason, .dead = true}).ok());
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule09Retention);

TEST_P(Rule09Retention, DoneForAnHour) {
  finish("a");
  queue_->run_to(kStart + hours{1} - Millis{1});
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kDone);
  queue_->run_to(kStart + hours{1});
  EXPECT_EQ(queue_->get("t", "a"), std::nullopt);
}

TEST_P(Rule09Retention, DeadForThirtyDays) {
  bury("a", "broken");
  queue_->run_to(kStart + days{30} - Millis{1});
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kDead);
  queue_->run_to(kStart + days{30});
  EXPECT_EQ(queue_->get("t", "a"), std::nullopt);
}

TEST_P(Rule09Retention, AThousandDone) {
  for (int i = 0; i < 1'010; ++i) finish(std::to_string(i));
  EXPECT_EQ(queue_->count("t", JobState::kDone), 1'000U);
  EXPECT_EQ(queue_->get("t", "9"), std::nullopt);
  EXPECT_EQ(queue_->state_of("t", "10"), JobState::kDone);
}

TEST_P(Rule09Retention, ATopicMayKeepMoreLessOrNothing) {
  queue_->set("t", {.keep_done = Retention{}, .keep_dead = Retention{days{1}, 2}});
  finish("done");
  EXPECT_EQ(queue_->get("t", "done"), std::nullopt);
  for (const char* id : {"a", "b", "c"}) bury(id, "broken");
  EXPECT_EQ(queue_->count("t", JobState::kDead), 2U);
  queue_->run_to(kStart + days{1});
  EXPECT_EQ(queue_->count("t", JobState::kDead), 0U);
}

TEST_P(Rule09Retention, ALowerCountHoldsWhenItIsSet) {
  for (const char* id : {"a", "b", "c", "d"}) finish(id);
  for (const char* id : {"e", "f", "g", "h"}) bury(id, "broken");
  queue_->set("t", {.keep_done = Retention{hours{1}, 2}, .keep_dead = Retention{days{1}, 3}});
  queue_->run();
  EXPECT_EQ(queue_->count("t", JobState::kDone), 2U);
  EXPECT_EQ(queue_->count("t", JobState::kDead), 3U);
  EXPECT_EQ(queue_->state_of("t", "d"), JobState::kDone) << "the latest stay";
  EXPECT_EQ(queue_->state_of("t", "h"), JobState::kDead);
  queue_->set("t", {.keep_done = Retention{hours{1}, 0}, .keep_dead = Retention{Millis{0}, 3}});
  queue_->run();
  EXPECT_EQ(queue_->count("t", JobState::kDone), 0U) << "none is less than one";
  EXPECT_EQ(queue_->count("t", JobState::kDead), 0U);
}

TEST_P(Rule09Retention, LowerDefaultsHoldForAllTopicsThatSayNothing) {
  for (const char* id : {"a", "b", "c"}) finish(id);
  queue_->push({.topic = "u", .id = "x"});
  queue_->push({.topic = "u", .id = "y"});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue_->ack(queue_->pop_one("u").lease).ok());
  queue_->set("u", {.keep_done = Retention{hours{1}, 9}});
  queue_->set(kDefaultsName, {.keep_done = Retention{hours{1}, 1}});
  queue_->run();
  EXPECT_EQ(queue_->count("t", JobState::kDone), 1U);
  EXPECT_EQ(queue_->count("u", JobState::kDone), 2U);
}

TEST_P(Rule09Retention, ALowerTimeHoldsForThoseThatAreKept) {
  finish("done");
  bury("dead", "broken");
  queue_->run_to(kStart + minutes{20});
  finish("later");
  queue_->set("t", {.keep_done = Retention{minutes{30}, 9}, .keep_dead = Retention{minutes{25}, 9}});
  queue_->run_to(kStart + minutes{25} - Millis{1});
  EXPECT_EQ(queue_->state_of("t", "dead"), JobState::kDead);
  queue_->run_to(kStart + minutes{25});
  EXPECT_EQ(queue_->get("t", "dead"), std::nullopt) << "counted from its end, not from the change";
  queue_->run_to(kStart + minutes{30} - Millis{1});
  EXPECT_EQ(queue_->state_of("t", "done"), JobState::kDone);
  queue_->run_to(kStart + minutes{30});
  EXPECT_EQ(queue_->get("t", "done"), std::nullopt);
  queue_->run_to(kStart + minutes{50} - Millis{1});
  EXPECT_EQ(queue_->state_of("t", "later"), JobState::kDone);
  queue_->run_to(kStart + minutes{50});
  EXPECT_EQ(queue_->get("t", "later"), std::nullopt);
}

TEST_P(Rule09Retention, WhoIsOlderThanALowerTimeGoesAtOnce) {
  bury("old", "broken");
  queue_->run_to(kStart + days{2});
  bury("new", "broken");
  queue_->set("t", {.keep_dead = Retention{days{1}, 9}});
  queue_->run();
  EXPECT_EQ(queue_->count("t", JobState::kDead), 1U);
  EXPECT_EQ(queue_->state_of("t", "new"), JobState::kDead);
  EXPECT_EQ(queue_->get("t", "new")->until, kStart + days{3});
}

TEST_P(Rule09Retention, ALowerTimeByDefaultHoldsForAllTopicsThatSayNothing) {
  finish("a");
  queue_->push({.topic = "u", .id = "x"});
  ASSERT_TRUE(queue_->ack(queue_->pop_one("u").lease).ok());
  queue_->set("u", {.keep_done = Retention{hours{1}, 9}});
  Settings time_only;
  time_only.keep_done.time = minutes{1};
  queue_->set(kDefaultsName, time_only);
  queue_->run_to(kStart + minutes{1});
  EXPECT_EQ(queue_->count("t", JobState::kDone), 0U);
  EXPECT_EQ(queue_->count("u", JobState::kDone), 1U);
}

TEST_P(Rule09Retention, AHigherTimeIsForThoseThatEndLater) {
  finish("a");
  queue_->set("t", {.keep_done = Retention{hours{9}, 9}});
  EXPECT_EQ(queue_->get("t", "a")->until, kStart + hours{1});
  queue_->set("t", {.keep_done = Retention{hours{2}, 9}});
  queue_->run();
  EXPECT_EQ(queue_->get("t", "a")->until, kStart + hours{1}) << "two hours are no less than one";
}

TEST_P(Rule09Retention, TheEndOfAnImportedJobIsNotKnown) {
  finish("a");
  Job imported;
  imported.topic = "t";
  imported.id = "imported";
  imported.state = JobState::kDone;
  imported.due = imported.pushed = kStart;
  imported.until = kStart + hours{9};
  const RestoreRequest request{imported, OnConflict::kReject, 9};
  queue_->must<std::vector<PushAnswer>>("restore", [&](auto reply) {
    subject_->engine().restore(queue_->now(), {&request, 1}, std::move(reply));
  });
  queue_->run_to(kStart + minutes{10});
  queue_->set("t", {.keep_done = Retention{minutes{5}, 9}});
  queue_->run();
  EXPECT_EQ(queue_->get("t", "a"), std::nullopt);
  EXPECT_EQ(queue_->get("t", "imported")->until, kStart + minutes{15}) << "counted from the change";
}

TEST_P(Rule09Retention, ALowerTimeHoldsAfterARestart) {
  if (!GetParam().durable) return;
  finish("done");
  bury("dead", "broken");
  queue_->set("t", {.keep_dead = Retention{days{2}, 9}});
  queue_->run();
  QueueConfig less;
  less.defaults.keep_done = Retention{minutes{10}, 9};
  restart(less);
  queue_->run();
  EXPECT_EQ(queue_->get("t", "dead")->until, kStart + days{2});
  EXPECT_EQ(queue_->get("t", "done")->until, kStart + minutes{10}) << "changed while nobody was there";
  restart(less);
  EXPECT_EQ(queue_->get("t", "done")->until, kStart + minutes{10});
  queue_->set("t", {.keep_dead = Retention{days{1}, 9}});
  queue_->run();
  EXPECT_EQ(queue_->get("t", "dead")->until, kStart + days{1}) << "its end is known after a restart, too";
}

TEST_P(Rule09Retention, OnePartOfItLeavesTheOtherToTheDefaults) {
  Settings time_only;
  time_only.keep_done.time = hours{2};
  queue_->set("t", time_only);
  queue_->set(kDefaultsName, {.keep_done = Retention{hours{3}, 5}});
  EXPECT_EQ(queue_->stats("t").settings.keep_done, (Retention{hours{2}, 5}));
}

TEST_P(Rule09Retention, MoreThanOneStepOfThem) {
  for (int i = 0; i < 1'000; ++i) finish(std::to_string(i));
  std::vector<PushRequest> jobs(1'600);
  for (PushRequest& job : jobs) job.topic = "t";
  queue_->must<PushReport>("push",
                           [&](auto reply) { queue_->queue().push(queue_->now(), jobs, std::move(reply)); });
  queue_->run();
  for (std::vector<Taken> taken = queue_->pop("t", 800); !taken.empty(); taken = queue_->pop("t", 800)) {
    std::vector<NackItem> items;
    for (const Taken& job : taken) items.push_back({.lease = job.lease, .dead = true});
    queue_->must<std::vector<Result<NackReceipt>>>(
        "nack", [&](auto reply) { queue_->queue().nack(queue_->now(), items, std::move(reply)); });
  }
  queue_->set("t", {.keep_done = Retention{}, .keep_dead = Retention{days{1}, 7}});
  queue_->run();
  EXPECT_EQ(queue_->count("t", JobState::kDone), 0U);
  EXPECT_EQ(queue_->count("t", JobState::kDead), 7U);
}

TEST_P(Rule09Retention, MoreThanOneStepOfThemEndSooner) {
  constexpr uint32_t kMany = 2'300;
  std::vector<PushRequest> jobs(kMany);
  for (PushRequest& job : jobs) job.topic = "t";
  queue_->must<PushReport>("push",
                           [&](auto reply) { queue_->queue().push(queue_->now(), jobs, std::move(reply)); });
  queue_->run();
  for (std::vector<Taken> taken = queue_->pop("t", 800); !taken.empty(); taken = queue_->pop("t", 800)) {
    std::vector<NackItem> items;
    for (const Taken& job : taken) items.push_back({.lease = job.lease, .dead = true});
    queue_->must<std::vector<Result<NackReceipt>>>(
        "nack", [&](auto reply) { queue_->queue().nack(queue_->now(), items, std::move(reply)); });
  }
  queue_->set("t", {.keep_dead = Retention{hours{1}, kMany - 100}});
  queue_->run();
  EXPECT_EQ(queue_->count("t", JobState::kDead), kMany - 100);
  queue_->run_to(kStart + hours{1} - Millis{1});
  EXPECT_EQ(queue_->count("t", JobState::kDead), kMany - 100);
  queue_->run_to(kStart + hours{1});
  EXPECT_EQ(queue_->count("t", JobState::kDead), 0U);
}

TEST_P(Rule09Retention, TheTwelveErrorsAreFoundAndRedriven) {
  for (int i = 0; i < 240; ++i) bury(std::to_string(i), i % 20 == 3 ? "card declined" : "timeout");
  const auto redriven = queue_->must<uint64_t>("redrive_by_error", [&](auto reply) {
    queue_->queue().redrive_by_error(queue_->now(), "t", "declined", std::move(reply));
  });
  EXPECT_EQ(redriven, 12U);
  EXPECT_EQ(queue_->count("t", JobState::kReady), 12U);
  EXPECT_EQ(queue_->count("t", JobState::kDead), 228U);
}

TEST_P(Rule09Retention, PurgeOfEverything) {
  finish("done");
  bury("dead", "broken");
  const Taken running = reserve("reserved");
  queue_->push({.topic = "t", .id = "ready"});
  queue_->push({.topic = "t", .id = "delayed", .delay = seconds{5}});
  const auto purged = queue_->must<uint64_t>("purge", [&](auto reply) {
    queue_->queue().purge(queue_->now(), "t", std::nullopt, std::move(reply));
  });
  EXPECT_EQ(purged, 5U);
  EXPECT_EQ(queue_->totals().usage.jobs, 0U);
  EXPECT_EQ(queue_->ack(running.lease).error().code, ErrorCode::kStaleLease);
}

}  // namespace
}  // namespace delayq::contract
