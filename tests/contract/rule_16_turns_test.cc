// Rule 16, as an engine keeps it: a schedule moves on and its job is pushed in one step, or nothing happens.
#include "core/moment.h"
#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

/// A turn with its texts: a test says only what matters to it.
struct TurnSpec {
  explicit TurnSpec(std::string schedule) : name(std::move(schedule)) {}

  TurnSpec& expecting(uint64_t value) { return expected = value, *this; }
  TurnSpec& to(uint64_t value) { return revision = value, *this; }
  TurnSpec& next_at(Moment moment) { return next = moment, *this; }
  TurnSpec& defined_as(std::string text) { return definition = std::move(text), *this; }
  TurnSpec& progressing(std::string text) { return progress = std::move(text), *this; }
  TurnSpec& pushing(std::string topic, Moment occurrence) {
    job = JobSpec(std::move(topic), occurrence_id(name, occurrence)).due_at(occurrence).or_keep();
    return *this;
  }
  TurnSpec& after(std::string topic, Moment occurrence, Overlap how) {
    previous_topic = std::move(topic);
    previous_id = occurrence_id(name, occurrence);
    overlap = how;
    return *this;
  }

  TurnRequest view() const {
    TurnRequest request;
    request.name = name;
    request.expected = expected;
    request.revision = revision;
    request.next = next;
    if (definition) request.definition = *definition;
    request.progress = progress;
    if (job) request.job = job->view();
    if (!previous_id.empty()) request.previous = JobRef{previous_topic, previous_id};
    request.overlap = overlap;
    request.progress_if_skipped = "skipped";
    return request;
  }

  std::string name;
  uint64_t expected = 0;
  uint64_t revision = 0;
  Moment next = kNever;
  std::optional<std::string> definition;
  std::string progress;
  std::optional<JobSpec> job;
  std::string previous_topic;
  std::string previous_id;
  Overlap overlap = Overlap::kAllow;
};

constexpr uint64_t kFirst = 0x8000'0000'0000'0001;  // above what a double can tell apart
constexpr uint64_t kSecond = 0x8000'0000'0000'0002;
constexpr uint64_t kThird = 0x8000'0000'0000'0003;

