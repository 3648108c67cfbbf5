#include "queue/topics.h"

#include <gmock/gmock.h>

#include "queue/context.h"

namespace delayq {
namespace {

constexpr Moment kOpened = from_unix_ms(1'000);

TEST(KnownTopics, OpensOnceAndFindsAgain) {
  const EffectiveSettings defaults;
  KnownTopics topics{defaults};
  EXPECT_EQ(topics.find("a"), nullptr);
  const TopicPtr a = topics.open("a", kOpened);
  EXPECT_EQ(topics.open("a", kOpened + Millis{5}), a);
  EXPECT_EQ(a->last_used, kOpened + Millis{5});
  EXPECT_EQ(topics.find("a"), a);
  EXPECT_EQ(a->settings, &defaults);
  EXPECT_EQ(topics.size(), 1U);
}

TEST(KnownTopics, ForgettingLeavesTheOthersInPlace) {
  const EffectiveSettings defaults;
  KnownTopics topics{defaults};
  for (const char* name : {"a", "b", "c"}) topics.open(name, kOpened);
  topics.forget("a");
  topics.forget("never there");
  EXPECT_EQ(topics.size(), 2U);
  EXPECT_EQ(topics.find("a"), nullptr);
  for (const char* name : {"b", "c"}) {
    ASSERT_NE(topics.find(name), nullptr);
    EXPECT_EQ(topics.find(name)->name, name);
    EXPECT_EQ(topics.at(topics.place_of(name).value())->name, name);
  }
  topics.forget("c");
  topics.forget("b");
  EXPECT_EQ(topics.size(), 0U);
}

TEST(KnownTopics, WhatIsForgottenStaysInTheTotals) {
  const EffectiveSettings defaults;
  KnownTopics topics{defaults};
  topics.count(topics.open("a", kOpened).get(), Tally::kPushed, 3);
  topics.count(nullptr, Tally::kPushed, 1);
  topics.forget("a");
  EXPECT_EQ(topics.totals().of(Tally::kPushed), 4U);
  EXPECT_EQ(topics.open("a", kOpened)->tallies.of(Tally::kPushed), 0U);
}

TEST(Places, AreTheItemsThemselvesWhileAllAreKept) {
  Places places;
  places.keep();
  places.keep();
  EXPECT_EQ(places[0], 0U);
  EXPECT_EQ(places[1], 1U);
}

TEST(Places, PassOverWhatWasLeftOut) {
  Places places;
  places.keep();
  places.leave_out();
  places.leave_out();
  places.keep();
  places.leave_out();
  places.keep();
  EXPECT_EQ(places[0], 0U);
  EXPECT_EQ(places[1], 3U);
  EXPECT_EQ(places[2], 5U);

  Places from_the_start;
  from_the_start.leave_out();
  from_the_start.keep();
  EXPECT_EQ(from_the_start[0], 1U);
}

}  // namespace
}  // namespace delayq
