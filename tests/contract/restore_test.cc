// restore: jobs are stored in the state that they had. What every engine promises about it.
#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

SeenJob job_of(JobState state, std::string id = "a") {
  SeenJob job;
  job.topic = "t";
  job.id = std::move(id);
  job.group = "g";
  job.body = std::string("any\0bytes", 9);
  job.options = "options";
  job.outcome = "connection refused";
  job.state = state;
  job.priority = 7;
  job.attempts = 3;
  job.due = state == JobState::kDelayed ? at(500) : at(-100);
  job.pushed = at(-10'000);
  if (!is_live(state)) job.until = at(1'000);
  return job;
}

class Restore : public EngineContract {
 protected:
  /// The job must be found as it was; if it was reserved, it is ready and has no lease.
  void expect_found(SeenJob job) {
    if (job.state == JobState::kReserved) {
      job.state = JobState::kReady;
      job.until = Moment{};
    }
    EXPECT_EQ(engine_.get(job.topic, job.id), job);
    ListRequest request;
    request.topic = job.topic;
    request.state = job.state;
    request.with_bodies = true;
    EXPECT_THAT(engine_.list_all(request), testing::Contains(job));
  }
};
DELAYQ_OVER_ALL_ENGINES(Restore);

TEST_P(Restore, EveryStateComesBackAsItWas) {
  for (size_t i = 0; i < kJobStateCount; ++i) {
    SeenJob job = job_of(static_cast<JobState>(i), std::to_string(i));
    if (job.state == JobState::kReserved) job.until = at(60'000);
    const PushAnswer answer = engine_.restore(job);
    EXPECT_EQ(answer.outcome, PushOutcome::kCreated);
    EXPECT_EQ(answer.due, job.due);
    EXPECT_EQ(answer.state, job.state == JobState::kReserved ? JobState::kReady : job.state);
    expect_found(job);
  }
  EXPECT_EQ(engine_.counts("t").by_state, (std::array<uint64_t, 5>{1, 2, 0, 1, 1}));
  EXPECT_THAT(engine_.ready_news(), UnorderedElementsAre("t"));
}

TEST_P(Restore, WithAndWithoutEachOfItsParts) {
  SeenJob bare;
  bare.topic = "t";
  bare.id = "bare";
  bare.due = at(500);
  bare.pushed = kStart;
  engine_.restore(bare);
  expect_found(bare);
  SeenJob said = bare;
  said.id = "said";
  said.outcome = "only this";
  engine_.restore(said);
  expect_found(said);
}

TEST_P(Restore, AReservedJobHasLostItsLeaseAndKeepsItsAttempts) {
  SeenJob due = job_of(JobState::kReserved, "due");
  SeenJob later = job_of(JobState::kReserved, "later");
  later.due = at(300);
  engine_.restore(due);
  EXPECT_EQ(engine_.restore(later).state, JobState::kDelayed);
  EXPECT_THAT(ids_of(engine_.take("t", 10)), ElementsAre("due"));
  engine_.go_to(at(300));
  const Taken taken = engine_.take_one("t");
  EXPECT_EQ(taken.job.id, "later");
  EXPECT_EQ(taken.job.attempts, 4U);
  EXPECT_EQ(engine_.ack(taken), AckOutcome::kAcked);
}

TEST_P(Restore, ADelayedJobFallsDue) {
  engine_.restore(job_of(JobState::kDelayed));
  EXPECT_LE(engine_.tick(), at(500));
  engine_.go_to(at(499));
  EXPECT_THAT(engine_.take("t"), IsEmpty());
  engine_.go_to(at(500));
  engine_.tick();
  EXPECT_THAT(engine_.ready_news(), UnorderedElementsAre("t"));
  EXPECT_EQ(engine_.take_one("t").job.id, "a");
}

TEST_P(Restore, ForecastsCountIt) {
  engine_.restore(job_of(JobState::kDelayed));
  ForecastRequest request;
  request.from = kStart;
  request.to = at(1'000);
  request.bins = 1;
  EXPECT_THAT(engine_.forecast(request).bins, ElementsAre(1));
}

TEST_P(Restore, ReadyJobsStandInLineByPriorityAndDueTime) {
  std::vector<RestoreRequest> requests;
  std::vector<SeenJob> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(job_of(JobState::kReady, std::to_string(i)));
  jobs[0].due = at(-10);
  jobs[1].due = at(-20);
  jobs[2].due = at(-10);
  jobs[3].priority = 1;
  for (const SeenJob& job : jobs) requests.push_back({view_of(job), OnConflict::kKeep, 1});
  engine_.restore_all(requests);
  EXPECT_THAT(ids_of(engine_.take("t", 10)), ElementsAre("3", "1", "0", "2"));
}

TEST_P(Restore, AnIdThatIsThereIsNotTouchedUnlessAsked) {
  for (const JobState there : {JobState::kDelayed, JobState::kReady, JobState::kDone, JobState::kDead}) {
    const std::string id(name_of(there));
    const SeenJob old = job_of(there, id);
    engine_.restore(old);
    SeenJob fresh = job_of(JobState::kDelayed, id);
    fresh.body = "another";
    EXPECT_EQ(engine_.restore(fresh, OnConflict::kKeep).outcome, PushOutcome::kKept);
    const PushAnswer conflict = engine_.restore(fresh, OnConflict::kReject);
    EXPECT_EQ(conflict.outcome, PushOutcome::kConflict);
    EXPECT_EQ(conflict.state, there);
    EXPECT_EQ(conflict.due, old.due);
    expect_found(old);
    EXPECT_EQ(engine_.restore(fresh, OnConflict::kReplace).outcome, PushOutcome::kReplaced);
    expect_found(fresh);
  }
}

TEST_P(Restore, WhatTakesARunningJobsPlaceEndsItsLease) {
  const Taken running = reserve("a");
  EXPECT_EQ(engine_.restore(job_of(JobState::kDelayed)).outcome, PushOutcome::kKept);
  EXPECT_EQ(engine_.restore(job_of(JobState::kDead), OnConflict::kReplace).outcome, PushOutcome::kReplaced);
  EXPECT_EQ(engine_.ack(running), AckOutcome::kStale);
  expect_found(job_of(JobState::kDead));
}

TEST_P(Restore, TheOldestGiveWayToTheCount) {
  for (const JobState state : {JobState::kDone, JobState::kDead}) {
    for (int i = 0; i < 5; ++i) engine_.restore(job_of(state, std::to_string(i)), OnConflict::kReplace, 3);
    EXPECT_THAT(engine_.ids_in("t", state), ElementsAre("2", "3", "4"));
    engine_.restore(job_of(state, "one"), OnConflict::kKeep, 1);
    EXPECT_THAT(engine_.ids_in("t", state), ElementsAre("one"));
    EXPECT_EQ(engine_.purge("t", state), 1U);
  }
}

TEST_P(Restore, RetentionEndsWhenItWouldHave) {
  engine_.restore(job_of(JobState::kDone, "done"));
  engine_.restore(job_of(JobState::kDead, "dead"));
  engine_.go_to(at(999));
  engine_.tick();
  EXPECT_EQ(engine_.state_of("t", "done"), JobState::kDone);
  engine_.go_to(at(1'000));
  engine_.tick();
  EXPECT_THAT(engine_.topic_names(), IsEmpty());
}

TEST_P(Restore, GroupsAndRedriveKnowIt) {
  engine_.restore(job_of(JobState::kDead, "dead"));
  engine_.restore(job_of(JobState::kDone, "done"));
  engine_.restore(job_of(JobState::kDelayed, "live"));
  EXPECT_THAT(engine_.locate("live"), ElementsAre("t"));
  EXPECT_EQ(engine_.redrive("t", {"dead"}), 1U);
  EXPECT_EQ(engine_.get("t", "dead")->outcome, "connection refused");
  const GroupCancelAnswer cancelled = engine_.cancel_group("g");
  EXPECT_EQ(cancelled.cancelled, 2U);
  EXPECT_EQ(engine_.state_of("t", "done"), JobState::kDone);
}

TEST_P(Restore, ABackupIsMadeOrRefusedWithAReason) {
  engine_.restore(job_of(JobState::kDead));
  const Result<BackupReport> report = engine_.ask<BackupReport>(
      "backup", [&](auto reply) { engine_.engine().backup("copy", std::move(reply)); });
  ASSERT_EQ(report.ok(), GetParam().makes_backups);
  if (report.ok()) {
    EXPECT_EQ(report->jobs, 1U);
    EXPECT_GT(report->bytes, 0U);
    EXPECT_GE(report->files, 1U);
  } else {
    EXPECT_EQ(report.error().code, ErrorCode::kUnavailable);
    EXPECT_FALSE(report.error().detail.empty());
  }
  expect_found(job_of(JobState::kDead));
}

class RestoreDurable : public Restore {
 protected:
  std::vector<SeenJob> restore_some() {
    std::vector<SeenJob> jobs;
    for (size_t i = 0; i < 20; ++i) {
      jobs.push_back(job_of(static_cast<JobState>(i % kJobStateCount), std::to_string(i)));
      if (i % 3 == 0) jobs.back().outcome.clear();
      engine_.restore(jobs.back());
    }
    return jobs;
  }
};
DELAYQ_OVER_DURABLE_ENGINES(RestoreDurable);

TEST_P(RestoreDurable, OutlivesARestart) {
  const std::vector<SeenJob> jobs = restore_some();
  reopen();
  for (const SeenJob& job : jobs) expect_found(job);
}

TEST_P(RestoreDurable, OutlivesAPowerCutOnceAnswered) {
  const std::vector<SeenJob> jobs = restore_some();
  lose_power();
  for (const SeenJob& job : jobs) expect_found(job);
}

}  // namespace
}  // namespace delayq::contract