class Rule16Turns : public EngineContract {
 protected:
  TurnAnswer turn(const TurnSpec& spec) { return engine_.turn(spec.view()); }
  /// A schedule that has made no job yet.
  void define(const std::string& name, Moment next) {
    EXPECT_EQ(turn(TurnSpec(name).to(kFirst).next_at(next).defined_as("rule").progressing("none")).outcome,
              TurnOutcome::kTurned);
  }
  std::vector<std::string> reported() {
    engine_.tick();
    std::vector<std::string> names;
    for (const StoredSchedule& schedule : engine_.schedule_news()) names.push_back(schedule.name);
    return names;
  }
  std::vector<std::string> names(std::string_view after = {}, uint32_t limit = 100) {
    std::vector<std::string> names;
    for (const StoredSchedule& schedule :
         engine_.list_schedules({.after = after, .limit = limit}).schedules) {
      names.push_back(schedule.name);
    }
    return names;
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule16Turns);
INSTANTIATE_TEST_SUITE_P(Shards, Rule16Turns, testing::ValuesIn(engines_with_shards()), name_of_engine);

class Rule16DurableTurns : public Rule16Turns {};
DELAYQ_OVER_DURABLE_ENGINES(Rule16DurableTurns);
INSTANTIATE_TEST_SUITE_P(Shards, Rule16DurableTurns, testing::ValuesIn(engines_with_shards()),
                         name_of_engine);

TEST_P(Rule16Turns, AScheduleIsStoredAsItWasGiven) {
  const std::string bytes("\0\xff rule", 7);
  turn(TurnSpec("nightly").to(kFirst).next_at(at(500)).defined_as(bytes).progressing(bytes + "2"));
  const StoredSchedule expected{"nightly", kFirst, at(500), bytes, bytes + "2"};
  EXPECT_EQ(engine_.get_schedule("nightly"), expected);
  EXPECT_EQ(engine_.usage().schedules, 1U);
  EXPECT_EQ(engine_.usage().jobs, 0U);
  EXPECT_EQ(engine_.get_schedule("night"), std::nullopt);
  EXPECT_THAT(engine_.topic_names(), IsEmpty());
}

TEST_P(Rule16Turns, ATurnMovesItOnAndPushesItsJob) {
  define("s", at(1'000));
  engine_.go_to(at(1'000));
  const TurnAnswer answer =
      turn(TurnSpec("s").expecting(kFirst).to(kSecond).next_at(at(2'000)).progressing("one").pushing(
          "t", at(1'000)));
  EXPECT_EQ(answer, (TurnAnswer{TurnOutcome::kTurned, PushOutcome::kCreated, false}));
  EXPECT_EQ(engine_.get_schedule("s"), (StoredSchedule{"s", kSecond, at(2'000), "rule", "one"}));
  const Taken taken = engine_.take_one("t");
  EXPECT_EQ(taken.job.id, occurrence_id("s", at(1'000)));
  EXPECT_EQ(taken.job.due, at(1'000));
}

TEST_P(Rule16Turns, TheJobIsLikeAnyOther) {
  define("s", at(0));
  TurnSpec spec = TurnSpec("s").expecting(kFirst).to(kSecond).next_at(kNever).pushing("t", at(0));
  spec.job->due_at(at(700))
      .with_body("body")
      .with_options("options")
      .in_group("g")
      .with_priority(7)
      .called_back();
  turn(spec);
  const std::string id = occurrence_id("s", at(0));
  EXPECT_EQ(engine_.count("t", JobState::kDelayed), 1U);
  EXPECT_EQ(engine_.get("t", id)->body, "body");
  EXPECT_EQ(engine_.get("t", id)->options, "options");
  EXPECT_EQ(engine_.get("t", id)->priority, 7U);
  EXPECT_EQ(engine_.get("t", id)->group, "g");
  EXPECT_THAT(engine_.locate(id), ElementsAre("t"));
  engine_.go_to(at(699));
  engine_.tick();
  EXPECT_EQ(engine_.state_of("t", id), JobState::kDelayed);
  EXPECT_EQ(engine_.cancel_group("g").cancelled, 1U);
}

TEST_P(Rule16Turns, AnotherRevisionChangesNothing) {
  define("s", at(1'000));
  for (const uint64_t expected : {uint64_t{0}, kSecond}) {
    const TurnAnswer answer = turn(
        TurnSpec("s").expecting(expected).to(kThird).next_at(at(9)).defined_as("x").pushing("t", at(1'000)));
    EXPECT_EQ(answer.outcome, TurnOutcome::kChanged) << expected;
  }
  EXPECT_EQ(turn(TurnSpec("unknown").expecting(kFirst).to(kThird).defined_as("x")).outcome,
            TurnOutcome::kChanged);
  EXPECT_EQ(engine_.get_schedule("s"), (StoredSchedule{"s", kFirst, at(1'000), "rule", "none"}));
  EXPECT_EQ(engine_.get_schedule("unknown"), std::nullopt);
  EXPECT_EQ(engine_.usage().jobs, 0U);
}

TEST_P(Rule16Turns, OfTwoTurnsFromOneRevisionOneHappens) {
  define("s", at(0));
  const TurnSpec one = TurnSpec("s").expecting(kFirst).to(kSecond).next_at(at(9)).pushing("t", at(0));
  const TurnSpec two = TurnSpec("s").expecting(kFirst).to(kThird).next_at(at(9)).pushing("u", at(0));
  const std::vector<TurnAnswer> answers = engine_.turn_all({one.view(), two.view()});
  EXPECT_EQ(answers[0].outcome, TurnOutcome::kTurned);
  EXPECT_EQ(answers[1].outcome, TurnOutcome::kChanged);
  EXPECT_THAT(engine_.topic_names(), ElementsAre("t"));
}

TEST_P(Rule16Turns, ATurnIsSeenByTheNextOneOfTheBatch) {
  const TurnSpec first = TurnSpec("s").to(kFirst).next_at(at(0)).defined_as("rule");
  const TurnSpec second = TurnSpec("s").expecting(kFirst).to(kSecond).next_at(at(5)).pushing("t", at(0));
  const std::vector<TurnAnswer> answers = engine_.turn_all({first.view(), second.view()});
  EXPECT_EQ(answers[0].outcome, TurnOutcome::kTurned);
  EXPECT_EQ(answers[1].outcome, TurnOutcome::kTurned);
  EXPECT_EQ(engine_.get_schedule("s")->revision, kSecond);
}

TEST_P(Rule16Turns, ADefinitionStaysUnlessItIsGiven) {
  define("s", at(0));
  turn(TurnSpec("s").expecting(kFirst).to(kSecond).next_at(at(5)).defined_as("other").progressing("p"));
  turn(TurnSpec("s").expecting(kSecond).to(kThird).next_at(at(6)).progressing("q"));
  EXPECT_EQ(engine_.get_schedule("s"), (StoredSchedule{"s", kThird, at(6), "other", "q"}));
}

TEST_P(Rule16Turns, ARemovedOneIsGoneAndItsJobsStay) {
  engine_.tick_before_verbs(false);
  define("s", at(0));
  turn(TurnSpec("s").expecting(kFirst).to(kSecond).next_at(at(5)).pushing("t", at(0)));
  EXPECT_EQ(turn(TurnSpec("s").expecting(kSecond)).outcome, TurnOutcome::kTurned);
  EXPECT_EQ(engine_.get_schedule("s"), std::nullopt);
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_EQ(engine_.usage().schedules, 0U);
  engine_.go_to(at(10'000));
  EXPECT_THAT(reported(), IsEmpty());
  EXPECT_EQ(engine_.take_one("t").job.id, occurrence_id("s", at(0)));
}

TEST_P(Rule16Turns, ALiveJobOfThatIdIsKept) {
  define("s", at(0));
  engine_.push(JobSpec("t", occurrence_id("s", at(0))).due_at(at(60'000)).with_body("mine"));
  const TurnAnswer answer =
      turn(TurnSpec("s").expecting(kFirst).to(kSecond).next_at(at(5)).pushing("t", at(0)));
  EXPECT_EQ(answer, (TurnAnswer{TurnOutcome::kTurned, PushOutcome::kKept, false}));
  EXPECT_EQ(engine_.get("t", occurrence_id("s", at(0)))->body, "mine");
}

// ---- what is due is reported

TEST_P(Rule16Turns, ADueOneIsReportedAndNoneBefore) {
  define("s", at(1'000));
  define("later", at(5'000));
  define("never", kNever);
  engine_.go_to(at(999));
  EXPECT_EQ(engine_.tick(), at(1'000));
  EXPECT_THAT(engine_.schedule_news(), IsEmpty());
  engine_.go_to(at(1'000));
  engine_.tick();
  EXPECT_THAT(engine_.schedule_news(), ElementsAre(StoredSchedule{"s", kFirst, at(1'000), "rule", "none"}));
}

TEST_P(Rule16Turns, OneThatIsNotTurnedIsReportedAgain) {
  define("s", at(1'000));
  engine_.go_to(at(1'000));
  EXPECT_THAT(reported(), ElementsAre("s"));
  EXPECT_THAT(reported(), IsEmpty());
  engine_.go_to(at(1'000) + kDueScheduleReminder);
  EXPECT_THAT(reported(), ElementsAre("s"));
  turn(TurnSpec("s").expecting(kFirst).to(kSecond).next_at(at(60'000)));
  engine_.go_to(at(50'000));
  EXPECT_THAT(reported(), IsEmpty());
}

TEST_P(Rule16Turns, OneThatIsStillDueAfterItsTurnIsReportedAtOnce) {
  define("s", at(1'000));
  engine_.go_to(at(10'000));
  EXPECT_THAT(reported(), ElementsAre("s"));
  turn(TurnSpec("s").expecting(kFirst).to(kSecond).next_at(at(2'000)).pushing("t", at(1'000)));
  EXPECT_THAT(reported(), ElementsAre("s"));
}

TEST_P(Rule16Turns, AnEarlierTimeIsHeardOf) {
  define("s", at(60'000));
  engine_.tick();
  turn(TurnSpec("s").expecting(kFirst).to(kSecond).next_at(at(100)));
  EXPECT_LE(engine_.tick(), at(100));
  engine_.go_to(at(100));
  EXPECT_THAT(reported(), ElementsAre("s"));
}

TEST_P(Rule16Turns, ManyAreReportedInBoundedPieces) {
  constexpr size_t kMany = kDueSchedules + 500;
  std::vector<TurnSpec> specs;
  std::vector<TurnRequest> requests;
  for (size_t i = 0; i < kMany; ++i) {
    specs.push_back(TurnSpec("s" + std::to_string(i)).to(kFirst).next_at(at(10)).defined_as("rule"));
  }
  for (const TurnSpec& spec : specs) requests.push_back(spec.view());
  engine_.turn_all(requests);
  EXPECT_EQ(engine_.usage().schedules, kMany);
  engine_.go_to(at(10));
  engine_.tick();
  EXPECT_THAT(engine_.schedule_news(), SizeIs(kMany));
}

// ---- the job before

TEST_P(Rule16Turns, SkipPushesNothingWhileTheJobBeforeIsLive) {
  define("s", at(0));
  turn(TurnSpec("s").expecting(kFirst).to(kSecond).next_at(at(5)).pushing("t", at(0)));
  const Taken running = engine_.take_one("t");
  const TurnAnswer answer = turn(TurnSpec("s")
                                     .expecting(kSecond)
                                     .to(kThird)
                                     .next_at(at(10))
                                     .progressing("made")
                                     .pushing("t", at(5))
                                     .after("t", at(0), Overlap::kSkip));
  EXPECT_EQ(answer.outcome, TurnOutcome::kSkipped);
  EXPECT_EQ(engine_.get_schedule("s"), (StoredSchedule{"s", kThird, at(10), "rule", "skipped"}));
  EXPECT_EQ(engine_.usage().jobs, 1U);
  engine_.ack(running);
  EXPECT_EQ(turn(TurnSpec("s")
                     .expecting(kThird)
                     .to(kFirst)
                     .next_at(at(20))
                     .progressing("made")
                     .pushing("t", at(10))
                     .after("t", at(0), Overlap::kSkip))
                .outcome,
            TurnOutcome::kTurned);
  EXPECT_EQ(engine_.get_schedule("s")->progress, "made");
}

TEST_P(Rule16Turns, ADeadOrDoneJobNeverBlocks) {
  for (const bool dies : {true, false}) {
    const std::string name = dies ? "dies" : "done";
    define(name, at(0));
    turn(TurnSpec(name).expecting(kFirst).to(kSecond).next_at(at(5)).pushing("t", at(0)));
    const Taken taken = engine_.take_one("t");
    if (dies) {
      engine_.bury(taken);
    } else {
      engine_.ack(taken);
    }
    const TurnSpec second = TurnSpec(name).expecting(kSecond).to(kThird).next_at(at(10)).pushing("u", at(5));
    EXPECT_EQ(turn(TurnSpec(second).after("t", at(0), Overlap::kSkip)).outcome, TurnOutcome::kTurned);
  }
  EXPECT_EQ(engine_.count("u", JobState::kReady) + engine_.count("u", JobState::kDelayed), 2U);
}

TEST_P(Rule16Turns, ReplaceCancelsTheJobBeforeWhileItWaits) {
  define("s", at(0));
  turn(TurnSpec("s").expecting(kFirst).to(kSecond).next_at(at(5)).pushing("t", at(0)));
  // In another topic: the schedule was changed in between.
  const TurnAnswer answer = turn(TurnSpec("s")
                                     .expecting(kSecond)
                                     .to(kThird)
                                     .next_at(at(10))
                                     .pushing("u", at(5))
                                     .after("t", at(0), Overlap::kReplace));
  EXPECT_EQ(answer, (TurnAnswer{TurnOutcome::kTurned, PushOutcome::kCreated, true}));
  EXPECT_EQ(engine_.get("t", occurrence_id("s", at(0))), std::nullopt);
  EXPECT_TRUE(engine_.get("u", occurrence_id("s", at(5))));
  EXPECT_THAT(engine_.topic_names(), ElementsAre("u"));
}

TEST_P(Rule16Turns, ReplaceLeavesARunningJobAlone) {
  define("s", at(0));
  turn(TurnSpec("s").expecting(kFirst).to(kSecond).next_at(at(5)).pushing("t", at(0)));
  const Taken running = engine_.take_one("t");
  const TurnAnswer answer = turn(TurnSpec("s")
                                     .expecting(kSecond)
                                     .to(kThird)
                                     .next_at(at(10))
                                     .pushing("t", at(5))
                                     .after("t", at(0), Overlap::kReplace));
  EXPECT_EQ(answer, (TurnAnswer{TurnOutcome::kTurned, PushOutcome::kCreated, false}));
  EXPECT_EQ(engine_.ack(running), AckOutcome::kAcked);
}

// ---- listing

TEST_P(Rule16Turns, ListedByNameInPages) {
  for (const std::string name : {"b", "a", "\xc3\xa4", "c", "a.b"}) define(name, kNever);
  EXPECT_THAT(names(), ElementsAre("a", "a.b", "b", "c", "\xc3\xa4"));
  EXPECT_THAT(names("", 2), ElementsAre("a", "a.b"));
  EXPECT_THAT(names("a.b", 2), ElementsAre("b", "c"));
  EXPECT_THAT(names("bb"), ElementsAre("c", "\xc3\xa4"));
  EXPECT_TRUE(engine_.list_schedules({.limit = 4}).has_more);
  EXPECT_FALSE(engine_.list_schedules({.limit = 5}).has_more);
}

TEST_P(Rule16Turns, APageIsBoundedInBytes) {
  const std::string large(100'000, 'x');
  for (const std::string name : {"a", "b", "c"}) {
    turn(TurnSpec(name).to(kFirst).next_at(kNever).defined_as(large));
  }
  const SchedulePage page = engine_.list_schedules({.max_bytes = 150'000});
  EXPECT_THAT(page.schedules, SizeIs(2));
  EXPECT_TRUE(page.has_more);
  EXPECT_EQ(page.schedules[1].definition, large);
}

// ---- what was answered is durable

TEST_P(Rule16DurableTurns, SurviveARestart) {
  define("s", at(1'000));
  define("removed", at(1'000));
  turn(TurnSpec("removed").expecting(kFirst));
  turn(TurnSpec("s").expecting(kFirst).to(kSecond).next_at(at(2'000)).progressing("one").pushing("t",
                                                                                                 at(1'000)));
  reopen();
  EXPECT_EQ(engine_.get_schedule("s"), (StoredSchedule{"s", kSecond, at(2'000), "rule", "one"}));
  EXPECT_EQ(engine_.get_schedule("removed"), std::nullopt);
  EXPECT_EQ(engine_.usage().schedules, 1U);
  EXPECT_TRUE(engine_.get("t", occurrence_id("s", at(1'000))));
  engine_.go_to(at(2'000));
  EXPECT_THAT(reported(), ElementsAre("s"));
}

TEST_P(Rule16DurableTurns, SurviveALossOfPower) {
  define("s", at(1'000));
  turn(TurnSpec("s").expecting(kFirst).to(kSecond).next_at(at(2'000)).progressing("one").pushing("t",
                                                                                                 at(1'000)));
  lose_power();
  EXPECT_EQ(engine_.get_schedule("s"), (StoredSchedule{"s", kSecond, at(2'000), "rule", "one"}));
  EXPECT_TRUE(engine_.get("t", occurrence_id("s", at(1'000))));
}

}  // namespace
}  // namespace delayq::contract
