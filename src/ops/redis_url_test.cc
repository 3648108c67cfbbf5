#include "ops/redis_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace delayq {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Mode = RedisUrl::Mode;

RedisUrl read(std::string_view text) {
  auto url = parse_redis_url(text);
  EXPECT_TRUE(url.ok()) << text << ": " << url.error().detail;
  return url.ok() ? *url : RedisUrl{};
}

std::string problem(std::string_view text) {
  const auto url = parse_redis_url(text);
  EXPECT_FALSE(url.ok()) << text;
  return url.ok() ? "" : url.error().detail;
}

TEST(RedisUrl, one_redis) {
  EXPECT_EQ(read("redis://localhost"), (RedisUrl{Mode::kOne, false, {{"localhost", 6379}}, "", "", "", {}}));
  EXPECT_EQ(read("redis://[::1]"), (RedisUrl{Mode::kOne, false, {{"::1", 6379}}, "", "", "", {}}));
  EXPECT_EQ(read("redis://a,b:1").hosts, (std::vector<Address>{{"a", 6379}, {"b", 1}}));
  EXPECT_EQ(read("rediss://:hush@[::1]:7/3"), (RedisUrl{Mode::kOne, true, {{"::1", 7}}, "", "hush", "", 3}));
  EXPECT_EQ(read("redis://shop:a%3ab%25@c@h:1/"),
            (RedisUrl{Mode::kOne, false, {{"h", 1}}, "shop", "a:b%@c", "", {}}));
}

TEST(RedisUrl, sentinels_and_clusters) {
  EXPECT_EQ(read("redis-sentinel://a,b:7,c/main/2"),
            (RedisUrl{Mode::kSentinel, false, {{"a", 26379}, {"b", 7}, {"c", 26379}}, "", "", "main", 2}));
  EXPECT_EQ(read("rediss-sentinel://a").master, "mymaster");
  EXPECT_EQ(read("redis-cluster://u:p@a:1,b"),
            (RedisUrl{Mode::kCluster, false, {{"a", 1}, {"b", 6379}}, "u", "p", "", {}}));
}

TEST(RedisUrl, says_what_would_be_right_and_never_the_password) {
  EXPECT_THAT(problem("localhost:6379"), HasSubstr("use redis://HOST:PORT"));
  EXPECT_THAT(problem("http://a"), HasSubstr("\"http://\" is not a kind of Redis"));
  EXPECT_THAT(problem("redis://"), HasSubstr("no host"));
  EXPECT_THAT(problem("redis://a:0"), HasSubstr("a host and a port"));
  EXPECT_THAT(problem("redis://a/x"), HasSubstr("is a number"));
  EXPECT_THAT(problem("redis-cluster://a/1"), HasSubstr("only database 0"));
  for (const std::string text : {"redis://hush@a", "redis://:hush%@a", "redis://:hush?@a",
                                 "redis://:hush@a:b", "redis://:hush@a/x", "redsi://:hush@a"}) {
    EXPECT_THAT(problem(text), Not(HasSubstr("hush"))) << text;
  }
}

TEST(RedisUrl, is_shown_without_its_password) {
  EXPECT_EQ(without_password("redis://u:hush@a:1/2"), "redis://u:***@a:1/2");
  EXPECT_EQ(without_password("redis://:hu@sh@a"), "redis://:***@a");
  EXPECT_EQ(without_password("redis://hush@a"), "redis://***@a");
  EXPECT_EQ(without_password("redis://a:1"), "redis://a:1");
}

TEST(RedisUrl, is_described_for_the_log) {
  EXPECT_EQ(describe(read("redis://:hush@a:1/2")), "redis at a:1");
  EXPECT_EQ(describe(read("redis-sentinel://a,b:1/m")), "redis m by Sentinel at a:26379, b:1");
  EXPECT_EQ(describe(read("redis-cluster://a,[::1]:2")), "redis Cluster at a:6379, [::1]:2");
}

TEST(RedisUrl, prefixes_have_no_braces) {
  EXPECT_TRUE(check_redis_prefix("delayq:shop-1").ok());
  for (const std::string text : {"a{b", "a}", "a b", "\x01", "\xc3\xa9"}) {
    EXPECT_FALSE(check_redis_prefix(text).ok()) << text;
  }
}

}  // namespace
}  // namespace delayq
