#include <gmock/gmock.h>

#include "cli/seeds/seed_job.h"
#include "core/random.h"

namespace delayq::cli::seeds {
namespace {

using testing::HasSubstr;

/// {"1": "order", "2": "7", "3": 5, "4": 1700000000, "5": "body"}
std::string good() {
  using std::string_literals::operator""s;
  return "\x85\xa1"s
         "1\xa5order\xa1"
         "2\xa1"
         "7\xa1"
         "3\x05\xa1"
         "4\xce\x65\x53\xf1\x00\xa1"s
         "5\xa4"
         "body";
}

TEST(PackedJob, IsReadAsItWasWritten) {
  const Result<PackedJob> job = unpack_job(good());
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->topic, "order");
  EXPECT_EQ(job->id, "7");
  EXPECT_EQ(job->delay, 5);
  EXPECT_EQ(job->exec_time, 1'700'000'000);
  EXPECT_EQ(job->body, "body");
}

TEST(PackedJob, NumbersAsKeysAndBytesAsBodiesAreFine) {
  const Result<PackedJob> job =
      unpack_job(std::string("\x84\x01\xa1t\x02\xa1i\x05\xc4\x02\xff\x00\x09\xc0", 14));
  ASSERT_TRUE(job.ok()) << job.error().detail;
  EXPECT_EQ(job->topic, "t");
  EXPECT_EQ(job->body, std::string("\xff\x00", 2));
  EXPECT_FALSE(job->exec_time.has_value());
}

TEST(PackedJob, WhatIsMissingIsNamed) {
  EXPECT_THAT(unpack_job("").error().detail, HasSubstr("not MessagePack"));
  EXPECT_THAT(unpack_job(good() + "x").error().detail, HasSubstr("not MessagePack"));
  EXPECT_THAT(unpack_job("\x93\x01\x02\x03").error().detail, HasSubstr("not a map"));
  EXPECT_THAT(unpack_job("\x80").error().detail, HasSubstr("no topic"));
  EXPECT_THAT(unpack_job("\x81\xa1"
                         "1\xa1t")
                  .error()
                  .detail,
              HasSubstr("no id"));
  EXPECT_THAT(unpack_job("\x82\xa1"
                         "1\xa1t\xa1"
                         "2\xa1i")
                  .error()
                  .detail,
              HasSubstr("no body"));
}

TEST(PackedJob, AMapSaysHowManyPairsItHas) {
  EXPECT_FALSE(unpack_job(std::string("\xdf\x80\x00\x00\x00", 5)).ok())
      << "2^31 pairs, of which none is there";
  EXPECT_FALSE(unpack_job(std::string("\x83\x01\xdd\xff\xff\xff\xfb", 7)).ok()) << "and an array of 2^32 - 5";
}

TEST(PackedJob, NoBytesHarm) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random{kSeed};
  for (int round = 0; round < 20'000; ++round) {
    const std::string whole = good();
    std::vector<char> bytes(whole.begin(), whole.end());
    for (uint64_t flips = random.between(1, 5); flips > 0; --flips)
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    bytes.resize(random.between(1, bytes.size()));
    const Result<PackedJob> job = unpack_job({bytes.data(), bytes.size()});
    if (job.ok()) {
      EXPECT_FALSE(job->topic.empty());
    }
  }
}

}  // namespace
}  // namespace delayq::cli::seeds
