#include <gmock/gmock.h>

#include "queue/delivery.h"

namespace delayq {
namespace {

using testing::HasSubstr;

TEST(DeliveryWords, AreParsedAndNamed) {
  for (const Delivery delivery :
       {Delivery::kPull, Delivery::kWebhook, Delivery::kRedisList, Delivery::kRedisStream}) {
    EXPECT_EQ(*parse_delivery(name_of(delivery)), delivery);
  }
  EXPECT_THAT(parse_delivery("kafka_topic").error().detail, HasSubstr("not yet in this version"));
  EXPECT_THAT(parse_delivery("pigeon").error().detail,
              HasSubstr("not known: use one of pull, webhook, redis_list, redis_stream"));
  EXPECT_EQ(*parse_redis_content("id"), RedisContent::kId);
  EXPECT_EQ(*parse_redis_content("job"), RedisContent::kJob);
  EXPECT_THAT(parse_redis_content("body").error().detail, HasSubstr("use one of job, id"));
}

TEST(DeliveryWords, OnlyTwoGoToRedis) {
  EXPECT_FALSE(goes_to_redis(Delivery::kPull));
  EXPECT_FALSE(goes_to_redis(Delivery::kWebhook));
  EXPECT_TRUE(goes_to_redis(Delivery::kRedisList));
  EXPECT_TRUE(goes_to_redis(Delivery::kRedisStream));
}

TEST(DeliveryWords, AKeyIsTextThatPeopleCanRead) {
  EXPECT_TRUE(check_redis_key("orders:{1}:due").ok());
  EXPECT_TRUE(check_redis_key("订单").ok());
  for (const std::string& bad :
       {std::string("a\tb"), std::string("a\0b", 3), std::string("\xc3"), std::string(513, 'k')})
    EXPECT_THAT(check_redis_key(bad).error().detail, HasSubstr("redis_key"));
}

}  // namespace
}  // namespace delayq
