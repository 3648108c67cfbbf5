#include "core/token.h"

#include <gtest/gtest.h>

namespace delayq {
namespace {

TEST(Token, scopes_by_name) {
  for (size_t i = 0; i < kScopeNames.size(); ++i)
    EXPECT_EQ(parse_scope(kScopeNames[i]), static_cast<Scope>(i));
  EXPECT_EQ(parse_scope("Push"), std::nullopt);
  EXPECT_EQ(parse_scope(""), std::nullopt);
}

TEST(Token, one_scope_of_several_is_enough_and_admin_is_all) {
  Token token;
  token.scopes = only(Scope::kConsume);
  EXPECT_TRUE(token.has_any(only(Scope::kConsume)));
  EXPECT_TRUE(token.has_any(Scope::kPush | Scope::kConsume));
  EXPECT_FALSE(token.has_any(only(Scope::kPush)));
  EXPECT_FALSE(token.has_any(only(Scope::kAdmin)));
  token.scopes = only(Scope::kAdmin);
  for (const Scope scope : {Scope::kPush, Scope::kConsume, Scope::kRead, Scope::kSchedule, Scope::kAdmin})
    EXPECT_TRUE(token.has_any(only(scope)));
}

TEST(Token, patterns) {
  Token token;
  token.topics = {"order", "mail.*"};
  EXPECT_TRUE(token.covers("order"));
  EXPECT_TRUE(token.covers("mail.out"));
  EXPECT_TRUE(token.covers("mail."));
  EXPECT_FALSE(token.covers("mail"));
  EXPECT_FALSE(token.covers("orders"));
  EXPECT_FALSE(token.covers(""));
  EXPECT_FALSE(token.covers_all());
  token.topics = {"*"};
  EXPECT_TRUE(token.covers("anything"));
  EXPECT_TRUE(token.covers_all());
}

TEST(Token, which_patterns_there_are) {
  EXPECT_TRUE(check_topic_pattern("*").ok());
  EXPECT_TRUE(check_topic_pattern("order").ok());
  EXPECT_TRUE(check_topic_pattern("order.*").ok());
  EXPECT_FALSE(check_topic_pattern("").ok());
  EXPECT_FALSE(check_topic_pattern("or*er").ok());
  EXPECT_FALSE(check_topic_pattern("**").ok());
  EXPECT_FALSE(check_topic_pattern("a b").ok());
}

TEST(Token, hashes) {
  const auto hash = parse_sha256("00ff" + std::string(58, '0') + "aB");
  ASSERT_TRUE(hash);
  EXPECT_EQ((*hash)[1], 0xff);
  EXPECT_EQ((*hash)[31], 0xab);
  EXPECT_FALSE(parse_sha256(std::string(63, '0')));
  EXPECT_FALSE(parse_sha256(std::string(65, '0')));
  EXPECT_FALSE(parse_sha256(std::string(63, '0') + "g"));
}

}  // namespace
}  // namespace delayq
