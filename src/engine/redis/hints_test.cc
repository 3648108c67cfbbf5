#include <gmock/gmock.h>

#include "engine/redis/driving.h"

namespace delayq::redis {
namespace {

constexpr Outlet kOwn = Outlet::kTopic;

TEST(Hints, WhatIsNotKnownMayHaveJobs) {
  const Hints hints(2);
  EXPECT_TRUE(hints.may_have(1, "t", kOwn));
}

TEST(Hints, AShardThatHadNoMoreIsLeftOutUntilSomethingIsNoted) {
  Hints hints(2);
  hints.note_empty(1, "t", kOwn, hints.heard(1, "t", kOwn));
  EXPECT_FALSE(hints.may_have(1, "t", kOwn));
  EXPECT_TRUE(hints.may_have(0, "t", kOwn));
  EXPECT_TRUE(hints.may_have(1, "t", Outlet::kCallback));
  EXPECT_TRUE(hints.may_have(1, "u", kOwn));
  hints.note_ready(1, "t", kOwn);
  EXPECT_TRUE(hints.may_have(1, "t", kOwn));
}

TEST(Hints, AnAnswerThatIsOlderThanTheNewsDoesNotCount) {
  Hints hints(2);
  for (int i = 0; i < 2; ++i) {  // first for an unknown topic, then for a known one
    const uint64_t heard = hints.heard(0, "t", kOwn);
    hints.note_ready(0, "t", kOwn);
    hints.note_empty(0, "t", kOwn, heard);
    EXPECT_TRUE(hints.may_have(0, "t", kOwn));
    hints.note_empty(1, "t", kOwn, hints.heard(1, "t", kOwn));
  }
}

TEST(Hints, AreForgottenWhenNewsMayHaveBeenMissed) {
  Hints hints(2);
  hints.note_empty(0, "t", kOwn, hints.heard(0, "t", kOwn));
  const uint64_t heard = hints.heard(0, "t", kOwn);
  hints.forget();
  EXPECT_TRUE(hints.may_have(0, "t", kOwn));
  hints.note_empty(0, "t", kOwn, heard);
  EXPECT_TRUE(hints.may_have(0, "t", kOwn)) << "asked before";
}

TEST(Hints, DoNotGrowWithoutEnd) {
  Hints hints(2);
  for (int i = 0; i < 25'000; ++i) {
    const std::string topic = std::to_string(i);
    hints.note_empty(0, topic, kOwn, hints.heard(0, topic, kOwn));
  }
  EXPECT_TRUE(hints.may_have(0, "0", kOwn));
  EXPECT_FALSE(hints.may_have(0, "24999", kOwn));
}

}  // namespace
}  // namespace delayq::redis
