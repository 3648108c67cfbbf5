#include "tests/simulation/occurrences.h"

#include <gmock/gmock.h>

#include "core/moment.h"

namespace delayq::simulation {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Moment kSet = from_unix_ms(1'700'000'000'000);

/// A schedule of every ten seconds, turned by hand: rightly, and in every wrong way.
class OccurrencesTest : public testing::Test {
 protected:
  OccurrencesTest() {
    spec_.name = "s";
    spec_.topic = "t";
    spec_.every = seconds{10};
    progress_.created = progress_.decided = kSet;
  }

  std::string set() { return turn(kSet, std::nullopt); }
  /// A turn to `progress_`.
  std::string turn(Moment now, std::optional<Moment> made, TurnOutcome outcome = TurnOutcome::kTurned) {
    std::optional<StoredSchedule> before = stored_;
    stored_ = StoredSchedule{"s", ++last_, next_.value_or(progress_.decided + seconds{10}),
                             encode_definition(spec_), encode_progress(progress_)};
    const std::string id = made ? occurrence_id("s", *made) : "";
    const std::string previous_id = previous_ ? occurrence_id("s", *previous_) : "";
    TurnRequest request{.name = "s"};
    if (made) {
      request.job.emplace();
      request.job->topic = "t";
      request.job->id = id;
      request.job->due = due_.value_or(*made);
    }
    if (previous_) request.previous = JobRef{"t", previous_id};
    return occurrences_.turned({last_, now, before ? &*before : nullptr, &*stored_, request, {outcome}});
  }
  /// The occurrence after so many seconds is made, and `missed` before it are not.
  std::string make(Moment at, Moment now, uint64_t missed = 0) {
    progress_.decided = progress_.previous = at;
    progress_.missed += missed;
    ++progress_.made;
    return turn(now, at);
  }

  Occurrences occurrences_;
  ScheduleSpec spec_;
  ScheduleProgress progress_;
  std::optional<StoredSchedule> stored_;
  std::optional<Moment> next_;
  std::optional<Moment> due_;
  std::optional<Moment> previous_;
  uint64_t last_ = 0;
};

TEST_F(OccurrencesTest, OneJobForEach) {
  EXPECT_THAT(set(), IsEmpty());
  EXPECT_THAT(make(kSet + seconds{10}, kSet + seconds{10}), IsEmpty());
  EXPECT_THAT(make(kSet + seconds{20}, kSet + seconds{21}), IsEmpty());
  EXPECT_THAT(occurrences_.check_counts(*stored_), IsEmpty());
  EXPECT_EQ(occurrences_.made(), 2U);
}

TEST_F(OccurrencesTest, NeverEarly) {
  set();
  EXPECT_THAT(make(kSet + seconds{10}, kSet + seconds{10} - Millis{1}), HasSubstr("before its time"));
}

TEST_F(OccurrencesTest, NeverDueEarly) {
  set();
  due_ = kSet + seconds{10} - Millis{1};
  EXPECT_THAT(make(kSet + seconds{10}, kSet + seconds{11}), HasSubstr("due at the wrong time"));
}

TEST_F(OccurrencesTest, NeverTwice) {
  set();
  make(kSet + seconds{10}, kSet + seconds{10});
  progress_.decided = kSet;
  stored_->progress = encode_progress(progress_);
  EXPECT_THAT(make(kSet + seconds{10}, kSet + seconds{10}), HasSubstr("made twice"));
}

TEST_F(OccurrencesTest, AgainAfterACrashThatLostIt) {
  set();
  const StoredSchedule before = *stored_;
  make(kSet + seconds{10}, kSet + seconds{10});
  occurrences_.went_back("s", 1);
  stored_ = before;
  progress_.made = 0;
  EXPECT_THAT(make(kSet + seconds{10}, kSet + seconds{10}), IsEmpty());
  EXPECT_EQ(occurrences_.made(), 1U);
}

TEST_F(OccurrencesTest, WhatIsLateIsCounted) {
  set();
  EXPECT_THAT(make(kSet + seconds{30}, kSet + seconds{35}, 2), IsEmpty());
}

TEST_F(OccurrencesTest, NoneIsLost) {
  set();
  EXPECT_THAT(make(kSet + seconds{30}, kSet + seconds{35}, 1), HasSubstr("3 occurrences came, and 2"));
}

TEST_F(OccurrencesTest, TheLastOneIsMade) {
  set();
  EXPECT_THAT(make(kSet + seconds{20}, kSet + seconds{35}, 1), HasSubstr("there is a later one"));
}

TEST_F(OccurrencesTest, AllAreMadeInOrder) {
  spec_.missed = Missed::kAll;
  set();
  EXPECT_THAT(make(kSet + seconds{10}, kSet + seconds{35}), IsEmpty());
  EXPECT_THAT(make(kSet + seconds{30}, kSet + seconds{35}, 1), HasSubstr("not the first one"));
}

TEST_F(OccurrencesTest, GivenUpOnlyWhenItIsLate) {
  spec_.missed = Missed::kSkip;
  set();
  progress_.decided = kSet + seconds{10};
  progress_.missed = 1;
  next_ = kSet + seconds{20};
  EXPECT_THAT(turn(kSet + seconds{15}, std::nullopt), HasSubstr("gave up"));
}

TEST_F(OccurrencesTest, NoneIsMadeWhileItIsPaused) {
  progress_.paused = true;
  next_ = kNever;
  EXPECT_THAT(set(), IsEmpty());
  EXPECT_THAT(make(kSet + seconds{10}, kSet + seconds{10}), HasSubstr("paused"));
}

TEST_F(OccurrencesTest, NotMoreThanItsRuns) {
  spec_.runs = 1;
  set();
  EXPECT_THAT(make(kSet + seconds{10}, kSet + seconds{10}), IsEmpty());
  EXPECT_THAT(make(kSet + seconds{20}, kSet + seconds{20}), HasSubstr("last run"));
}

TEST_F(OccurrencesTest, TheNextOneIsNotForgotten) {
  set();
  next_ = kSet + seconds{30};
  EXPECT_THAT(make(kSet + seconds{10}, kSet + seconds{10}), HasSubstr("looks again at"));
}

TEST_F(OccurrencesTest, OverlapIsAboutTheJobBefore) {
  spec_.overlap = Overlap::kSkip;
  set();
  make(kSet + seconds{10}, kSet + seconds{10});
  EXPECT_THAT(make(kSet + seconds{20}, kSet + seconds{20}), HasSubstr("comes after ''"));
}

TEST_F(OccurrencesTest, CountsThatAreNotThoseOfTheRule) {
  set();
  make(kSet + seconds{10}, kSet + seconds{10});
  ++progress_.missed;
  stored_->progress = encode_progress(progress_);
  EXPECT_THAT(occurrences_.check_counts(*stored_), HasSubstr("1 occurrences came"));
}

}  // namespace
}  // namespace delayq::simulation
