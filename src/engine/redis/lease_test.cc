#include "engine/redis/lease.h"

#include <gmock/gmock.h>

namespace delayq::redis {
namespace {

TEST(Lease, IsReadAsItWasWritten) {
  const std::optional<Lease> lease = read_lease(lease_text(3, 9'007'199'254'740'991), 4);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->shard, 3U);
  EXPECT_EQ(lease->number, 9'007'199'254'740'991U);
}

TEST(Lease, NothingElseIsOne) {
  for (const char* text : {"", ".", "1", "1.", ".1", "4.1", "1.x", "1.1 ", " 1.1", "01.1", "1.01", "+1.1",
                           "1.-1", "1.1.1", "1.99999999999999999999999", "99999999999.1"}) {
    EXPECT_FALSE(read_lease(text, 4)) << text;
  }
}

}  // namespace
}  // namespace delayq::redis
