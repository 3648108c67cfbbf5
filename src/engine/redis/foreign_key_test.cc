#include "engine/redis/foreign_key.h"

#include <gtest/gtest.h>

namespace delayq::redis {
namespace {

Error wrong_type() {
  return {
      ErrorCode::kInvalid,
      "redis",
      "WRONGTYPE Operation against a key holding the wrong kind of value script: 0123, on @user_script:9.",
      {}};
}

TEST(ForeignKey, is_named_with_what_to_do_about_it) {
  const Error error = explain_foreign_key(wrong_type(), "shop:settings", "shop", "redis.prefix");
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(error.detail,
            "another program has the key shop:settings (WRONGTYPE): choose another redis.prefix");
}

TEST(ForeignKey, is_one_of_many_in_a_script) {
  EXPECT_EQ(
      explain_foreign_key(wrong_type(), {}, "shop", "?prefix=NAME in --to").detail,
      "another program has a key that begins with shop: (WRONGTYPE): choose another ?prefix=NAME in --to");
}

TEST(ForeignKey, is_not_what_every_error_is_about) {
  const Error error{ErrorCode::kOverloaded, "redis", "OOM command not allowed", {}};
  EXPECT_EQ(explain_foreign_key(error, "a", "shop", "redis.prefix"), error);
}

}  // namespace
}  // namespace delayq::redis
