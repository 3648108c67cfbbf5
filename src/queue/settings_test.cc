#include "queue/settings.h"

#include <gmock/gmock.h>

#include "core/random.h"
#include "queue/msgpack.h"
#include "queue/settings_table.h"

namespace delayq {
namespace {

Settings everything() {
  return {
      .attempts = 5,
      .backoff = ExponentialBackoff{Millis{100}, 3, Millis{9'000}, 0},
      .lease = Millis{30'000},
      .keep_done = Retention{Millis{1'000}, 7},
      .keep_dead = Retention{Millis{2'000}, 8},
      .rate = Rate{10, Millis{60'000}},
      .concurrency = 4,
      .paused = true,
      .priority = 0,
      .delivery = Delivery::kWebhook,
      .callback = "https://shop.example/hook",
      .callback_method = "PUT",
      .callback_timeout = Millis{7'000},
      .callback_format = CallbackFormat::kCloudEvents,
      .callback_secrets = {{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODk="}},
      .redis_key = "orders",
      .redis_content = RedisContent::kId,
      .redis_maxlen = 1'000'000,
      .kafka_topic = "orders.due",
      .kafka_key = KafkaKey::kGroup,
      .kafka_content = KafkaContent::kJob,
      .kafka_headers = KafkaHeaders::kId};
}

TEST(Settings, ComeBackAsTheyWere) {
  EXPECT_EQ(encode_settings({}), "");
  EXPECT_EQ(decode_settings("").value(), Settings{});
  EXPECT_EQ(decode_settings(encode_settings(everything())).value(), everything());
  const Settings one{.paused = false};
  EXPECT_EQ(decode_settings(encode_settings(one)).value(), one);
}

TEST(Settings, AreReadFromTheWordsThatShowThem) {
  const SettingValues values = topic_settings().values(everything());
  SettingValues read(topic_settings().rows());
  for (const NamedSetting& word : setting_words(values)) {
    if (word.name.ends_with("_count")) continue;  // of secrets
    const auto* const number = std::get_if<uint64_t>(&word.value);
    const std::string text = number != nullptr ? std::to_string(*number) : std::get<std::string>(word.value);
    EXPECT_TRUE(set_from_text(read, word.name, text).ok()) << word.name << " " << text;
  }
  Settings without_secrets = everything();
  without_secrets.callback_secrets.reset();
  EXPECT_EQ(topic_settings().own(read), without_secrets);
}

TEST(Settings, ARateIsWrittenInOneWay) {
  EXPECT_EQ(parse_rate("100/1s").value(), (Rate{100, Millis{1'000}}));
  EXPECT_EQ(parse_rate("0").value().count, 0U);
  EXPECT_EQ(format_rate({100, Millis{60'000}}), "100/1m");
  EXPECT_EQ(format_rate({}), "0");
  for (const char* const text :
       {"", "100", "/1s", "100/", "1000000001/1s", "-1/1s", "1/-1s", "a/1s", "1/1s/1s", "1 /1s"})
    EXPECT_FALSE(parse_rate(text).ok()) << text;
}

TEST(Settings, WhatIsUnsaidIsLeftAsItWas) {
  EffectiveSettings effective;
  apply_settings({}, effective);
  EXPECT_EQ(effective, EffectiveSettings{});

  apply_settings(everything(), effective);
  apply_settings({.lease = Millis{500}}, effective);
  EXPECT_EQ(effective.lease, Millis{500});
  EXPECT_EQ(effective.attempts, 5U);
  EXPECT_EQ(effective.concurrency, 4U);
  EXPECT_EQ(effective.callback, "https://shop.example/hook");
  EXPECT_EQ(effective.callback_format, CallbackFormat::kCloudEvents);
  EXPECT_EQ(effective.callback_secrets.size(), 2U);
  EXPECT_EQ(effective.redis_key, "orders");
  EXPECT_EQ(effective.redis_content, RedisContent::kId);
  EXPECT_EQ(effective.redis_maxlen, 1'000'000U);
  EXPECT_EQ(effective.kafka_topic, "orders.due");
  EXPECT_EQ(effective.kafka_key, KafkaKey::kGroup);
  EXPECT_EQ(effective.kafka_content, KafkaContent::kJob);
  EXPECT_EQ(effective.kafka_headers, KafkaHeaders::kId);
}

TEST(Settings, TheBuiltInDefaultsAreThoseOfTheRules) {
  const EffectiveSettings defaults;
  EXPECT_EQ(defaults.attempts, 16U);
  EXPECT_EQ(defaults.lease, std::chrono::seconds{60});
  EXPECT_EQ(defaults.keep_dead, (Retention{std::chrono::days{30}, 100'000}));
  EXPECT_EQ(defaults.keep_done, (Retention{std::chrono::hours{1}, 1'000}));
  EXPECT_EQ(defaults.priority, 1024U);
}

TEST(Settings, NothingIsKeptWithoutTimeOrCount) {
  const Moment now = from_unix_ms(1'000);
  EXPECT_EQ(keep_from(now, {Millis{500}, 3}).until, from_unix_ms(1'500));
  EXPECT_EQ(keep_from(now, {Millis{500}, 3}).count, 3U);
  EXPECT_EQ(keep_from(now, {Millis{0}, 3}).count, 0U);
  EXPECT_EQ(keep_from(now, {Millis{500}, 0}).until, Moment{});
}

TEST(Settings, ChecksNameTheField) {
  const std::pair<Settings, const char*> cases[] = {
      {{.attempts = 2'000'000}, "attempts"},
      {{.backoff = StepBackoff{}}, "backoff"},
      {{.lease = Millis{1}}, "lease"},
      {{.keep_done = Retention{Millis{-1}, 1}}, "keep_done"},
      {{.keep_dead = Retention{std::chrono::days{99'999}, 1}}, "keep_dead"},
      {{.rate = Rate{1, Millis{0}}}, "rate"},
      {{.rate = Rate{2'000'000'000, Millis{1}}}, "rate"},
      {{.rate = Rate{1, std::chrono::days{2}}}, "rate"},
      {{.callback = std::string(5'000, 'x')}, "callback"},
      {{.callback = "shop.example"}, "callback"},
      {{.callback_method = "GET"}, "callback_method"},
      {{.callback_timeout = std::chrono::hours{2}}, "callback_timeout"},
      {{.callback_secrets = {{"whsec_"}}}, "callback_secrets"},
      {{.redis_key = std::string(513, 'x')}, "redis_key"},
      {{.redis_key = "a\nb"}, "redis_key"},
      {{.redis_key = "\xff"}, "redis_key"},
      {{.redis_maxlen = kMaxRedisMaxlen + 1}, "redis_maxlen"},
  };
  for (const auto& [settings, field] : cases) {
    const Status status = check_settings(settings);
    ASSERT_FALSE(status.ok()) << field;
    EXPECT_THAT(status.error().detail, testing::StartsWith(field));
  }
  EXPECT_TRUE(check_settings(everything()).ok());
  EXPECT_TRUE(check_settings({.rate = Rate{}}).ok()) << "a rate of none lifts a limit that all topics have";
}

TEST(Settings, BytesThatAreNotSettingsAreCorrupt) {
  const std::string good = encode_settings(everything());
  for (const std::string& bad : {good.substr(0, good.size() - 1), good + "x", std::string{"garbage"},
                                 encode_settings({.rate = Rate{1, std::chrono::days{2}}})}) {
    const Result<Settings> decoded = decode_settings(bad);
    ASSERT_FALSE(decoded.ok());
    EXPECT_EQ(decoded.error().code, ErrorCode::kCorrupt);
  }
}

TEST(Settings, FieldsOfANewerServerArePassedOver) {
  std::string bytes;
  MsgpackWriter writer{bytes};
  writer.map(2);
  writer.uint(99);
  writer.map(1);
  writer.text("k");
  writer.boolean(false);
  writer.uint(6);
  writer.uint(12);
  EXPECT_EQ(decode_settings(bytes).value(), Settings{.concurrency = 12});
}

TEST(Settings, FlippedBitsNeverHarm) {
  const std::string good = encode_settings(everything());
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random{kSeed};
  for (int round = 0; round < 10'000; ++round) {
    std::vector<char> bytes(good.begin(), good.end());
    for (uint64_t flips = random.between(1, 4); flips > 0; --flips) {
      char& byte = bytes[random.below(bytes.size())];
      byte = static_cast<char>(byte ^ (1 << random.below(8)));
    }
    const Result<Settings> settings = decode_settings({bytes.data(), bytes.size()});
    if (settings.ok()) {
      EXPECT_TRUE(check_settings(*settings).ok());
    }
  }
}

}  // namespace
}  // namespace delayq
