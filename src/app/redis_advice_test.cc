#include <gmock/gmock.h>

#include "app/storage.h"

namespace delayq {
namespace {

using net::redis::Mode;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

RedisStorageOptions with(Mode mode) {
  RedisStorageOptions options;
  options.client.mode = mode;
  options.prefix = "shop";
  return options;
}

std::string advice(std::string_view problem, Mode mode = Mode::kStandalone) {
  return advice_on(problem, with(mode));
}

TEST(RedisAdvice, names_the_key_to_look_at) {
  EXPECT_THAT(advice("a:1: AUTH: WRONGPASS invalid username-password pair"), HasSubstr("redis.password"));
  EXPECT_THAT(advice("a:1: PING: NOAUTH Authentication required."), HasSubstr("redis.password"));
  EXPECT_THAT(advice("WRONGTYPE Operation against a key"), HasSubstr("redis.prefix"));
  EXPECT_THAT(advice("a:1: SELECT: ERR DB index is out of range"), HasSubstr("redis.database"));
  EXPECT_THAT(advice("a:1: it is a replica, not a master"), HasSubstr("its master in redis.url"));
  EXPECT_THAT(advice("a:1: it is a sentinel, not a master"), HasSubstr("redis-sentinel://"));
  EXPECT_THAT(advice("sentinel a:1: it is not a Sentinel, or does not accept this client: ERR"),
              HasSubstr("26379"));
  EXPECT_THAT(advice("a:1: the certificate is not trusted: self-signed"), HasSubstr("redis.ca_file"));
  EXPECT_THAT(advice("OOM command not allowed when used memory > 'maxmemory'."), HasSubstr("maxmemory"));
}

TEST(RedisAdvice, names_what_was_typed_where_there_are_no_settings) {
  RedisStorageOptions options = with(Mode::kStandalone);
  options.names = {"--from", true};
  for (const char* problem :
       {"a:1: AUTH: WRONGPASS invalid username-password pair", "WRONGTYPE Operation against a key",
        "a:1: SELECT: ERR DB index is out of range", "a:1: it is a replica, not a master",
        "a:1: it is a sentinel, not a master",
        "sentinel a:1: it is not a Sentinel, or does not accept this client: ERR",
        "a:1: the certificate is not trusted: self-signed", "MOVED 15573 127.0.0.1:48765",
        "NOPERM this user has no permissions to run the 'eval' command"}) {
    EXPECT_THAT(advice_on(problem, options), HasSubstr("--from")) << problem;
    EXPECT_THAT(advice_on(problem, options), Not(HasSubstr("redis."))) << problem;
  }
}

TEST(RedisAdvice, tells_a_cluster_from_a_single_redis) {
  EXPECT_THAT(advice("MOVED 15573 127.0.0.1:48765"), HasSubstr("redis-cluster://"));
  EXPECT_THAT(advice("MOVED 15573 127.0.0.1:48765", Mode::kCluster), IsEmpty());
  EXPECT_THAT(advice("ERR This instance has cluster support disabled", Mode::kCluster),
              HasSubstr("redis://"));
}

TEST(RedisAdvice, lists_the_rights_with_the_own_prefix) {
  EXPECT_THAT(advice("NOPERM this user has no permissions to run the 'eval' command"),
              HasSubstr("~shop:* &shop:news +@read +@write +@scripting +@pubsub +@connection +info +time"));
  EXPECT_THAT(advice("NOPERM no", Mode::kSentinel), HasSubstr("+time +role"));
  EXPECT_THAT(advice("NOPERM no", Mode::kCluster), HasSubstr("+time +cluster"));
}

TEST(RedisAdvice, has_none_where_the_problem_says_it_all) {
  EXPECT_THAT(advice("127.0.0.1:1: Connection refused"), IsEmpty());
}

TEST(RedisAdvice, says_why_an_earlier_version_will_not_do) {
  constexpr const char* kProblem = "a:1: it is version 6.2.14: 7.0 or later is needed";
  EXPECT_TRUE(is_version_problem(kProblem));
  EXPECT_FALSE(is_version_problem("Connection refused"));
  EXPECT_THAT(advice(kProblem), HasSubstr("memory is full"));
}

TEST(RedisAdvice, waits_for_no_login) {
  EXPECT_TRUE(is_login_problem("NOPERM no"));
  EXPECT_TRUE(is_login_problem("AUTH: WRONGPASS no"));
  EXPECT_TRUE(is_login_problem("ERR The user executing the script can't run this command or subcommand"));
  EXPECT_FALSE(is_login_problem("Connection refused"));
  EXPECT_FALSE(is_login_problem("NOREPLICAS Not enough good replicas to write."));
}

}  // namespace
}  // namespace delayq
