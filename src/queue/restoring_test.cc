#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "queue/intake.h"
#include "queue/queue.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using support::at;
using support::kStart;
using testing::HasSubstr;

class RestoringTest : public testing::Test {
 protected:
  using Receipts = std::vector<Result<RestoreReceipt>>;

  static RestoreItem item(std::string_view id, JobState state = JobState::kDelayed) {
    RestoreItem item;
    item.job.topic = "t";
    item.job.id = id;
    item.job.state = state;
    item.job.due = state == JobState::kDelayed ? at(1'000) : at(-10);
    item.job.pushed = at(-100);
    if (!is_live(state)) item.job.until = at(5'000);
    return item;
  }

  Result<Receipts> restore_all(const std::vector<RestoreItem>& items) {
    return queue_.ask<Receipts>(
        "restore", [&](auto reply) { queue_.queue().restore(queue_.now(), items, std::move(reply)); });
  }
  Result<RestoreReceipt> restore(const RestoreItem& each) {
    const Result<Receipts> receipts = restore_all({each});
    return receipts.ok() ? receipts->front() : Result<RestoreReceipt>(receipts.error());
  }
  std::string refused(const RestoreItem& each) {
    const Result<RestoreReceipt> receipt = restore(each);
    return receipt.ok() ? "it was taken" : to_string(receipt.error());
  }
  Result<RestoreOutcome> restore_settings(std::string_view name, const Settings& settings,
                                          OnConflict on_conflict) {
    return queue_.ask<RestoreOutcome>("restore_settings", [&](auto reply) {
      queue_.queue().restore_settings(queue_.now(), name, settings, on_conflict, std::move(reply));
    });
  }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_};
};

TEST_F(RestoringTest, AnswersForEachJob) {
  const Result<Receipts> receipts = restore_all({item("a"), item(""), item("b", JobState::kDead), item("a")});
  ASSERT_TRUE(receipts.ok());
  ASSERT_EQ(receipts->size(), 4U);
  EXPECT_EQ((*receipts)[0]->outcome, RestoreOutcome::kCreated);
  EXPECT_EQ((*receipts)[1].error().code, ErrorCode::kInvalid);
  EXPECT_EQ((*receipts)[2]->outcome, RestoreOutcome::kCreated);
  EXPECT_EQ((*receipts)[3]->outcome, RestoreOutcome::kKept);
  EXPECT_EQ(queue_.state_of("t", "b"), JobState::kDead);
  EXPECT_EQ(queue_.stats("t").tallies.of(Tally::kPushed), 1U) << "of those that will be handed over";
}

TEST_F(RestoringTest, OptionsAreKept) {
  RestoreItem with = item("a", JobState::kReady);
  with.options.attempts = 1;
  ASSERT_TRUE(restore(with).ok());
  EXPECT_EQ(decode_job_options(queue_.get("t", "a")->options).attempts, 1U);
}

TEST_F(RestoringTest, ReplacingAndRejecting) {
  ASSERT_TRUE(restore(item("a", JobState::kDead)).ok());
  RestoreItem again = item("a");
  again.on_conflict = OnConflict::kReject;
  EXPECT_EQ(restore(again).error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused(again), HasSubstr("already dead"));
  again.on_conflict = OnConflict::kReplace;
  EXPECT_EQ(restore(again)->outcome, RestoreOutcome::kReplaced);
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kDelayed);
}

TEST_F(RestoringTest, WhatIsNotWorthKeepingIsDropped) {
  RestoreItem over = item("over", JobState::kDone);
  over.job.until = kStart;
  EXPECT_EQ(restore(over)->outcome, RestoreOutcome::kDropped);
  RestoreItem cancelled = item("cancelled", JobState::kReserved);
  cancelled.job.cancel_requested = true;
  EXPECT_EQ(restore(cancelled)->outcome, RestoreOutcome::kDropped);
  queue_.set("t", {.keep_done = Retention{std::chrono::hours{1}, 0}, .keep_dead = Retention{Millis{0}, 10}});
  EXPECT_EQ(restore(item("done", JobState::kDone))->outcome, RestoreOutcome::kDropped);
  EXPECT_EQ(restore(item("dead", JobState::kDead))->outcome, RestoreOutcome::kDropped);
  EXPECT_EQ(queue_.totals().usage.jobs, 0U);
}

TEST_F(RestoringTest, TheTopicKeepsAsManyAsItSays) {
  queue_.set("t", {.keep_dead = Retention{std::chrono::hours{1}, 2}});
  ASSERT_TRUE(
      restore_all({item("a", JobState::kDead), item("b", JobState::kDead), item("c", JobState::kDead)}).ok());
  EXPECT_EQ(queue_.count("t", JobState::kDead), 2U);
  EXPECT_FALSE(queue_.get("t", "a"));
}

