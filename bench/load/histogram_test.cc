#include "bench/load/histogram.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace delayq::bench {
namespace {

TEST(Histogram, HasNothingToSayOfNothing) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.percentile(0.5), Nanos{0});
  EXPECT_EQ(histogram.max(), Nanos{0});
}

TEST(Histogram, IsExactForSmallNumbers) {
  Histogram histogram;
  for (int i = 1; i <= 100; ++i) histogram.record(Nanos{i});
  EXPECT_EQ(histogram.percentile(0.5), Nanos{50});
  EXPECT_EQ(histogram.percentile(0.99), Nanos{99});
  EXPECT_EQ(histogram.percentile(0.999), Nanos{100});
  EXPECT_EQ(histogram.percentile(0), Nanos{1});
  EXPECT_EQ(histogram.percentile(1), Nanos{100});
}

TEST(Histogram, CountsWhatIsNegativeAsZero) {
  Histogram histogram;
  histogram.record(Nanos{-5}, 3);
  EXPECT_EQ(histogram.count(), 3U);
  EXPECT_EQ(histogram.percentile(0.5), Nanos{0});
}

TEST(Histogram, HoldsTheLongestDurationThereIs) {
  Histogram histogram;
  histogram.record(Nanos::max());
  EXPECT_EQ(histogram.percentile(0.5), Nanos::max());
}

TEST(Histogram, MergesAsIfAllWereRecordedInOne) {
  Histogram one;
  Histogram other;
  one.record(Nanos{10}, 9);
  other.record(Nanos{1'000'000});
  one.merge(other);
  EXPECT_EQ(one.count(), 10U);
  EXPECT_EQ(one.percentile(0.9), Nanos{10});
  EXPECT_EQ(one.max(), Nanos{1'000'000});
}

RC_GTEST_PROP(HistogramProperty, APercentileIsNeverBetterThanTheTruthAndLessThanOnePercentWorse, ()) {
  auto numbers = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 1'000'000'000'000)));
  Histogram histogram;
  for (const int64_t number : numbers) histogram.record(Nanos{number});
  std::sort(numbers.begin(), numbers.end());
  const int64_t truth = numbers[(numbers.size() + 1) / 2 - 1];
  const int64_t said = histogram.percentile(0.5).count();
  RC_ASSERT(said >= truth);
  RC_ASSERT(said - truth <= truth / 100);
}

}  // namespace
}  // namespace delayq::bench
