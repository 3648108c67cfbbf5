#include "api/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tokens.h"

namespace delayq::api {
namespace {

using support::kOtherHash;
using support::kSecretHash;
using support::token;
using testing::HasSubstr;

constexpr Moment kNow{Millis{1'700'000'000'000}};

constexpr Scopes kPushing = only(Scope::kPush);
constexpr Scopes kConsuming = only(Scope::kConsume);

TEST(Access, without_tokens_everybody_may_do_everything) {
  const Access access;
  EXPECT_TRUE(access.is_open());
  EXPECT_TRUE(access.check(Caller(), kPushing, "a").ok());
  EXPECT_TRUE(access.check_all(Caller(), only(Scope::kAdmin)).ok());
  EXPECT_TRUE(access.covers(Caller(), "a"));
}

TEST(Access, who_has_no_token_or_a_wrong_one_hears_the_same) {
  const Access access({token("shop", kSecretHash, kPushing)});
  const Status none = access.check(access.identify(""), kPushing, "a");
  const Status wrong = access.check(access.identify("Secret"), kPushing, "a");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kUnauthorized);
  EXPECT_EQ(none.error(), wrong.error());
  EXPECT_EQ(access.check_all(Caller(), kPushing).error(), none.error());
  EXPECT_EQ(access.check_lease(Caller(), kConsuming, "a/1").error(), none.error());
  EXPECT_FALSE(access.covers(Caller(), "a"));
}

TEST(Access, a_token_is_good_for_its_scopes_and_topics) {
  const Access access({token("shop", kSecretHash, kPushing, {"order", "mail.*"}),
                       token("boss", kOtherHash, only(Scope::kAdmin))});
  const Caller shop = access.identify("secret");
  EXPECT_EQ(shop.name(), "shop");
  EXPECT_TRUE(access.check(shop, kPushing, "order").ok());
  EXPECT_TRUE(access.check(shop, kPushing, "mail.out").ok());
  const Status topic = access.check(shop, kPushing, "bill");
  EXPECT_EQ(topic.error().code, ErrorCode::kForbidden);
  EXPECT_THAT(topic.error().detail, HasSubstr("not for this topic"));
  const Status scope = access.check(shop, kConsuming, "order");
  EXPECT_EQ(scope.error().code, ErrorCode::kForbidden);
  EXPECT_THAT(scope.error().detail, HasSubstr("no scope consume"));
  EXPECT_EQ(access.check_all(shop, kPushing).error().code, ErrorCode::kForbidden);
  const Caller boss = access.identify("other");
  EXPECT_EQ(boss.name(), "boss");
  EXPECT_TRUE(access.check(boss, kConsuming, "bill").ok());
  EXPECT_TRUE(access.check_all(boss, kPushing).ok());
}

TEST(Access, a_lease_is_of_its_topic) {
  const Access access({token("shop", kSecretHash, kConsuming, {"order"})});
  const Caller shop = access.identify("secret");
  EXPECT_TRUE(access.check_lease(shop, kConsuming, "order/123").ok());
  EXPECT_FALSE(access.check_lease(shop, kConsuming, "bill/123").ok());
  EXPECT_FALSE(access.check_lease(shop, kConsuming, "").ok());
  EXPECT_FALSE(access.check_lease(shop, kConsuming, "/order").ok());
}

TEST(Access, a_token_that_is_gone_counts_no_more) {
  Access access({token("shop", kSecretHash, kPushing), token("boss", kOtherHash, kPushing)});
  const Caller shop = access.identify("secret");
  const Caller boss = access.identify("other");
  access.replace({token("boss", kOtherHash, kConsuming)});
  EXPECT_EQ(access.check(shop, kPushing, "a").error().code, ErrorCode::kUnauthorized);
  EXPECT_EQ(access.check(boss, kPushing, "a").error().code, ErrorCode::kForbidden)
      << "it has other scopes now";
  EXPECT_TRUE(access.check(boss, kConsuming, "a").ok());
  access.replace({token("boss", kSecretHash, kConsuming)});
  EXPECT_EQ(access.check(boss, kConsuming, "a").error().code, ErrorCode::kUnauthorized)
      << "it has another secret";
}

TEST(Access, requests_have_a_rate) {
  Token limited = token("shop", kSecretHash, kPushing);
  limited.requests_per_second = 2;
  const Access access({limited});
  const Caller first = access.identify("secret");
  const Caller second = access.identify("secret");
  EXPECT_TRUE(access.count_request(first, kNow).ok());
  EXPECT_TRUE(access.count_request(second, kNow).ok());
  const Status refused = access.count_request(first, kNow);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(refused.error().retry_after, Millis{500});
  EXPECT_TRUE(access.count_request(first, kNow + Millis{500}).ok());
}

TEST(Access, pops_that_wait_have_a_bound) {
  Token limited = token("shop", kSecretHash, kConsuming);
  limited.waiters = 1;
  const Access access({limited});
  const Caller shop = access.identify("secret");
  {
    const Result<Access::WaiterPlace> place = access.take_waiter_place(shop);
    ASSERT_TRUE(place.ok());
    EXPECT_EQ(access.take_waiter_place(shop).error().code, ErrorCode::kOverloaded);
  }
  EXPECT_TRUE(access.take_waiter_place(shop).ok()) << "the first is gone";
  EXPECT_TRUE(access.take_waiter_place(Caller()).ok()) << "who is nobody is stopped elsewhere";
}

}  // namespace
}  // namespace delayq::api
