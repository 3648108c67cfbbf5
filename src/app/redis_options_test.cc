#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/storage.h"
#include "tests/support/temporary_directory.h"

namespace delayq {
namespace {

using net::redis::Mode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

RedisStorageOptions read(const Config::Redis& said) {
  EXPECT_THAT(check_redis(said), IsEmpty());
  auto options = redis_storage_options(said);
  EXPECT_TRUE(options.ok());
  return options.ok() ? *options : RedisStorageOptions{};
}

TEST(RedisOptions, the_defaults_are_a_redis_on_this_machine) {
  const RedisStorageOptions options = read({});
  EXPECT_EQ(options.client.mode, Mode::kStandalone);
  EXPECT_EQ(options.where, "redis at 127.0.0.1:6379");
  EXPECT_EQ(options.prefix, "delayq");
  EXPECT_EQ(options.shards, 0u);
}

TEST(RedisOptions, keys_go_before_the_url) {
  Config::Redis said;
  said.url = "rediss-sentinel://a,b:1/main";
  said.user = "shop";
  said.password = "hush";
  said.database = 3;
  said.wait = Millis{70};
  said.insecure = true;
  const RedisStorageOptions options = read(said);
  EXPECT_EQ(options.client.mode, Mode::kSentinel);
  EXPECT_EQ(options.client.user, "shop");
  EXPECT_EQ(options.client.password, "hush");
  EXPECT_EQ(options.client.database, 3u);
  EXPECT_EQ(options.client.wait, Millis{70});
  EXPECT_TRUE(options.client.tls.is_on && options.client.tls.skips_check);
  EXPECT_EQ(options.where, "redis main by Sentinel at a:26379, b:1");
}

TEST(RedisOptions, a_password_may_be_in_a_file) {
  const support::TemporaryDirectory folder;
  Config::Redis said;
  said.password_file = folder / "password";
  EXPECT_FALSE(redis_storage_options(said).ok());
  std::ofstream(said.password_file) << "hush hush\r\nmore\n";
  EXPECT_EQ(read(said).client.password, "hush hush");
}

TEST(RedisOptions, what_is_said_twice_is_refused) {
  Config::Redis said;
  said.url = "redis://u:p@a/1";
  said.user = "v";
  said.password = "q";
  said.password_file = "f";
  said.database = 2;
  EXPECT_THAT(
      check_redis(said),
      ElementsAre(HasSubstr("redis.user: also set in redis.url"), HasSubstr("redis.password: "),
                  HasSubstr("redis.password_file: also set in redis.url"), HasSubstr("redis.database: "),
                  HasSubstr("redis.password_file: redis.password is also set")));
}

TEST(RedisOptions, what_does_not_go_together_is_refused) {
  Config::Redis said;
  said.url = "redis-cluster://a";
  said.database = 2;
  EXPECT_THAT(check_redis(said), ElementsAre(HasSubstr("only database 0")));
  said = {};
  said.ca_file = "c.pem";
  EXPECT_THAT(check_redis(said), ElementsAre(HasSubstr("are for TLS")));
  said.url = "rediss://a";
  EXPECT_THAT(check_redis(said), IsEmpty());
  said.key = "k.pem";
  EXPECT_THAT(check_redis(said), ElementsAre(HasSubstr("certificate and key")));
}

TEST(RedisOptions, no_message_has_the_password) {
  Config::Redis said;
  for (const std::string url :
       {"redsi://:hush@a", "redis://:hush%@a", "redis://:hush@a:b", "redis://:hush@a/x"}) {
    said.url = url;
    EXPECT_THAT(check_redis(said),
                ElementsAre(testing::AllOf(HasSubstr("redis.url: "), Not(HasSubstr("hush")))))
        << url;
  }
}

}  // namespace
}  // namespace delayq
