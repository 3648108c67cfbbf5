#include "core/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace delayq {
namespace {

using testing::HasSubstr;

TEST(Address, is_read_and_written) {
  for (const std::string text :
       {"127.0.0.1:9278", "localhost:0", ":9278", "[::1]:65535", "[fe80::1%eth0]:1"}) {
    const Result<Address> address = parse_address(text);
    ASSERT_TRUE(address) << text << ": " << address.error().detail;
    EXPECT_EQ(to_string(*address), text);
  }
  EXPECT_EQ(*parse_address("[::1]:80"), (Address{"::1", 80}));
  EXPECT_EQ(*parse_address(":80"), (Address{"", 80}));
}

TEST(Address, says_what_is_right) {
  for (const std::string text : {"", "localhost", "host:", "host:65536", "host:-1", "host:1x", "::1:80",
                                 "[]:80", "[::1:80", "a b:80", "[a/b]:80", "host\n:80"}) {
    const Result<Address> address = parse_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(address.error().detail, HasSubstr(" is not an address: ")) << text;
  }
  EXPECT_THAT(parse_address("::1:80").error().detail, HasSubstr("brackets"));
  EXPECT_FALSE(parse_address(std::string(256, 'a') + ":1"));
}

TEST(Address, loopback_is_told_from_what_others_reach) {
  for (const char* own : {"127.0.0.1", "127.1.2.3", "localhost", "::1"})
    EXPECT_TRUE(is_loopback({own, 1})) << own;
  for (const char* open : {"", "0.0.0.0", "::", "10.0.0.1", "127.evil.example", "example.com"}) {
    EXPECT_FALSE(is_loopback({open, 1})) << open;
  }
}

}  // namespace
}  // namespace delayq
