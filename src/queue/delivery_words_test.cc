#include <gmock/gmock.h>

#include "queue/delivery.h"

namespace delayq {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(DeliveryWords, AreParsedAndNamed) {
  for (const Delivery delivery : {Delivery::kPull, Delivery::kWebhook, Delivery::kRedisList,
                                  Delivery::kRedisStream, Delivery::kKafkaTopic}) {
    EXPECT_EQ(*kDeliveryWords.find(name_of(delivery)), static_cast<size_t>(delivery));
  }
  EXPECT_THAT(kDeliveryWords.find("pigeon").error().detail,
              HasSubstr("not known: use one of pull, webhook, redis_list, redis_stream, kafka_topic"));
  EXPECT_EQ(*kRedisContentWords.find("id"), static_cast<size_t>(RedisContent::kId));
  EXPECT_EQ(*kRedisContentWords.find("job"), static_cast<size_t>(RedisContent::kJob));
  EXPECT_THAT(kRedisContentWords.find("body").error().detail, HasSubstr("use one of job, id"));
}

TEST(DeliveryWords, OnlyTwoGoToRedis) {
  EXPECT_FALSE(goes_to_redis(Delivery::kPull));
  EXPECT_FALSE(goes_to_redis(Delivery::kWebhook));
  EXPECT_TRUE(goes_to_redis(Delivery::kRedisList));
  EXPECT_TRUE(goes_to_redis(Delivery::kRedisStream));
  EXPECT_FALSE(goes_to_redis(Delivery::kKafkaTopic));
}

TEST(DeliveryWords, ATopicInKafkaHasANameThatKafkaAllows) {
  for (const std::string& good : {std::string("orders"), std::string("A.b_c-9"), std::string(249, 'k')})
    EXPECT_TRUE(check_kafka_topic(good).ok()) << good;
  for (const std::string& bad : {std::string(), std::string("."), std::string(".."), std::string("a b"),
                                 std::string("a:b"), std::string("订单"), std::string(250, 'k')})
    EXPECT_THAT(check_kafka_topic(bad).error().detail, HasSubstr("kafka_topic")) << bad;
  for (const KafkaKey key : {KafkaKey::kId, KafkaKey::kGroup, KafkaKey::kNone})
    EXPECT_EQ(*kKafkaKeyWords.find(name_of(key)), static_cast<size_t>(key));
  for (const KafkaContent content : {KafkaContent::kBody, KafkaContent::kJob, KafkaContent::kId})
    EXPECT_EQ(*kKafkaContentWords.find(name_of(content)), static_cast<size_t>(content));
  for (const KafkaHeaders headers : {KafkaHeaders::kAll, KafkaHeaders::kId, KafkaHeaders::kNone})
    EXPECT_EQ(*kKafkaHeadersWords.find(name_of(headers)), static_cast<size_t>(headers));
}

TEST(DeliveryWords, AKeyIsTextThatPeopleCanRead) {
  EXPECT_TRUE(check_redis_key("orders:{1}:due").ok());
  EXPECT_TRUE(check_redis_key("订单").ok());
  for (const std::string& bad :
       {std::string("a\tb"), std::string("a\0b", 3), std::string("\xc3"), std::string(513, 'k')})
    EXPECT_THAT(check_redis_key(bad).error().detail, HasSubstr("redis_key"));
}

TEST(Callback, UrlsThatCanBeCalled) {
  for (const std::string_view url :
       {"http://a", "https://shop.example/hooks/order?x=1", "HTTPS://Shop.example:8443/", "http://[::1]:80/x",
        "http://127.0.0.1:9999", "http://[fe80::1%25eth0]/", "http://[::ffff:10.0.0.1]:1/"}) {
    EXPECT_TRUE(check_callback(url).ok()) << url;
  }
}

TEST(Callback, UrlsThatCannot) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"shop.example/hook", "https://host/path"},
      {"ftp://shop.example/", "https://host/path"},
      {"/hook", "https://host/path"},
      {"http://", "no host"},
      {"http://:80/", "no host"},
      {"http://user:secret@shop.example/", "user's name"},
      {"http://[::1", "address"},
      {"http://[::1/x", "address"},
      {"http://[::1:80/", "address"},
      {"http://::1]/", "address"},
      {"http://[]/", "address"},
      {"http://[shop.example]/", "address"},
      {"http://[::1]x/", "address"},
      {"http://x[::1]/", "address"},
      {"http://[::1]]/", "address"},
      {"http://[[::1]/", "address"},
      {"http://shop.example:0/", "port"},
      {"http://shop.example:99999/", "port"},
      {"http://shop.example:x/", "port"},
      {"http://shop.example/a b", "spaces"},
      {"http://shop.example\\@other/", "backslashes"},
      {"http://shop.example/\r\nx: y", "control"},
  };
  for (const auto& [url, what] : cases) {
    const Status status = check_callback(url);
    ASSERT_FALSE(status.ok()) << url;
    EXPECT_THAT(status.error().detail, HasSubstr(what)) << url;
    EXPECT_TRUE(status.error().detail.starts_with("callback ")) << status.error().detail;
  }
  EXPECT_FALSE(check_callback("http://a/" + std::string(2'040, 'x')).ok());
}

TEST(Callback, TheHostOfAUrl) {
  EXPECT_EQ(host_of("http://Shop.Example/x"), "shop.example:80");
  EXPECT_EQ(host_of("https://shop.example?x"), "shop.example:443");
  EXPECT_EQ(host_of("https://shop.example:9/x"), "shop.example:9");
  EXPECT_EQ(host_of("http://[::1]/x"), "[::1]:80");
  EXPECT_EQ(host_of("http://[::1]:7/x"), "[::1]:7");
}

TEST(Callback, Words) {
  EXPECT_EQ(*parse_callback_format("callback-api"), CallbackFormat::kCallbackApi);
  EXPECT_FALSE(parse_callback_format("xml").ok());
  EXPECT_TRUE(check_callback_method("PUT").ok());
  EXPECT_FALSE(check_callback_method("GET").ok());
  EXPECT_FALSE(check_callback_method("put").ok());
}

TEST(Callback, AnErrorNeverShowsASecret) {
  EXPECT_TRUE(check_callback_secrets({}).ok());
  EXPECT_TRUE(check_callback_secrets({"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}).ok());
  const Status status = check_callback_secrets({"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "hunter2!"});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().detail, Not(HasSubstr("hunter2")));
  EXPECT_FALSE(check_callback_secrets(std::vector<std::string>(5, "whsec_MfKQ")).ok());
}

}  // namespace
}  // namespace delayq
