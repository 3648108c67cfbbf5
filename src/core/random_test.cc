#include "core/random.h"

#include <array>

#include <gtest/gtest.h>

namespace delayq {
namespace {

// The published outputs of splitmix64 for seed 1234567 and of xoshiro256** filled by splitmix64 from seed 0.
TEST(Random, mixes_as_splitmix64_does) {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15U;
  EXPECT_EQ(mix64(1234567 + kStep), 6457827717110365317U);
  EXPECT_EQ(mix64(1234567 + 2 * kStep), 3203168211198807973U);
  EXPECT_EQ(mix64(1234567 + 3 * kStep), 9817491932198370423U);
}

TEST(Random, is_xoshiro256_starstar) {
  Random random{0};
  EXPECT_EQ(random.next(), 0x99ec5f36cb75f2b4U);
  EXPECT_EQ(random.next(), 0xbf6e1f784956452aU);
  EXPECT_EQ(random.next(), 0x1a5f849d4933e6e0U);
  EXPECT_EQ(random.next(), 0x6aa594f1262d2d2cU);
}

TEST(Random, a_seed_replays_and_another_differs) {
  Random first{7};
  Random again{7};
  Random other{8};
  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = first.next();
    ASSERT_EQ(value, again.next());
    equal += value == other.next() ? 1 : 0;
  }
  EXPECT_EQ(equal, 0);
}

TEST(Random, below_is_even_and_in_bounds) {
  Random random{1};
  std::array<int, 6> seen{};
  constexpr int kDraws = 60'000;
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t value = random.below(seen.size());
    ASSERT_LT(value, seen.size());
    ++seen[value];
  }
  // Six standard deviations of a fair die: sqrt(60000 * 1/6 * 5/6) is about 91.
  for (int count : seen) EXPECT_NEAR(count, 10'000, 550);
}

TEST(Random, below_a_bound_that_does_not_divide_is_not_biased) {
  // With a plain remainder, values under 2^62 would come twice as often as those above.
  Random random{2};
  constexpr uint64_t kBound = (uint64_t{3} << 62);
  int low = 0;
  for (int i = 0; i < 30'000; ++i) low += random.below(kBound) < (uint64_t{1} << 62) ? 1 : 0;
  EXPECT_NEAR(low, 10'000, 500);
}

TEST(Random, between_includes_both_ends) {
  Random random{3};
  bool low = false;
  bool high = false;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = random.between(5, 7);
    ASSERT_GE(value, 5U);
    ASSERT_LE(value, 7U);
    low = low || value == 5;
    high = high || value == 7;
  }
  EXPECT_TRUE(low && high);
  EXPECT_EQ(random.between(9, 9), 9U);
  Random all{4};
  Random plain{4};
  EXPECT_EQ(all.between(0, Random::max()), plain.next());
}

TEST(Random, chance_and_unit_keep_their_share) {
  Random random{5};
  int hits = 0;
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    hits += random.chance(1, 4) ? 1 : 0;
    const double unit = random.unit();
    ASSERT_GE(unit, 0);
    ASSERT_LT(unit, 1);
    sum += unit;
  }
  EXPECT_NEAR(hits, 2'500, 260);
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
  EXPECT_FALSE(random.chance(0, 1));
  EXPECT_TRUE(random.chance(1, 1));
}

}  // namespace
}  // namespace delayq
