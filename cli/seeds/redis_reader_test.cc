#include "cli/seeds/redis_reader.h"

#include <deque>

#include <gmock/gmock.h>

#include "cli/seeds/layout.h"

namespace delayq::cli::seeds {
namespace {

using resp::Value;
using testing::ElementsAre;
using testing::HasSubstr;

Value bulk(std::string text) {
  Value value;
  value.type = Value::Type::kBulk;
  value.text = std::move(text);
  return value;
}

Value array(std::vector<Value> items) {
  Value value;
  value.type = Value::Type::kArray;
  value.items = std::move(items);
  return value;
}

Value error(std::string text) {
  Value value = bulk(std::move(text));
  value.type = Value::Type::kError;
  return value;
}

/// Answers what a test gave it, and keeps what it was asked.
struct Script {
  std::deque<Value> replies;
  std::vector<Words> asked;

  RedisReader reader() {
    return RedisReader([this](std::span<const Words> commands) -> Result<std::vector<Value>> {
      std::vector<Value> answers;
      for (const Words& command : commands) {
        asked.push_back(command);
        if (replies.empty()) return Error{ErrorCode::kUnavailable, {}, "gone"};
        answers.push_back(std::move(replies.front()));
        replies.pop_front();
      }
      return answers;
    });
  }
};

TEST(RedisReader, ScansToTheEndAndKeepsOnlyTheType) {
  Script script;
  script.replies = {array({bulk("17"), array({bulk("p1"), bulk("p2")})}), bulk("zset"), bulk("string"),
                    array({bulk("0"), array({})})};
  std::vector<std::string> keys;
  const Status status = script.reader().scan_keys("p", "zset", [&](const RedisReader::Page& page) {
    keys.insert(keys.end(), page.begin(), page.end());
    return Status{};
  });
  EXPECT_TRUE(status.ok());
  EXPECT_THAT(keys, ElementsAre("p1"));
  EXPECT_THAT(script.asked.front(), ElementsAre("SCAN", "0", "MATCH", "p*", "COUNT", "1000"));
  EXPECT_EQ(script.asked.back()[1], "17");
}

TEST(RedisReader, AnErrorReplyOrAStrangeOneEndsIt) {
  const auto never = [](const RedisReader::Page&) { return Status{}; };
  Script refused;
  refused.replies = {error("NOPERM this user has no permissions")};
  EXPECT_THAT(refused.reader().scan_keys("p", "zset", never).error().detail, HasSubstr("NOPERM"));
  Script strange;
  strange.replies = {bulk("what?")};
  EXPECT_THAT(strange.reader().scan_keys("p", "zset", never).error().detail, HasSubstr("SCAN"));
  Script odd;
  odd.replies = {array({bulk("0"), array({bulk("member without a score")})})};
  const auto take = [](const std::vector<RedisReader::Pair>&) { return Status{}; };
  EXPECT_FALSE(odd.reader().scan_zset("z", take).ok());
  Script gone;
  EXPECT_EQ(gone.reader().scan_hash("h", take).error().code, ErrorCode::kUnavailable);
}

TEST(RedisReader, BucketsAreFoundOrCounted) {
  Script script;
  EXPECT_THAT(*Buckets({"b_"}, 0, {1}).keys(script.reader()), ElementsAre("b_0", "b_1"));
  EXPECT_THAT(*Buckets({"b_"}, 1, {3}).keys(script.reader()), ElementsAre("b_1", "b_2", "b_3"));
  script.replies = {
      array({bulk("0"), array({bulk("b_2"), bulk("b_x"), bulk("b_"), bulk("b_1"), bulk("b_2")})}),
      bulk("zset"),
      bulk("zset"),
      bulk("zset"),
      bulk("zset"),
      bulk("zset")};
  EXPECT_THAT(*Buckets({"b_"}, 1, {0}).keys(script.reader()), ElementsAre("b_1", "b_2"));
}

TEST(RedisReader, OnlyTimesAreTimes) {
  EXPECT_EQ(moment_of_seconds("1700000000"), from_unix_ms(1'700'000'000'000));
  EXPECT_EQ(moment_of_seconds("1700000000.25"), from_unix_ms(1'700'000'000'250));
  EXPECT_EQ(moment_of_seconds("1.7e9"), from_unix_ms(1'700'000'000'000));
  for (const char* text : {"", "inf", "-1", "nan", "12x", "1e300", " 1"})
    EXPECT_FALSE(moment_of_seconds(text).has_value()) << text;
}

TEST(RedisReader, PatternsAreTakenLiterally) { EXPECT_EQ(escaped_pattern("a*[b]?\\"), "a\\*\\[b\\]\\?\\\\"); }

TEST(SeedLayouts, EachSystemHasOne) {
  for (const std::string_view system : kSystems) EXPECT_NE(layout_of(system, {}), nullptr) << system;
  EXPECT_EQ(layout_of("celery", {}), nullptr);
  EXPECT_EQ(lease_of_seconds(20), "20s");
  EXPECT_EQ(lease_of_seconds(0), "");
  EXPECT_EQ(lease_of_seconds(1'000'000), "86400s");
}

}  // namespace
}  // namespace delayq::cli::seeds
