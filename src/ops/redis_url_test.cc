#include <gtest/gtest.h>

#include "ops/field.h"

namespace delayq {
namespace {

TEST(RedisUrl, is_shown_without_its_password) {
  EXPECT_EQ(without_password("redis://u:hush@a:1/2"), "redis://u:***@a:1/2");
  EXPECT_EQ(without_password("redis://:hu@sh@a"), "redis://:***@a");
  EXPECT_EQ(without_password("redis://hush@a"), "redis://***@a");
  EXPECT_EQ(without_password("redis://a:1"), "redis://a:1");
}

TEST(RedisUrl, prefixes_have_no_braces) {
  EXPECT_TRUE(check_redis_prefix("delayq:shop-1").ok());
  for (const std::string text : {"a{b", "a}", "a b", "\x01", "\xc3\xa9"}) {
    EXPECT_FALSE(check_redis_prefix(text).ok()) << text;
  }
}

}  // namespace
}  // namespace delayq