TEST_F(RestoringTest, TheLimitsAreThoseOfAPush) {
  RestoreItem wrong = item("a");
  wrong.job.topic = "no spaces";
  EXPECT_THAT(refused(wrong), HasSubstr("topic"));
  wrong = item("a");
  wrong.job.group = "two\nlines";
  EXPECT_THAT(refused(wrong), HasSubstr("group"));
  wrong = item("a");
  wrong.job.due = kStart + Limits::kMaxDelay + Millis{1};
  EXPECT_THAT(refused(wrong), HasSubstr("due_at"));
  wrong = item("a");
  wrong.job.pushed = Moment{Millis{-1}};
  EXPECT_THAT(refused(wrong), HasSubstr("pushed_at"));
  wrong = item("a", JobState::kDone);
  wrong.job.until = kStart + Limits::kMaxRetention + Millis{1};
  EXPECT_THAT(refused(wrong), HasSubstr("kept_until"));
  wrong = item("a");
  const std::string long_outcome(Limits::kReasonBytes + 1, 'x');
  wrong.job.outcome = long_outcome;
  EXPECT_THAT(refused(wrong), HasSubstr("outcome"));
  wrong = item("a");
  wrong.job.attempts = UINT32_MAX;
  EXPECT_THAT(refused(wrong), HasSubstr("attempts 4294967295 is out of range"));
  wrong = item("a");
  wrong.options.attempts = Limits::kMaxAttempts + 1;
  EXPECT_THAT(refused(wrong), HasSubstr("attempts"));
  wrong = item("a");
  const std::string body((1u << 20) + 1, 'x');
  wrong.job.body = body;
  EXPECT_EQ(restore(wrong).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(queue_.totals().usage.jobs, 0U);
  EXPECT_FALSE(restore_all(std::vector<RestoreItem>(Limits::kBatchJobs + 1, item("a"))).ok());
}

TEST_F(RestoringTest, SettingsAreTakenUnlessThereAreSome) {
  const Settings paused{.paused = true};
  const Settings slow{.concurrency = 1};
  EXPECT_EQ(*restore_settings("t", paused, OnConflict::kKeep), RestoreOutcome::kCreated);
  EXPECT_EQ(*restore_settings("t", slow, OnConflict::kKeep), RestoreOutcome::kKept);
  EXPECT_EQ(queue_.queue().settings("t"), paused);
  EXPECT_EQ(restore_settings("t", slow, OnConflict::kReject).error().code, ErrorCode::kConflict);
  EXPECT_EQ(*restore_settings("t", paused, OnConflict::kReject), RestoreOutcome::kKept)
      << "they are the same";
  EXPECT_EQ(*restore_settings("t", slow, OnConflict::kReplace), RestoreOutcome::kReplaced);
  EXPECT_EQ(queue_.queue().settings("t"), slow);
  EXPECT_EQ(*restore_settings(kDefaultsName, slow, OnConflict::kKeep), RestoreOutcome::kCreated);
  EXPECT_EQ(restore_settings("no spaces", slow, OnConflict::kKeep).error().code, ErrorCode::kInvalid);
}

TEST_F(RestoringTest, ABackupNeedsAPlainName) {
  for (const std::string_view name : {"", ".", "..", "a/b", "a b", ".hidden", "x.partial"}) {
    const Result<BackupReport> report = queue_.ask<BackupReport>(
        "backup", [&](auto reply) { queue_.queue().backup(queue_.now(), name, std::move(reply)); });
    EXPECT_EQ(report.error().code, ErrorCode::kInvalid) << name;
  }
  const Result<BackupReport> report = queue_.ask<BackupReport>(
      "backup", [&](auto reply) { queue_.queue().backup(queue_.now(), "2030-01-31_a.b", std::move(reply)); });
  EXPECT_EQ(report.error().code, ErrorCode::kUnavailable) << "the engine was asked";
}

TEST_F(RestoringTest, an_outcome_of_any_bytes_comes_back) {
  RestoreItem dead = item("a", JobState::kDead);
  dead.job.until = kStart + std::chrono::hours{1};
  dead.job.outcome = "\xff\x00\x1b";
  ASSERT_TRUE(restore(dead).ok());
  EXPECT_EQ(queue_.get("t", "a")->outcome, dead.job.outcome);
}

}  // namespace
}  // namespace delayq
