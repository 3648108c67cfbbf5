#include "tests/simulation/schedule_history.h"

#include <gtest/gtest.h>

#include "core/moment.h"
#include "tests/simulation/model.h"

namespace delayq::simulation {
namespace {

constexpr Moment kBegin = from_unix_ms(1'700'000'000'000);

/// A model with one schedule, which is turned again and again.
class Crash : public testing::Test {
 protected:
  static ScheduleSpec spec() {
    ScheduleSpec spec;
    spec.name = "s";
    spec.every = std::chrono::seconds{10};
    spec.topic = "t";
    return spec;
  }

  Model::Operation turn(ScheduleProgress progress, std::optional<Moment> made, uint64_t revision) {
    const Model::Operation operation = model_.begin();
    const std::string definition = encode_definition(spec());
    const std::string encoded = encode_progress(progress);
    const std::string id = made ? occurrence_id("s", *made) : "";
    TurnRequest request{.name = "s", .expected = revision_, .revision = revision, .progress = encoded};
    request.next = progress.decided + std::chrono::seconds{10};
    if (revision_ == 0) request.definition = definition;
    if (made) {
      request.job.emplace();
      request.job->topic = "t";
      request.job->id = id;
      request.job->due = *made;
      request.job->on_conflict = OnConflict::kKeep;
    }
    std::string wrong;
    model_.turn(operation, made.value_or(kBegin), request, wrong);
    EXPECT_EQ(wrong, "");
    revision_ = revision;
    return operation;
  }
  /// The schedule exists, and that is durable.
  void set() {
    progress_.created = progress_.decided = kBegin;
    model_.answered(turn(progress_, std::nullopt, 1));
    before_ = look();
  }
  /// Its next job.
  Model::Operation make(uint64_t revision) {
    const Moment at = progress_.decided + std::chrono::seconds{10};
    progress_.decided = progress_.previous = at;
    progress_.previous_topic = "t";
    ++progress_.made;
    return turn(progress_, at, revision);
  }
  Survey look() const {
    Survey survey;
    survey.jobs = model_.expected();
    for (const auto& entry : model_.schedules()) survey.schedules.push_back(entry->schedule);
    return survey;
  }
  bool may_be(const Survey& survey) { return model_.adopt(survey, kBegin, true).ok(); }

  Model model_;
  ScheduleProgress progress_;
  uint64_t revision_ = 0;
  Survey before_;
};

TEST_F(Crash, AnUnansweredTurnHasHappened) {
  set();
  make(2);
  EXPECT_TRUE(may_be(look()));
}

TEST_F(Crash, OrNothingOfIt) {
  set();
  make(2);
  EXPECT_TRUE(may_be(before_));
}

TEST_F(Crash, NotTheJobAlone) {
  set();
  make(2);
  Survey torn = look();
  torn.schedules = before_.schedules;
  EXPECT_FALSE(may_be(torn));
}

TEST_F(Crash, NotTheScheduleAlone) {
  set();
  make(2);
  Survey torn = look();
  torn.jobs.clear();
  EXPECT_FALSE(may_be(torn));
}

TEST_F(Crash, TheJobMayHaveGoneOn) {
  set();
  make(2);
  const Survey made = look();
  const std::string id = made.jobs.front().id;
  const JobRef job{"t", id};
  model_.apply<std::vector<CancelOutcome>>(model_.begin(), Promise::kChanges,
                                           [&](Engine& engine, Reply<std::vector<CancelOutcome>> reply) {
                                             engine.cancel(kBegin, {&job, 1}, std::move(reply));
                                           });
  EXPECT_TRUE(may_be(look()));
}

TEST_F(Crash, AnAnsweredTurnIsNotLost) {
  set();
  model_.answered(make(2));
  EXPECT_FALSE(may_be(before_));
}

TEST_F(Crash, OfSeveralTurnsTheLastOnesAreLost) {
  set();
  make(2);
  const Survey first = look();
  make(3);
  EXPECT_TRUE(may_be(first));
}

TEST_F(Crash, AJobOfALaterTurnDoesNotStayWithoutIt) {
  set();
  make(2);
  Survey torn = look();
  make(3);
  torn.jobs = look().jobs;
  EXPECT_FALSE(may_be(torn));
}

TEST_F(Crash, WhatALostTurnHadMadeIsMadeAgain) {
  set();
  const ScheduleProgress before = progress_;
  make(2);
  ASSERT_TRUE(may_be(before_));
  progress_ = before;
  revision_ = 1;
  make(3);
  EXPECT_EQ(model_.occurrences().made(), 1U);
}

TEST_F(Crash, WhatWasRemovedMayBeThereAgainWithItsJobs) {
  set();
  make(2);
  const Survey made = look();
  TurnRequest request{.name = "s", .expected = 2};
  std::string wrong;
  model_.turn(model_.begin(), kBegin, request, wrong);
  EXPECT_EQ(wrong, "");
  EXPECT_TRUE(may_be(made));
}

}  // namespace
}  // namespace delayq::simulation
