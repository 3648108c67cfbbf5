#include "engine/redis/lease.h"

#include <gmock/gmock.h>

namespace delayq::redis {
namespace {

TEST(Lease, IsReadAsItWasWritten) {
  for (const uint64_t nonce : {uint64_t{0}, uint64_t{1}, kMostNonce}) {
    const std::optional<Lease> lease = read_lease(lease_text({3, 9'007'199'254'740'991, nonce}), 4);
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease->shard, 3U);
    EXPECT_EQ(lease->number, 9'007'199'254'740'991U);
    EXPECT_EQ(lease->nonce, nonce);
  }
  EXPECT_EQ(lease_text({3, 1234, 0}), "3.1234") << "as before there were nonces";
  EXPECT_EQ(lease_text({3, 1234, 56}), "3.1234.56");
}

TEST(Lease, NothingElseIsOne) {
  for (const char* text : {"",
                           ".",
                           "1",
                           "1.",
                           ".1",
                           "4.1",
                           "1.x",
                           "1.1 ",
                           " 1.1",
                           "01.1",
                           "1.01",
                           "+1.1",
                           "1.-1",
                           "1.1.",
                           "1.1.0",
                           "1.1.01",
                           "1.1.x",
                           "1.1.1.1",
                           "1..1",
                           "1.1.99999999999999999999999",
                           "1.99999999999999999999999",
                           "99999999999.1"}) {
    EXPECT_FALSE(read_lease(text, 4)) << text;
  }
}

}  // namespace
}  // namespace delayq::redis
