#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/redis/options.h"

namespace delayq::net::redis {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ClientOptions options_of(std::string_view text) {
  const Result<ClientOptions> options = parse_url(text);
  EXPECT_TRUE(options.ok()) << text << ": " << (options.ok() ? "" : options.error().detail);
  return options.ok() ? *options : ClientOptions{};
}
std::string problem_of(std::string_view text) {
  const Result<ClientOptions> options = parse_url(text);
  EXPECT_FALSE(options.ok()) << text;
  return options.ok() ? "" : options.error().detail;
}

TEST(RedisUrl, OfOneServer) {
  const ClientOptions plain = options_of("redis://cache");
  EXPECT_EQ(plain.mode, Mode::kStandalone);
  EXPECT_EQ(plain.addresses, (std::vector<Address>{{"cache", 6379}}));
  EXPECT_EQ(plain.database, 0);
  EXPECT_FALSE(plain.tls.is_on);

  const ClientOptions full = options_of("rediss://app:s%3Acr%40t@10.0.0.1:7000,[fd00::1]:7001,other/12");
  EXPECT_TRUE(full.tls.is_on);
  EXPECT_EQ(full.user, "app");
  EXPECT_EQ(full.password, "s:cr@t");
  EXPECT_EQ(full.addresses, (std::vector<Address>{{"10.0.0.1", 7000}, {"fd00::1", 7001}, {"other", 6379}}));
  EXPECT_EQ(full.database, 12);
  EXPECT_EQ(to_string(full.addresses[1]), "[fd00::1]:7001");
}

TEST(RedisUrl, ThePasswordMayStandAlone) {
  const ClientOptions options = options_of("redis://:a@b/c@host/1");
  EXPECT_EQ(options.user, "");
  EXPECT_EQ(options.password, "a@b/c");
  EXPECT_EQ(options.database, 1);
}

TEST(RedisUrl, OfSentinels) {
  const ClientOptions options = options_of("redis-sentinel://:pw@s1,s2:26380/jobs/3");
  EXPECT_EQ(options.mode, Mode::kSentinel);
  EXPECT_EQ(options.addresses, (std::vector<Address>{{"s1", 26379}, {"s2", 26380}}));
  EXPECT_EQ(options.master_name, "jobs");
  EXPECT_EQ(options.password, "pw");
  EXPECT_EQ(options.database, 3);
  EXPECT_TRUE(options_of("rediss-sentinel://s1/jobs").tls.is_on);
}

TEST(RedisUrl, OfACluster) {
  const ClientOptions options = options_of("redis-cluster://a:7000,b:7001/");
  EXPECT_EQ(options.mode, Mode::kCluster);
  EXPECT_EQ(options.addresses.size(), 2);
  EXPECT_TRUE(options_of("rediss-cluster://a").tls.is_on);
}

TEST(RedisUrl, ErrorsNameThePart) {
  EXPECT_THAT(problem_of(""), StartsWith("scheme:"));
  EXPECT_THAT(problem_of("localhost:6379"), StartsWith("scheme:"));
  EXPECT_THAT(problem_of("http://host"), StartsWith("scheme:"));
  EXPECT_THAT(problem_of("redis://"), StartsWith("host:"));
  EXPECT_THAT(problem_of("redis://:6379"), StartsWith("host:"));
  EXPECT_THAT(problem_of("redis://a,,b"), StartsWith("host:"));
  EXPECT_THAT(problem_of("redis://a,"), StartsWith("host:"));
  EXPECT_THAT(problem_of("redis://[::1"), StartsWith("host:"));
  EXPECT_THAT(problem_of("redis://[::1]6379"), StartsWith("host:"));
  EXPECT_THAT(problem_of("redis://a b"), StartsWith("host:"));
  EXPECT_THAT(problem_of("redis://::1"), StartsWith("host:"));
  EXPECT_THAT(problem_of("redis://a:"), StartsWith("port:"));
  EXPECT_THAT(problem_of("redis://a:0"), StartsWith("port:"));
  EXPECT_THAT(problem_of("redis://a:65536"), StartsWith("port:"));
  EXPECT_THAT(problem_of("redis://a:6379x"), StartsWith("port:"));
  EXPECT_THAT(problem_of("redis://a/x"), StartsWith("database:"));
  EXPECT_THAT(problem_of("redis://a/1/2"), StartsWith("database:"));
  EXPECT_THAT(problem_of("redis-cluster://a/1"), StartsWith("database:"));
  EXPECT_THAT(problem_of("redis-sentinel://a"), StartsWith("master:"));
  EXPECT_THAT(problem_of("redis-sentinel://a//1"), StartsWith("master:"));
  EXPECT_THAT(problem_of("redis://user@a"), StartsWith("password:"));
  EXPECT_THAT(problem_of("redis://user:@a"), StartsWith("password:"));
  EXPECT_THAT(problem_of("redis://us%g0er:x@a"), StartsWith("user:"));
}

TEST(RedisUrl, ErrorsKeepThePassword) {
  for (const char* text : {"redis://u:secret%1@a", "redis://u:secret@a:0", "http://u:secret@a",
                           "redis://u:secret@", "redis-sentinel://u:secret@a", "redis://secret@a"}) {
    EXPECT_THAT(problem_of(text), Not(HasSubstr("secret"))) << text;
  }
}

}  // namespace
}  // namespace delayq::net::redis
