#include "core/histogram.h"

#include <gmock/gmock.h>

namespace delayq {
namespace {

TEST(Histogram, BucketsDoubleAndTheLastTakesTheRest) {
  Histogram<4> histogram;
  for (const uint64_t value : {0, 1, 2, 3, 4, 1'000'000}) histogram.record(value);
  EXPECT_THAT(histogram.buckets(), testing::ElementsAre(1, 1, 2, 2));
  EXPECT_EQ(histogram.count(), 6U);
  EXPECT_EQ(histogram.sum(), 1'000'010U);
  EXPECT_EQ(Histogram<4>::upper_bound(0), 0U);
  EXPECT_EQ(Histogram<4>::upper_bound(2), 3U);
}

TEST(Histogram, QuantilesAreUpperBounds) {
  Histogram<8> histogram;
  EXPECT_EQ(histogram.quantile(0.5), 0U);
  for (int i = 0; i < 99; ++i) histogram.record(5);
  histogram.record(1'000);
  EXPECT_EQ(histogram.quantile(0.5), 7U);
  EXPECT_EQ(histogram.quantile(0.99), 7U);
  EXPECT_EQ(histogram.quantile(1), UINT64_MAX);
}

TEST(Histogram, TheGreatestValueFindsABucket) {
  Histogram<64> histogram;
  histogram.record(UINT64_MAX);
  EXPECT_EQ(histogram.buckets().back(), 1U);
}

}  // namespace
}  // namespace delayq
