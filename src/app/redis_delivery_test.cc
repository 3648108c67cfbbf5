#include "app/redis_delivery.h"

#include <gtest/gtest.h>

namespace delayq {
namespace {

using net::redis::ClientOptions;
using net::redis::Mode;

ClientOptions engine() {
  ClientOptions options;
  options.mode = Mode::kCluster;
  options.addresses = {{"10.0.0.1", 7000}, {"10.0.0.2", 7000}};
  options.user = "delayq";
  options.password = "secret";
  options.tls.is_on = true;
  options.connections = 8;
  options.wait = Millis{500};
  return options;
}

TEST(RedisTarget, IsTheEnginesOwnOverAConnectionOfItsOwn) {
  const ClientOptions own = engine();
  RedisDeliveryOptions said;
  said.timeout = Millis{700};
  const auto where = redis_target(said, &own);
  ASSERT_TRUE(where.has_value());
  EXPECT_EQ(where->mode, Mode::kCluster);
  EXPECT_EQ(where->addresses, own.addresses);
  EXPECT_EQ(where->password, "secret");
  EXPECT_TRUE(where->tls.is_on);
  EXPECT_EQ(where->connections, 1);
  EXPECT_EQ(where->wait, Millis::zero());
  EXPECT_EQ(where->reply_timeout, Millis{700});
}

TEST(RedisTarget, AUrlGoesBeforeIt) {
  const ClientOptions own = engine();
  RedisDeliveryOptions said;
  said.url = "redis://127.0.0.1:6380/2";
  const auto where = redis_target(said, &own);
  ASSERT_TRUE(where.has_value());
  EXPECT_EQ(where->mode, Mode::kStandalone);
  EXPECT_EQ(where->database, 2);
  EXPECT_TRUE(where->password.empty());
  EXPECT_EQ(redis_target(said, nullptr), where);
}

TEST(RedisTarget, WithNeitherThereIsNone) { EXPECT_FALSE(redis_target({}, nullptr).has_value()); }

}  // namespace
}  // namespace delayq
