#include "queue/lease_text.h"

#include <gmock/gmock.h>

namespace delayq {
namespace {

TEST(LeaseText, IsReadBackAsItWasWritten) {
  Arena storage;
  EXPECT_EQ(lease_text({"t", "a/b"}, storage), "t/a/b");
  EXPECT_EQ(parse_lease("t/a/b")->topic, "t");
  EXPECT_EQ(parse_lease("t/a/b")->lease, "a/b") << "only the first slash divides";
}

TEST(LeaseText, SaysSoWhenItIsNoLease) {
  for (const std::string_view bad : {"", "/", "t", "t/", "/m1"}) {
    const Result<LeaseRef> lease = parse_lease(bad);
    ASSERT_FALSE(lease.ok()) << bad;
    EXPECT_THAT(lease.error().detail, testing::StartsWith("lease"));
  }
}

}  // namespace
}  // namespace delayq
