#include <gmock/gmock.h>

#include "queue/verbs.h"

namespace delayq {
namespace {

TEST(Lateness, BucketsDouble) {
  Lateness lateness;
  for (const int64_t ms : {0, 1, 2, 3, 4, 7, 8}) lateness.record(Millis{ms});
  EXPECT_EQ(lateness.buckets()[0], 1U);
  EXPECT_EQ(lateness.buckets()[1], 1U);
  EXPECT_EQ(lateness.buckets()[2], 2U);
  EXPECT_EQ(lateness.buckets()[3], 2U);
  EXPECT_EQ(lateness.buckets()[4], 1U);
  EXPECT_EQ(lateness.count(), 7U);
  EXPECT_EQ(lateness.sum(), Millis{25});
  EXPECT_EQ(Lateness::upper_bound(0), Millis{0});
  EXPECT_EQ(Lateness::upper_bound(4), Millis{15});
}

TEST(Lateness, NothingIsLateByLessThanNothing) {
  Lateness lateness;
  lateness.record(Millis{-5});
  EXPECT_EQ(lateness.buckets()[0], 1U);
  EXPECT_EQ(lateness.sum(), Millis{0});
}

TEST(Lateness, TheLastBucketTakesTheRest) {
  Lateness lateness;
  lateness.record(std::chrono::days{3'000});
  EXPECT_EQ(lateness.buckets().back(), 1U);
  EXPECT_EQ(lateness.quantile(0.5), Millis::max());
}

TEST(Lateness, QuantilesAreUpperBounds) {
  Lateness lateness;
  EXPECT_EQ(lateness.quantile(0.99), Millis{0});
  for (int i = 0; i < 99; ++i) lateness.record(Millis{2});
  lateness.record(Millis{1'000});
  EXPECT_EQ(lateness.quantile(0.5), Millis{3});
  EXPECT_EQ(lateness.quantile(0.99), Millis{3});
  EXPECT_EQ(lateness.quantile(1), Millis{1'023});
}

TEST(Tallies, CountEachForItself) {
  Tallies tallies;
  tallies.add(Tally::kPushed, 2);
  tallies.add(Tally::kCancelled, 3);
  tallies.add(Tally::kPushed, 1);
  EXPECT_EQ(tallies.of(Tally::kPushed), 3U);
  EXPECT_EQ(tallies.of(Tally::kCancelled), 3U);
  EXPECT_EQ(tallies.of(Tally::kDied), 0U);
  EXPECT_EQ(kTallyNames[static_cast<size_t>(Tally::kCancelled)], "cancelled");
}

}  // namespace
}  // namespace delayq
