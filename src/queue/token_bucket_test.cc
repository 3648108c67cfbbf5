#include <gmock/gmock.h>

#include "core/random.h"
#include "queue/topics.h"

namespace delayq {
namespace {

constexpr Moment bucket_time(int64_t ms) { return from_unix_ms(1'700'000'000'000 + ms); }

constexpr Rate kTenPerSecond{10, Millis{1'000}};

TEST(TokenBucket, StartsFullAndRefillsEvenly) {
  TokenBucket bucket;
  EXPECT_EQ(bucket.take(kTenPerSecond, bucket_time(0), 100), 10U);
  EXPECT_EQ(bucket.take(kTenPerSecond, bucket_time(99), 1), 0U);
  EXPECT_EQ(bucket.next_token(kTenPerSecond, bucket_time(99)), bucket_time(100));
  EXPECT_EQ(bucket.take(kTenPerSecond, bucket_time(100), 1), 1U);
  EXPECT_EQ(bucket.take(kTenPerSecond, bucket_time(350), 100), 2U);
  EXPECT_EQ(bucket.next_token(kTenPerSecond, bucket_time(350)), bucket_time(400))
      << "the half token was not lost";
}

TEST(TokenBucket, HoldsNoMoreThanOnePeriod) {
  TokenBucket bucket;
  EXPECT_EQ(bucket.take(kTenPerSecond, bucket_time(0), 10), 10U);
  EXPECT_FALSE(bucket.is_full(kTenPerSecond, bucket_time(999)));
  EXPECT_TRUE(bucket.is_full(kTenPerSecond, bucket_time(1'000)));
  EXPECT_EQ(bucket.take(kTenPerSecond, bucket_time(1'000'000'000), 100), 10U);
}

TEST(TokenBucket, WhatIsGivenBackCanBeTakenAgain) {
  TokenBucket bucket;
  EXPECT_EQ(bucket.take(kTenPerSecond, bucket_time(0), 10), 10U);
  bucket.give_back(3);
  EXPECT_EQ(bucket.take(kTenPerSecond, bucket_time(0), 10), 3U);
  bucket.give_back(100);
  EXPECT_EQ(bucket.take(kTenPerSecond, bucket_time(0), 100), 10U) << "never more than it holds";
}

TEST(TokenBucket, AClockThatGoesBackOnlyPausesTheFilling) {
  TokenBucket bucket;
  EXPECT_EQ(bucket.take(kTenPerSecond, bucket_time(0), 10), 10U);
  EXPECT_EQ(bucket.take(kTenPerSecond, bucket_time(-3'600'000), 10), 0U);
  EXPECT_EQ(bucket.next_token(kTenPerSecond, bucket_time(-3'600'000)), bucket_time(-3'599'900));
  EXPECT_EQ(bucket.take(kTenPerSecond, bucket_time(-3'599'900), 10), 1U);
}

TEST(TokenBucket, ANewRateKeepsWhatIsInIt) {
  TokenBucket bucket;
  EXPECT_EQ(bucket.take(kTenPerSecond, bucket_time(0), 7), 7U);
  const Rate slower{2, Millis{60'000}};
  EXPECT_EQ(bucket.take(slower, bucket_time(0), 10), 2U) << "of the three, what it can hold";
  EXPECT_EQ(bucket.next_token(slower, bucket_time(0)), bucket_time(30'000));
  EXPECT_EQ(bucket.take(kTenPerSecond, bucket_time(0), 10), 0U) << "a change of the rate is not a refill";
}

TEST(TokenBucket, NoWindowPassesTheRateAndABurst) {
  constexpr uint64_t kSeed = 5;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random{kSeed};
  const Rate rate{7, Millis{300}};
  TokenBucket bucket;
  uint64_t taken = 0;
  int64_t now = 0;
  for (int round = 0; round < 10'000; ++round) {
    now += static_cast<int64_t>(random.below(100));
    const Moment next = bucket.next_token(rate, bucket_time(now));
    const uint32_t got = bucket.take(rate, bucket_time(now), static_cast<uint32_t>(random.between(1, 5)));
    EXPECT_EQ(got > 0, next == bucket_time(now)) << "next_token() and take() agree";
    taken += got;
    ASSERT_LE(taken, 7 + static_cast<uint64_t>(now) * 7 / 300);
  }
  EXPECT_GE(taken, static_cast<uint64_t>(now) * 7 / 300 * 9 / 10) << "nor does it hold back";
}

}  // namespace
}  // namespace delayq
