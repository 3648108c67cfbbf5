#include <gtest/gtest.h>

#include "net/redis/client.h"

namespace delayq::net::redis {
namespace {

// The values are what CLUSTER KEYSLOT answers.
TEST(Slot, IsTheOneOfTheCluster) {
  EXPECT_EQ(slot_of("123456789"), 12739);
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of(""), 0);
}

TEST(Slot, OfAHashTagOnly) {
  EXPECT_EQ(slot_of("delayq:{foo}:next"), slot_of("foo"));
  EXPECT_EQ(slot_of("{foo}{bar}"), slot_of("foo"));
  EXPECT_EQ(slot_of("a{{foo}}b"), slot_of("{foo"));
}

TEST(Slot, OfTheWholeKeyWithoutAHashTag) {
  EXPECT_NE(slot_of("foo{}{bar}"), slot_of("bar"));
  EXPECT_NE(slot_of("a{foo"), slot_of("foo"));
  EXPECT_NE(slot_of("a}{foo"), slot_of("foo"));
}

}  // namespace
}  // namespace delayq::net::redis
