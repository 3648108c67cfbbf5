// Rule 16: a schedule makes exactly one job for each occurrence, never early.
#include "core/moment.h"
#include "tests/contract/queue_contract.h"

namespace delayq::contract {
namespace {

class Rule16Recurring : public QueueContract {
 protected:
  Result<ScheduleReceipt> set(const ScheduleSpec& spec, TopicPatterns topics = kAllTopics) {
    return queue_->ask<ScheduleReceipt>("set_schedule", [&](auto reply) {
      queue_->queue().set_schedule(queue_->now(), spec, topics, std::move(reply));
    });
  }
  std::optional<ScheduleView> show(std::string_view name, TopicPatterns topics = kAllTopics) {
    return queue_->must<std::optional<ScheduleView>>("get_schedule", [&](auto reply) {
      queue_->queue().get_schedule(queue_->now(), name, topics, std::move(reply));
    });
  }
  Result<ScheduleView> pause(std::string_view name) {
    return queue_->ask<ScheduleView>("pause_schedule", [&](auto reply) {
      queue_->queue().pause_schedule(queue_->now(), name, kAllTopics, std::move(reply));
    });
  }
  Result<ScheduleView> resume(std::string_view name) {
    return queue_->ask<ScheduleView>("resume_schedule", [&](auto reply) {
      queue_->queue().resume_schedule(queue_->now(), name, kAllTopics, std::move(reply));
    });
  }
  Result<ScheduleRun> run(std::string_view name) {
    return queue_->ask<ScheduleRun>("run_schedule", [&](auto reply) {
      queue_->queue().run_schedule(queue_->now(), name, kAllTopics, std::move(reply));
    });
  }
  Status remove(std::string_view name, TopicPatterns topics = kAllTopics) {
    return queue_->ask<void>("remove_schedule", [&](auto reply) {
      queue_->queue().remove_schedule(queue_->now(), name, topics, std::move(reply));
    });
  }
  std::vector<std::string> names(TopicPatterns topics = kAllTopics) {
    const auto views = queue_->must<ScheduleViews>("list_schedules", [&](auto reply) {
      queue_->queue().list_schedules(queue_->now(), {}, topics, std::move(reply));
    });
    std::vector<std::string> names;
    for (const ScheduleView& view : views.schedules) names.emplace_back(view.spec.name);
    return names;
  }
  ForecastReport forecast(std::string_view topic, Moment from, Moment to, uint32_t bins) {
    return queue_->must<ForecastReport>("forecast", [&](auto reply) {
      queue_->queue().forecast(queue_->now(), {topic, from, to, bins}, kAllTopics, std::move(reply));
    });
  }
  /// Pops and acks all that is ready, and returns the occurrences, as milliseconds of the test.
  std::vector<int64_t> made(std::string_view topic = "t") {
    queue_->run();
    std::vector<int64_t> occurrences;
    for (const Taken& taken : queue_->pop(topic, 1'000)) {
      occurrences.push_back((taken.job.due - kStart).count());
      EXPECT_TRUE(queue_->ack(taken.lease).ok());
    }
    std::sort(occurrences.begin(), occurrences.end());
    return occurrences;
  }
  /// The only job that is there now, left as it is.
  std::string waiting_id(Moment occurrence) { return occurrence_id("s", occurrence); }

  static ScheduleSpec every(Millis interval) {
    return {.name = "s", .every = interval, .topic = "t", .body = "body"};
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule16Recurring);

// ---- when

TEST_P(Rule16Recurring, EachOccurrenceIsOneJobAndNoneIsEarly) {
  ASSERT_TRUE(set(every(seconds{10})).ok());
  queue_->run_to(at(9'999));
  EXPECT_THAT(made(), IsEmpty());
  EXPECT_EQ(queue_->run_to(at(9'999)), at(10'000));
  queue_->run_to(at(10'000));
  EXPECT_TRUE(queue_->get("t", waiting_id(at(10'000))));
  EXPECT_EQ(queue_->get("t", waiting_id(at(10'000)))->body, "body");
  EXPECT_THAT(made(), ElementsAre(10'000));
  for (int64_t ms = 10'000; ms < 30'000; ms += 1'000) queue_->run_to(at(ms));
  EXPECT_THAT(made(), ElementsAre(20'000));
}

TEST_P(Rule16Recurring, ACronRuleRunsInItsZone) {
  // 2023-11-15 02:00 in Shanghai is 18:00 UTC of the 14th, which is over; the next one is on the 15th.
  ASSERT_TRUE(
      set({.name = "s", .cron = "0 2 * * *", .zone = "Asia/Shanghai", .topic = "t", .body = "{}"}).ok());
  const Moment expected = from_unix_ms(1'700'071'200'000);  // 2023-11-15T18:00:00Z
  EXPECT_EQ(show("s")->next, expected);
  queue_->run_to(expected - Millis{1});
  EXPECT_THAT(made(), IsEmpty());
  queue_->run_to(expected);
  EXPECT_TRUE(queue_->get("t", "s@2023-11-15T18:00:00Z"));
}

TEST_P(Rule16Recurring, CountsFromItsStart) {
  ScheduleSpec spec = every(seconds{10});
  spec.start = at(3'500);
  ASSERT_TRUE(set(spec).ok());
  queue_->run_to(at(3'500));
  EXPECT_THAT(made(), ElementsAre(3'500));
  queue_->run_to(at(13'499));
  EXPECT_THAT(made(), IsEmpty());
  queue_->run_to(at(13'500));
  EXPECT_THAT(made(), ElementsAre(13'500));
}

TEST_P(Rule16Recurring, AStartInThePastOnlySetsThePhase) {
  ScheduleSpec spec = every(seconds{10});
  spec.start = at(-1'000'004'000);
  ASSERT_TRUE(set(spec).ok());
  EXPECT_THAT(made(), IsEmpty());
  EXPECT_EQ(show("s")->next, at(6'000));
}

TEST_P(Rule16Recurring, EndsAtItsEnd) {
  ScheduleSpec spec = every(seconds{10});
  spec.end = at(20'000);
  ASSERT_TRUE(set(spec).ok());
  for (int64_t ms = 0; ms <= 50'000; ms += 5'000) queue_->run_to(at(ms));
  EXPECT_THAT(made(), ElementsAre(10'000, 20'000));
  EXPECT_EQ(show("s")->state, ScheduleState::kEnded);
  EXPECT_EQ(show("s")->next, kNever);
}

TEST_P(Rule16Recurring, EndsAfterItsRuns) {
  ScheduleSpec spec = every(seconds{10});
  spec.runs = 2;
  ASSERT_TRUE(set(spec).ok());
  for (int64_t ms = 0; ms <= 50'000; ms += 5'000) queue_->run_to(at(ms));
  EXPECT_THAT(made(), ElementsAre(10'000, 20'000));
  EXPECT_EQ(show("s")->state, ScheduleState::kEnded);
  EXPECT_EQ(show("s")->progress.made, 2U);
}

TEST_P(Rule16Recurring, MoreRunsGoOnFromNow) {
  ScheduleSpec spec = every(seconds{10});
  spec.runs = 1;
  spec.missed = Missed::kAll;
  ASSERT_TRUE(set(spec).ok());
  queue_->run_to(at(10'000));
  EXPECT_THAT(made(), ElementsAre(10'000));
  queue_->run_to(at(45'000));
  spec.runs = 3;
  EXPECT_EQ(set(spec)->schedule.next, at(50'000)) << "the occurrences after its end were not missed";
  queue_->run_to(at(50'000));
  EXPECT_THAT(made(), ElementsAre(50'000));
  EXPECT_EQ(show("s")->progress.missed, 0U);
  queue_->run_to(at(60'000));
  queue_->run_to(at(70'000));
  EXPECT_THAT(made(), ElementsAre(60'000));
}

TEST_P(Rule16Recurring, ALaterEndGoesOnFromNow) {
  ScheduleSpec spec = every(seconds{10});
  spec.end = at(12'000);
  ASSERT_TRUE(set(spec).ok());
  queue_->run_to(at(10'000));
  EXPECT_THAT(made(), ElementsAre(10'000));
  queue_->run_to(at(45'000));
  spec.end = at(60'000);
  EXPECT_EQ(set(spec)->schedule.next, at(50'000));
  for (int64_t ms = 45'000; ms <= 80'000; ms += 5'000) queue_->run_to(at(ms));
  EXPECT_THAT(made(), ElementsAre(50'000, 60'000));
  EXPECT_EQ(show("s")->progress.missed, 0U);
}

TEST_P(Rule16Recurring, JitterMakesAJobLaterNeverEarlier) {
  ScheduleSpec spec = every(seconds{60});
  spec.jitter = seconds{30};
  ASSERT_TRUE(set(spec).ok());
  queue_->run_to(at(60'000));
  const std::optional<SeenJob> job = queue_->get("t", waiting_id(at(60'000)));
  ASSERT_TRUE(job);
  EXPECT_GE(job->due, at(60'000));
  EXPECT_LE(job->due, at(90'000));
  queue_->run_to(at(90'000));
  EXPECT_THAT(made(), SizeIs(1));
}

// ---- what was missed

TEST_P(Rule16Recurring, OfThoseMissedTheLastIsMade) {
  ASSERT_TRUE(set(every(seconds{10})).ok());
  queue_->run_to(at(57'000));
  EXPECT_THAT(made(), ElementsAre(50'000));
  EXPECT_EQ(show("s")->progress.missed, 4U);
  EXPECT_EQ(show("s")->next, at(60'000));
}

TEST_P(Rule16Recurring, SkipMakesNoneThatIsTooOld) {
  ScheduleSpec spec = every(minutes{10});
  spec.missed = Missed::kSkip;
  ASSERT_TRUE(set(spec).ok());
  queue_->run_to(at(600'000) + Limits::kMissedAfter + Millis{1});
  EXPECT_THAT(made(), IsEmpty());
  EXPECT_EQ(show("s")->progress.missed, 1U);
  queue_->run_to(at(1'200'000) + Limits::kMissedAfter);
  EXPECT_THAT(made(), ElementsAre(1'200'000));
}

TEST_P(Rule16Recurring, AllAreMadeInTheirOrder) {
  ScheduleSpec spec = every(seconds{10});
  spec.missed = Missed::kAll;
  ASSERT_TRUE(set(spec).ok());
  ASSERT_TRUE(pause("s").ok());
  EXPECT_EQ(show("s")->state, ScheduleState::kPaused);
  queue_->run_to(at(45'000));
  EXPECT_THAT(made(), IsEmpty());
  ASSERT_TRUE(resume("s").ok());
  EXPECT_THAT(made(), ElementsAre(10'000, 20'000, 30'000, 40'000));
  EXPECT_EQ(show("s")->progress.missed, 0U);
}

TEST_P(Rule16Recurring, AllIsBounded) {
  ScheduleSpec spec = every(seconds{10});
  spec.missed = Missed::kAll;
  ASSERT_TRUE(set(spec).ok());
  queue_->run_to(at((Limits::kCatchUp + 25) * 10'000));
  const std::vector<int64_t> all = made();
  ASSERT_THAT(all, SizeIs(Limits::kCatchUp));
  EXPECT_EQ(all.front(), 26 * 10'000);
  EXPECT_EQ(all.back(), (Limits::kCatchUp + 25) * 10'000);
  EXPECT_EQ(show("s")->progress.missed, 25U);
}

// ---- the job before

TEST_P(Rule16Recurring, SkipLeavesOutAnOccurrenceWhileTheJobBeforeIsThere) {
  ScheduleSpec spec = every(seconds{10});
  spec.overlap = Overlap::kSkip;
  ASSERT_TRUE(set(spec).ok());
  queue_->run_to(at(10'000));
  queue_->run_to(at(20'000));
  EXPECT_EQ(show("s")->progress.skipped, 1U);
  EXPECT_THAT(made(), ElementsAre(10'000));
  queue_->run_to(at(30'000));
  EXPECT_THAT(made(), ElementsAre(30'000));
}

TEST_P(Rule16Recurring, ASkippedOccurrenceIsNoRun) {
  ScheduleSpec spec = every(seconds{10});
  spec.overlap = Overlap::kSkip;
  spec.runs = 2;
  ASSERT_TRUE(set(spec).ok());
  queue_->run_to(at(10'000));
  queue_->run_to(at(20'000));
  EXPECT_THAT(made(), ElementsAre(10'000));
  queue_->run_to(at(30'000));
  EXPECT_THAT(made(), ElementsAre(30'000));
  queue_->run_to(at(60'000));
  EXPECT_THAT(made(), IsEmpty());
}

TEST_P(Rule16Recurring, ReplaceLetsTheNewJobStandForTheOld) {
  ScheduleSpec spec = every(seconds{10});
  spec.overlap = Overlap::kReplace;
  ASSERT_TRUE(set(spec).ok());
  queue_->run_to(at(10'000));
  queue_->run_to(at(20'000));
  EXPECT_THAT(made(), ElementsAre(20'000));
  EXPECT_EQ(queue_->stats("t").tallies.of(Tally::kCancelled), 1U);
  EXPECT_EQ(queue_->stats("t").tallies.of(Tally::kPushed), 2U);
}

TEST_P(Rule16Recurring, ADeadJobBlocksNothing) {
  ScheduleSpec spec = every(seconds{10});
  spec.overlap = Overlap::kSkip;
  ASSERT_TRUE(set(spec).ok());
  queue_->run_to(at(10'000));
  const Taken taken = queue_->pop_one("t");
  ASSERT_TRUE(queue_->nack({.lease = taken.lease, .dead = true}).ok());
  queue_->run_to(at(20'000));
  EXPECT_THAT(made(), ElementsAre(20'000));
}

// ---- changes

TEST_P(Rule16Recurring, AnUpdateKeepsThePhaseAndTheCounts) {
  ASSERT_TRUE(set(every(seconds{10})).ok());
  queue_->run_to(at(10'000));
  queue_->run_to(at(13'000));
  ScheduleSpec changed = every(seconds{10});
  changed.body = "other";
  const Result<ScheduleReceipt> receipt = set(changed);
  ASSERT_TRUE(receipt.ok());
  EXPECT_FALSE(receipt->is_new);
  EXPECT_TRUE(receipt->has_changed);
  EXPECT_EQ(receipt->schedule.next, at(20'000));
  EXPECT_EQ(receipt->schedule.progress.made, 1U);
  EXPECT_FALSE(set(changed)->has_changed);
  queue_->run_to(at(20'000));
  EXPECT_EQ(queue_->get("t", waiting_id(at(10'000)))->body, "body");
  EXPECT_EQ(queue_->get("t", waiting_id(at(20'000)))->body, "other");
}

TEST_P(Rule16Recurring, AnotherRuleBeginsNowAndWhatWasDueIsMadeFirst) {
  ASSERT_TRUE(set(every(seconds{10})).ok());
  queue_->go_to(at(10'500));  // no tick: the occurrence at 10 s is still to be made
  ScheduleSpec changed = every(seconds{60});
  changed.topic = "u";
  ASSERT_TRUE(set(changed).ok());
  EXPECT_EQ(show("s")->next, at(60'000));
  EXPECT_THAT(made("t"), ElementsAre(10'000));
  queue_->run_to(at(60'000));
  EXPECT_THAT(made("u"), ElementsAre(60'000));
  EXPECT_THAT(made("t"), IsEmpty());
}

TEST_P(Rule16Recurring, WhatTheOldRuleLeavesIsMissed) {
  queue_->run_before_verbs(false);
  ScheduleSpec spec = every(minutes{1});
  spec.missed = Missed::kAll;
  ASSERT_TRUE(set(spec).ok());
  queue_->go_to(at(50 * 60'000));
  spec.every = seconds{70};
  ASSERT_TRUE(set(spec).ok());
  const ScheduleProgress progress = show("s")->progress;
  EXPECT_GT(progress.made, 0U);
  EXPECT_GT(progress.missed, 0U);
  EXPECT_EQ(progress.made + progress.missed, 50U);
}

TEST_P(Rule16Recurring, WhatAPausedOneLeavesToAnotherRuleIsMissed) {
  ASSERT_TRUE(set(every(seconds{10})).ok());
  ASSERT_TRUE(pause("s").ok());
  queue_->run_to(at(35'000));
  ASSERT_TRUE(set(every(seconds{20})).ok());
  EXPECT_EQ(show("s")->progress.missed, 3U);
  ASSERT_TRUE(resume("s").ok());
  EXPECT_THAT(made(), IsEmpty());
}

TEST_P(Rule16Recurring, TwoChangesWhileItCatchesUpAreNotRefused) {
  ScheduleSpec spec = every(minutes{1});
  spec.missed = Missed::kAll;
  ASSERT_TRUE(set(spec).ok());
  queue_->go_to(at(50 * 60'000));
  ScheduleSpec other = spec;
  other.every = seconds{80};
  std::optional<Result<ScheduleReceipt>> first;
  queue_->queue().set_schedule(queue_->now(), other, kAllTopics,
                               [&](Result<ScheduleReceipt> answer) { first.emplace(std::move(answer)); });
  spec.every = seconds{70};
  const Result<ScheduleReceipt> second = set(spec);
  queue_->run();
  EXPECT_TRUE(second.ok()) << to_string(second.error());
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->ok()) << to_string(first->error());
}

TEST_P(Rule16Recurring, ARemovedOneMakesNoMore) {
  ASSERT_TRUE(set(every(seconds{10})).ok());
  queue_->run_to(at(10'000));
  ASSERT_TRUE(remove("s").ok());
  queue_->run_to(at(60'000));
  EXPECT_THAT(made(), ElementsAre(10'000));
  EXPECT_EQ(remove("s").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(show("s"));
}

TEST_P(Rule16Recurring, RunMakesOneMoreJobNow) {
  ASSERT_TRUE(set(every(seconds{10})).ok());
  queue_->run_to(at(1'234));
  const Result<ScheduleRun> ran = run("s");
  ASSERT_TRUE(ran.ok());
  EXPECT_THAT(ran->id, testing::StartsWith("s#"));
  EXPECT_THAT(made(), ElementsAre(1'234));
  EXPECT_EQ(show("s")->next, at(10'000));
  EXPECT_EQ(show("s")->progress.made, 0U);
  EXPECT_EQ(run("unknown").error().code, ErrorCode::kNotFound);
}

TEST_P(Rule16Recurring, RunsAndAnOccurrenceInOneMillisecondAreDifferentJobs) {
  ASSERT_TRUE(set(every(seconds{10})).ok());
  queue_->go_to(at(10'000));
  ASSERT_TRUE(run("s").ok());
  ASSERT_TRUE(run("s").ok());
  EXPECT_THAT(made(), ElementsAre(10'000, 10'000, 10'000));
}

TEST_P(Rule16Recurring, AnImportedScheduleCatchesUpNoMoreThanAnother) {
  ScheduleSpec spec = every(seconds{10});
  spec.missed = Missed::kAll;
  const ScheduleProgress progress{
      .created = at(-100'000'000), .decided = at(-100'000'000), .catch_up_until = at(100'000'000)};
  ASSERT_TRUE(queue_
                  ->ask<RestoreOutcome>("restore_schedule",
                                        [&](auto reply) {
                                          queue_->queue().restore_schedule(queue_->now(), spec, progress,
                                                                           OnConflict::kReject,
                                                                           std::move(reply));
                                        })
                  .ok());
  queue_->run();
  EXPECT_EQ(show("s")->progress.made, Limits::kCatchUp);
}

TEST_P(Rule16Recurring, PausingTwiceAndResumingTwiceIsFine) {
  ASSERT_TRUE(set(every(seconds{10})).ok());
  EXPECT_TRUE(resume("s").ok());
  EXPECT_TRUE(pause("s").ok());
  EXPECT_TRUE(pause("s").ok());
  EXPECT_EQ(pause("unknown").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(resume("s").ok());
  queue_->run_to(at(10'000));
  EXPECT_THAT(made(), ElementsAre(10'000));
}

// ---- clocks, restarts, limits

TEST_P(Rule16Recurring, AClockThatIsSetBackRepeatsNothing) {
  ASSERT_TRUE(set(every(seconds{10})).ok());
  queue_->run_to(at(20'000));
  EXPECT_THAT(made(), ElementsAre(20'000));
  for (int64_t ms = 5'000; ms <= 29'999; ms += 1'000) queue_->run_to(at(ms));
  EXPECT_THAT(made(), IsEmpty());
  queue_->run_to(at(30'000));
  EXPECT_THAT(made(), ElementsAre(30'000));
}

TEST_P(Rule16Recurring, ARestartGoesOnWhereItWas) {
  if (!GetParam().durable) GTEST_SKIP() << "has nothing after a restart";
  ASSERT_TRUE(set(every(seconds{10})).ok());
  queue_->run_to(at(10'000));
  EXPECT_THAT(made(), ElementsAre(10'000));
  restart();
  queue_->run_to(at(11'000));
  EXPECT_THAT(made(), IsEmpty());
  restart();
  queue_->run_to(at(45'000));
  EXPECT_THAT(made(), ElementsAre(40'000));
}

TEST_P(Rule16Recurring, WhatHasNoRoomComesLate) {
  QueueConfig config;
  config.jobs = 1;
  restart(config);
  ASSERT_TRUE(set(every(seconds{10})).ok());
  queue_->push({.topic = "full", .id = "x"});
  queue_->run_to(at(10'000));
  queue_->run_to(at(12'000));
  EXPECT_THAT(made(), IsEmpty());
  EXPECT_GT(queue_->totals().schedules.refused, 0U);
  EXPECT_EQ(queue_->cancel("full", "x"), CancelOutcome::kCancelled);
  queue_->run_to(at(15'000));
  EXPECT_THAT(made(), ElementsAre(10'000));
}

TEST_P(Rule16Recurring, ABadOneIsRefusedByItsFieldAndNothingIsStored) {
  const auto field = [this](const ScheduleSpec& spec) {
    const Result<ScheduleReceipt> receipt = set(spec);
    return receipt.ok() ? std::string("accepted") : receipt.error().field;
  };
  ScheduleSpec good = every(seconds{10});
  const auto with = [&good](auto change) {
    ScheduleSpec spec = good;
    change(spec);
    return spec;
  };
  EXPECT_EQ(field(with([](auto& s) { s.every = seconds{9}; })), "every");
  EXPECT_EQ(field(with([](auto& s) { s.every.reset(); })), "cron");
  EXPECT_EQ(field(with([](auto& s) { s.cron = "* * * * *"; })), "every");
  EXPECT_EQ(field(with([](auto& s) { s.every.reset(), s.cron = "0 0 30 2 *"; })), "cron");
  EXPECT_EQ(field(with([](auto& s) { s.every.reset(), s.cron = "* * * *"; })), "cron");
  EXPECT_EQ(field(with([](auto& s) { s.every.reset(), s.cron = "@daily", s.zone = "Moon/Base"; })), "zone");
  EXPECT_EQ(field(with([](auto& s) { s.zone = "Europe/Berlin"; })), "zone");
  EXPECT_EQ(field(with([](auto& s) { s.start = at(10), s.end = at(9); })), "end");
  EXPECT_EQ(field(with([](auto& s) { s.runs = 0; })), "runs");
  EXPECT_EQ(field(with([](auto& s) { s.runs = Limits::kMaxRuns + 1; })), "runs");
  EXPECT_EQ(field(with([](auto& s) { s.name = ".."; })), "name");
  EXPECT_EQ(field(with([](auto& s) { s.jitter = hours{25}; })), "jitter");
  EXPECT_EQ(field(with([](auto& s) { s.topic = "a b"; })), "topic");
  EXPECT_EQ(field(with([](auto& s) { s.name = ""; })), "name");
  EXPECT_EQ(field(with([](auto& s) { s.name = "a@b"; })), "name");
  EXPECT_EQ(field(with([](auto& s) { s.options.lease = Millis{1}; })), "lease");
  const std::string large(2u << 20, 'x');
  EXPECT_EQ(field(with([&](auto& s) { s.body = large; })), "body");
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_EQ(field(good), "accepted");
}

TEST_P(Rule16Recurring, ThereAreNoMoreThanTheLimit) {
  QueueConfig config;
  config.schedules = 1;
  restart(config);
  ASSERT_TRUE(set(every(seconds{10})).ok());
  // The figures of some engines lag behind; this brings them up to date.
  queue_->must<void>("ready", [&](auto reply) { queue_->queue().ready(queue_->now(), std::move(reply)); });
  ScheduleSpec another = every(seconds{10});
  another.name = "another";
  const Result<ScheduleReceipt> refused = set(another);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_THAT(refused.error().detail, HasSubstr("limits.schedules"));
  EXPECT_TRUE(set(every(seconds{20})).ok()) << "the one that is there may change";
  EXPECT_THAT(names(), ElementsAre("s"));
}

TEST_P(Rule16Recurring, NoneIsSetWithoutRoom) {
  ASSERT_TRUE(set(every(seconds{10})).ok());
  queue_->push({.topic = "t", .id = "a"});
  QueueConfig config;
  config.memory_bytes = 1;
  restart(config);
  // The figures of some engines lag behind; this brings them up to date, and may itself find too much.
  static_cast<void>(queue_->ask<void>(
      "ready", [&](auto reply) { queue_->queue().ready(queue_->now(), std::move(reply)); }));
  ScheduleSpec another = every(seconds{10});
  another.name = "another";
  const Result<ScheduleReceipt> refused = set(another);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_FALSE(set(every(seconds{20})).ok()) << "a new definition needs room, too";
  if (!GetParam().durable) return;
  EXPECT_TRUE(pause("s").ok());
  EXPECT_TRUE(remove("s").ok()) << "what frees room goes on";
  EXPECT_THAT(names(), IsEmpty());
}

TEST_P(Rule16Recurring, ATokenSeesTheSchedulesOfItsTopics) {
  const std::vector<std::string> mine{"t"};
  const std::vector<std::string> other{"u.*"};
  ASSERT_TRUE(set(every(seconds{10}), mine).ok());
  EXPECT_THAT(names(mine), ElementsAre("s"));
  EXPECT_THAT(names(other), IsEmpty());
  EXPECT_FALSE(show("s", other));
  ScheduleSpec theirs = every(seconds{10});
  theirs.topic = "u.x";
  EXPECT_EQ(set(theirs, other).error().code, ErrorCode::kConflict);
  EXPECT_EQ(remove("s", other).error().code, ErrorCode::kNotFound) << "as if it were not there";
  EXPECT_TRUE(show("s"));
}

TEST_P(Rule16Recurring, TheForecastTellsOccurrencesFromJobs) {
  ASSERT_TRUE(set(every(seconds{10})).ok());
  ScheduleSpec elsewhere = every(seconds{30});
  elsewhere.name = "elsewhere";
  elsewhere.topic = "u";
  elsewhere.runs = 1;
  ASSERT_TRUE(set(elsewhere).ok());
  queue_->push({.topic = "t", .delay = seconds{5}});
  const ForecastReport all = forecast("", at(0), at(60'000), 2);
  EXPECT_THAT(all.jobs.bins, ElementsAre(1, 0));
  EXPECT_THAT(all.scheduled, ElementsAre(2, 4));
  EXPECT_TRUE(all.has_all_scheduled);
  EXPECT_THAT(forecast("t", at(0), at(60'000), 2).scheduled, ElementsAre(2, 3));
  EXPECT_THAT(forecast("t", at(3'600'000), at(3'660'000), 1).scheduled, ElementsAre(6));
}

TEST_P(Rule16Recurring, WhatHappenedIsCounted) {
  ScheduleSpec spec = every(seconds{10});
  spec.overlap = Overlap::kSkip;
  ASSERT_TRUE(set(spec).ok());
  queue_->run_to(at(10'000));
  queue_->run_to(at(20'000));
  queue_->run_to(at(45'000));
  const TotalStats totals = queue_->totals();
  EXPECT_EQ(totals.schedules.made, 1U);
  EXPECT_EQ(totals.schedules.skipped, 2U);
  EXPECT_EQ(totals.schedules.missed, 1U);
  EXPECT_EQ(totals.usage.schedules, 1U);
  EXPECT_EQ(totals.counts.of(JobState::kReady), 1U);
}

}  // namespace
}  // namespace delayq::contract
