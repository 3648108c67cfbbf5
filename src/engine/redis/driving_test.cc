#include "engine/redis/driving.h"

#include <gmock/gmock.h>

namespace delayq::redis {
namespace {

constexpr Millis kHold{2'000};

constexpr Moment at(int64_t ms) { return from_unix_ms(1'000'000 + ms); }

/// One complete round with nothing due.
void round(Driving& driving, Moment now, Moment next) {
  driving.begin_round(0, now);
  driving.note_mine(0);
  driving.set_next(0, next);
  driving.end_call(0);
}

TEST(Driving, BeginsWithALook) {
  const Driving driving(1, kHold);
  EXPECT_TRUE(driving.wants_round(0, at(0)));
}

TEST(Driving, HasOneRoundAtATime) {
  Driving driving(1, kHold);
  driving.begin_round(0, at(0));
  EXPECT_FALSE(driving.wants_round(0, at(10'000)));
  driving.add_call(0);
  EXPECT_FALSE(driving.end_call(0));
  EXPECT_TRUE(driving.end_call(0));
  EXPECT_TRUE(driving.wants_round(0, at(10'000)));
}

TEST(Driving, TheDriverLooksWhenSomethingIsDueAndRenews) {
  Driving driving(1, kHold);
  round(driving, at(0), at(300));
  EXPECT_FALSE(driving.wants_round(0, at(299)));
  EXPECT_TRUE(driving.wants_round(0, at(300)));
  EXPECT_EQ(driving.next_round(), at(300));
  round(driving, at(300), kNever);
  EXPECT_EQ(driving.next_round(), at(300) + kHold / 2);
}

TEST(Driving, TheOthersWaitUntilTheHoldRunsOut) {
  Driving driving(1, kHold);
  driving.begin_round(0, at(0));
  driving.note_theirs(0, Millis{1'200});
  driving.end_call(0);
  driving.note_earlier(0, at(50));
  EXPECT_FALSE(driving.wants_round(0, at(1'199))) << "what is due is the driver's business";
  EXPECT_TRUE(driving.wants_round(0, at(1'200)));
}

TEST(Driving, AFailedRoundIsTriedAgainSoon) {
  Driving driving(1, kHold);
  driving.begin_round(0, at(0));
  driving.note_failed(0);
  driving.end_call(0);
  EXPECT_FALSE(driving.wants_round(0, at(0)));
  EXPECT_TRUE(driving.wants_round(0, at(0) + Driving::kRetry));
}

TEST(Driving, NewsAreNotForgottenForAnOlderAnswer) {
  Driving driving(1, kHold);
  round(driving, at(0), kNever);
  driving.note_earlier(0, at(100));
  driving.set_next(0, at(900));  // was sent before the news came
  EXPECT_EQ(driving.next_round(), at(100));
  round(driving, at(100), at(900));
  EXPECT_EQ(driving.next_round(), at(900)) << "a look that began after the news knows it all";
}

TEST(Driving, NewsDuringARoundCountAfterIt) {
  Driving driving(1, kHold);
  driving.begin_round(0, at(0));
  driving.note_earlier(0, at(100));
  driving.note_mine(0);
  driving.set_next(0, at(900));
  driving.end_call(0);
  EXPECT_EQ(driving.next_round(), at(100));
}

TEST(Driving, AClockThatWasSetBackDoesNotStopIt) {
  Driving driving(1, kHold);
  round(driving, at(1'000'000), kNever);
  EXPECT_TRUE(driving.wants_round(0, at(0)));
}

TEST(Driving, ShardsAreDrivenApart) {
  Driving driving(2, kHold);
  round(driving, at(0), at(300));
  EXPECT_FALSE(driving.wants_round(0, at(0)));
  EXPECT_TRUE(driving.wants_round(1, at(0)));
  driving.note_earlier(7, at(0));  // from a deployment with more shards: ignored
}

}  // namespace
}  // namespace delayq::redis
