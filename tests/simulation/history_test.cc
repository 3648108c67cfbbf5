#include "tests/simulation/history.h"

#include <gtest/gtest.h>

namespace delayq::simulation {
namespace {

constexpr Moment kNow = from_unix_ms(1'000);

/// A model of one topic, and the history that watches it.
struct Watched {
  memory::JobTable jobs;
  History history;
  History::Operation last = 0;

  History::Operation push(const std::string& id, Moment due = kNow) {
    memory::StoredJob job;
    job.topic = "t";
    job.id = id;
    job.body = "of " + id;
    job.due = due;
    job.state = JobState::kDelayed;
    jobs.insert(job);
    return record(Promise::kChanges);
  }
  History::Operation move(const std::string& id, Moment due) {
    jobs.update(*jobs.find("t", id), [&](memory::StoredJob& job) { job.due = due; });
    return record(Promise::kChanges);
  }
  History::Operation finish(const std::string& id, Moment until) {
    jobs.update(*jobs.find("t", id), [&](memory::StoredJob& job) {
      job.state = JobState::kDone;
      job.until = until;
    });
    return record(Promise::kChanges);
  }
  History::Operation erase(const std::string& id, Promise promise) {
    jobs.erase(*jobs.find("t", id));
    return record(promise);
  }
  History::Operation record(Promise promise) {
    history.record(++last, promise, jobs);
    return last;
  }

  /// Whether the job may look like this after a crash.
  bool may_be(const support::SeenJob& job) {
    return history.find({job.topic, job.id}, &job, kNow) != nullptr;
  }
  bool may_be_gone(const std::string& id, Moment now = kNow) {
    return history.find({"t", id}, nullptr, now) != nullptr;
  }
};

support::SeenJob job_due(const std::string& id, Moment due) {
  support::SeenJob job;
  job.topic = "t";
  job.id = id;
  job.body = "of " + id;
  job.due = due;
  job.priority = kDefaultPriority;
  return job;
}

TEST(History, WhatWasNotAnsweredMayHaveHappenedOrNot) {
  Watched all;
  const auto pushed = all.push("a");
  EXPECT_TRUE(all.may_be_gone("a"));
  EXPECT_TRUE(all.may_be(job_due("a", kNow)));
  EXPECT_FALSE(all.may_be(job_due("a", kNow + Millis{1})));
  all.history.answered(pushed);
  EXPECT_FALSE(all.may_be_gone("a"));
  EXPECT_TRUE(all.may_be(job_due("a", kNow)));
}

TEST(History, AnAnswerVouchesForAllThatWentBefore) {
  Watched all;
  all.push("a");
  const auto moved = all.move("a", kNow + Millis{5});
  all.move("a", kNow + Millis{9});
  all.history.answered(moved);
  EXPECT_FALSE(all.may_be_gone("a"));
  EXPECT_FALSE(all.may_be(job_due("a", kNow)));
  EXPECT_TRUE(all.may_be(job_due("a", kNow + Millis{5})));
  EXPECT_TRUE(all.may_be(job_due("a", kNow + Millis{9})));
}

TEST(History, DelayedAndReadyAreOne) {
  Watched all;
  all.history.answered(all.push("a"));
  support::SeenJob ready = job_due("a", kNow);
  ready.state = JobState::kReady;
  EXPECT_TRUE(all.may_be(ready));
  ready.state = JobState::kReserved;
  EXPECT_FALSE(all.may_be(ready));
}

TEST(History, ACancelThatWasAnsweredIsForGood) {
  Watched all;
  all.history.answered(all.push("a"));
  const auto cancelled = all.erase("a", Promise::kChanges);
  EXPECT_TRUE(all.may_be(job_due("a", kNow)));
  all.history.answered(cancelled);
  EXPECT_FALSE(all.may_be(job_due("a", kNow)));
  EXPECT_TRUE(all.may_be_gone("a"));
  EXPECT_TRUE(all.history.chains().empty());
}

TEST(History, KeptJobsGoByAgeOrByTheWayAndThatIsNoPromise) {
  Watched all;
  all.push("a");
  all.history.answered(all.finish("a", kNow + Millis{10}));
  EXPECT_FALSE(all.may_be_gone("a"));
  EXPECT_TRUE(all.may_be_gone("a", kNow + Millis{10}));
  const auto other = all.erase("a", Promise::kChanges);
  all.history.answered(other);
  EXPECT_TRUE(all.may_be_gone("a"));
  support::SeenJob done = job_due("a", kNow);
  done.state = JobState::kDone;
  done.until = kNow + Millis{10};
  EXPECT_TRUE(all.may_be(done));
}

TEST(History, APurgeIsAPromise) {
  Watched all;
  all.push("a");
  all.history.answered(all.finish("a", kNow + Millis{10}));
  all.history.answered(all.erase("a", Promise::kRemovals));
  EXPECT_TRUE(all.history.chains().empty());
}

TEST(History, AFlushVouchesForEverythingBeforeIt) {
  Watched all;
  all.push("a");
  const auto last = all.push("b");
  all.move("a", kNow + Millis{5});
  all.history.flushed(last);
  EXPECT_FALSE(all.may_be_gone("a"));
  EXPECT_FALSE(all.may_be_gone("b"));
  EXPECT_TRUE(all.may_be(job_due("a", kNow)));
  EXPECT_TRUE(all.may_be(job_due("a", kNow + Millis{5})));
}

TEST(History, AnOperationMayHaveDoneSomethingElse) {
  Watched all;
  all.history.answered(all.push("a"));
  all.history.answered(all.push("b"));
  const auto moved = all.move("a", kNow + Millis{5});

  memory::JobTable other;
  memory::StoredJob dead = *all.jobs.find("t", "a");
  dead.state = JobState::kDead;
  dead.until = kNow + Millis{90};
  other.restore(dead);
  const std::vector<History::Change> changes = all.history.changes_in(other);
  ASSERT_EQ(changes.size(), 2U);  // "b" is gone
  EXPECT_FALSE(all.may_be_gone("b"));
  for (const History::Change& change : changes) all.history.may_have(moved, change);

  support::SeenJob found = job_due("a", kNow + Millis{5});
  EXPECT_TRUE(all.may_be(found));
  EXPECT_TRUE(all.may_be(job_due("a", kNow)));
  found.state = JobState::kDead;
  EXPECT_FALSE(all.may_be(found));
  found.until = kNow + Millis{90};
  EXPECT_TRUE(all.may_be(found));
  EXPECT_FALSE(all.may_be_gone("a"));
  EXPECT_TRUE(all.may_be_gone("b"));
  EXPECT_TRUE(all.may_be(job_due("b", kNow)));
  EXPECT_TRUE(all.history.changes_in(all.jobs).empty());  // the last version is the model's, as ever
}

TEST(History, AfterACrashOnlyWhatWasFoundIsLeft) {
  Watched all;
  all.push("a");
  all.move("a", kNow + Millis{5});
  all.move("a", kNow + Millis{9});
  const support::SeenJob found = job_due("a", kNow + Millis{5});
  const History::Version* version = all.history.find({"t", "a"}, &found, kNow);
  ASSERT_NE(version, nullptr);
  all.history.settle({"t", "a"}, *version, false);
  EXPECT_TRUE(all.may_be_gone("a"));  // it may only have been in the page cache
  EXPECT_TRUE(all.may_be(found));
  EXPECT_FALSE(all.may_be(job_due("a", kNow + Millis{9})));
  all.history.settle({"t", "a"}, *all.history.find({"t", "a"}, &found, kNow), true);
  EXPECT_FALSE(all.may_be_gone("a"));
  EXPECT_TRUE(all.may_be(found));
}

}  // namespace
}  // namespace delayq::simulation
