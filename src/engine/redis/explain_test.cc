#include "engine/redis/explain.h"

#include <gmock/gmock.h>

namespace delayq::redis {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr Refused kPush{"push", "0", "", "shop", "redis.prefix"};

Error of_redis(std::string detail, ErrorCode code = ErrorCode::kInvalid) {
  return {code, "redis", std::move(detail) + " script: 0123abcd, on @user_script:9.", {}};
}
Error wrong_type() { return of_redis("WRONGTYPE Operation against a key holding the wrong kind of value"); }

TEST(Explain, NamesAForeignKeyWithWhatToDoAboutIt) {
  const Explained it = explain(wrong_type(), {"", "", "shop:settings", "shop", "redis.prefix"});
  EXPECT_EQ(it.error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(it.error.detail,
            "another program has the key shop:settings (WRONGTYPE): choose another redis.prefix");
  EXPECT_EQ(it.problem, it.error.detail);
}

TEST(Explain, AForeignKeyIsOneOfManyInAScript) {
  EXPECT_EQ(
      explain(wrong_type(), {"push", "0", "", "shop", "?prefix=NAME in --to"}).error.detail,
      "another program has a key that begins with shop: (WRONGTYPE): choose another ?prefix=NAME in --to");
}

TEST(Explain, ADamagedCounterIsTheServersFault) {
  const Explained it = explain(of_redis("ERR value is not an integer or out of range"), kPush);
  EXPECT_EQ(it.error.code, ErrorCode::kCorrupt);
  EXPECT_THAT(it.error.detail, HasSubstr("the server's log"));
  EXPECT_EQ(it.problem,
            "the key shop:{0}:seq is damaged, it is not a number: delete it (DEL shop:{0}:seq), "
            "and it is made anew");
}

TEST(Explain, ClientsSeeNothingOfAScript) {
  const Explained it = explain(of_redis("ERR user_script:3: attempt to index a nil value"), kPush);
  EXPECT_EQ(it.error.code, ErrorCode::kCorrupt);
  for (const char* part : {"script", "nil", "ERR", "0123abcd"})
    EXPECT_THAT(it.error.detail, Not(HasSubstr(part)));
  EXPECT_THAT(it.problem,
              HasSubstr("the script push failed: ERR user_script:3: attempt to index a nil value"));
  EXPECT_THAT(it.problem, HasSubstr("begins with shop:{0}:"));
  EXPECT_THAT(it.problem, Not(HasSubstr("0123abcd")));
}

TEST(Explain, AFullMemoryIsToldInPlainWords) {
  const Explained it = explain(
      of_redis("OOM command not allowed when used memory > 'maxmemory'.", ErrorCode::kOverloaded), kPush);
  EXPECT_EQ(it.error, out_of_memory("redis"));
  EXPECT_EQ(it.error.code, ErrorCode::kOverloaded);
  EXPECT_GT(it.error.retry_after, Millis{0});
  EXPECT_EQ(it.problem, "");
}

TEST(Explain, OtherErrorsStayAsTheyAreWithoutTheScript) {
  const Explained it =
      explain(of_redis("NOREPLICAS Not enough good replicas to write.", ErrorCode::kUnavailable), kPush);
  EXPECT_EQ(it.error,
            (Error{ErrorCode::kUnavailable, "redis", "NOREPLICAS Not enough good replicas to write.", {}}));
  const Error full{ErrorCode::kOverloaded, "redis", "too many commands are outstanding", Millis{5}};
  EXPECT_EQ(explain(full, kPush).error, full);
}

}  // namespace
}  // namespace delayq::redis
