#include "queue/topic_table.h"

#include <gmock/gmock.h>

#include "queue/waiters.h"

namespace delayq {
namespace {

constexpr Moment kNow = from_unix_ms(1'000);

TEST(TopicTable, OpensOnceAndFindsAgain) {
  const EffectiveSettings defaults;
  TopicTable table{defaults};
  EXPECT_EQ(table.find("a"), nullptr);
  const TopicPtr a = table.open("a", kNow);
  EXPECT_EQ(table.open("a", kNow + Millis{5}), a);
  EXPECT_EQ(a->last_used, kNow + Millis{5});
  EXPECT_EQ(table.find("a"), a);
  EXPECT_EQ(a->settings, &defaults);
  EXPECT_EQ(table.size(), 1U);
}

TEST(TopicTable, ForgettingLeavesTheOthersInPlace) {
  const EffectiveSettings defaults;
  TopicTable table{defaults};
  for (const char* name : {"a", "b", "c"}) table.open(name, kNow);
  table.forget("a");
  table.forget("never there");
  EXPECT_EQ(table.size(), 2U);
  EXPECT_EQ(table.find("a"), nullptr);
  for (const char* name : {"b", "c"}) {
    ASSERT_NE(table.find(name), nullptr);
    EXPECT_EQ(table.find(name)->name, name);
    EXPECT_EQ(table.at(table.place_of(name).value())->name, name);
  }
  table.forget("c");
  table.forget("b");
  EXPECT_EQ(table.size(), 0U);
}

TEST(TopicTable, WhatIsForgottenStaysInTheTotals) {
  const EffectiveSettings defaults;
  TopicTable table{defaults};
  table.count(table.open("a", kNow).get(), Tally::kPushed, 3);
  table.count(nullptr, Tally::kPushed, 1);
  table.forget("a");
  EXPECT_EQ(table.totals().of(Tally::kPushed), 4U);
  EXPECT_EQ(table.open("a", kNow)->tallies.of(Tally::kPushed), 0U);
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
