#include <gtest/gtest.h>

#include "net/redis/request.h"

namespace delayq::net::redis {
namespace {

TEST(Refusal, IsKnownByItsFirstWord) {
  EXPECT_EQ(refusal_of("NOSCRIPT No matching script."), Refusal::kNoScript);
  EXPECT_EQ(refusal_of("TRYAGAIN Multiple keys request during rehashing of slot"), Refusal::kTryAgain);
  EXPECT_EQ(refusal_of("LOADING Redis is loading the dataset in memory"), Refusal::kTryAgain);
  EXPECT_EQ(refusal_of("READONLY You can't write against a read only replica."), Refusal::kNotMaster);
  EXPECT_EQ(refusal_of("ERR LOADING"), Refusal::kFinal);
  EXPECT_EQ(refusal_of("LOADINGS"), Refusal::kFinal);
  EXPECT_EQ(refusal_of(""), Refusal::kFinal);
}

TEST(Refusal, TellsWhetherItIsWorthTryingAgain) {
  EXPECT_EQ(error_of("ERR syntax error").code, ErrorCode::kInvalid);
  EXPECT_EQ(error_of("WRONGTYPE Operation against a key").code, ErrorCode::kInvalid);
  EXPECT_EQ(error_of("MISCONF Redis is configured to save RDB snapshots").code, ErrorCode::kUnavailable);
  EXPECT_EQ(error_of("CLUSTERDOWN The cluster is down").code, ErrorCode::kUnavailable);
  EXPECT_EQ(error_of("OOM command not allowed when used memory > 'maxmemory'.").code, ErrorCode::kOverloaded);
  EXPECT_EQ(error_of("ERR syntax error").detail, "ERR syntax error");
}

TEST(Redirection, NamesASlotAndANode) {
  const auto moved = redirection_of("MOVED 3999 10.0.0.7:6381", {"10.0.0.1", 6379});
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->slot, 3999);
  EXPECT_EQ(moved->to, (Address{"10.0.0.7", 6381}));
  EXPECT_EQ(redirection_of("ASK 1 ::1:6381", {})->to, (Address{"::1", 6381}));
}

TEST(Redirection, ToANodeThatDoesNotKnowItsName) {
  EXPECT_EQ(redirection_of("MOVED 1 :6381", {"10.0.0.1", 6379})->to, (Address{"10.0.0.1", 6381}));
  EXPECT_EQ(redirection_of("MOVED 1 ?:6381", {"10.0.0.1", 6379})->to, (Address{"10.0.0.1", 6381}));
}

TEST(Redirection, ThatIsNone) {
  for (const char* text : {"", "MOVED", "MOVED 1", "MOVED 16384 a:1", "MOVED -1 a:1", "MOVED x a:1",
                           "MOVED 1 a:", "MOVED 1 a:0", "MOVED 1 a:65536", "MOVED 1 a", "MOVED 1:2 a"}) {
    EXPECT_FALSE(redirection_of(text, {"10.0.0.1", 6379})) << text;
  }
}

}  // namespace
}  // namespace delayq::net::redis
