#include "engine/redis/topic_rows.h"

#include <gmock/gmock.h>

namespace delayq::redis {
namespace {

using testing::ElementsAre;
using Type = resp::Value::Type;

resp::Value number(int64_t value) {
  return {.type = Type::kInteger, .integer = value, .text = {}, .items = {}};
}
resp::Value text(std::string value) { return {.type = Type::kBulk, .text = std::move(value), .items = {}}; }

/// A reply of scripts/topics.lua: each topic has one delayed job and a first job in line.
resp::Value answer(const std::string& last, const std::vector<std::string>& topics, int64_t priority = -1,
                   int64_t due = 0, int64_t lease = 0) {
  resp::Value value{.type = Type::kArray, .text = {}, .items = {text(""), text(""), text(last)}};
  for (const std::string& topic : topics) {
    value.items.push_back(text(topic));
    for (const int64_t count : {1, 0, 0, 0, 0}) value.items.push_back(number(count));
    value.items.push_back(number(priority));
    value.items.push_back(number(due));
    value.items.push_back(number(lease));
  }
  return value;
}

std::vector<std::string> names(const TopicPage& page) {
  std::vector<std::string> names;
  for (const TopicRow& row : page.topics) names.push_back(row.topic);
  return names;
}

TEST(TopicRows, ShardsAreMergedAndSummed) {
  TopicRows rows;
  ASSERT_TRUE(rows.add_all(answer("", {"a", "c"})));
  ASSERT_TRUE(rows.add_all(answer("", {"b", "c"})));
  const TopicPage page = rows.page(10);
  EXPECT_THAT(names(page), ElementsAre("a", "b", "c"));
  EXPECT_EQ(page.cursor, "");
  EXPECT_EQ(page.topics[2].counts.of(JobState::kDelayed), 2U);
  TopicCounts sum;
  rows.add_to(sum);
  EXPECT_EQ(sum.of(JobState::kDelayed), 4U);
}

TEST(TopicRows, APageEndsWhereAShardHasMoreThanItSaid) {
  TopicRows rows;
  ASSERT_TRUE(rows.add_all(answer("b", {"a", "b"})));
  ASSERT_TRUE(rows.add_all(answer("d", {"c", "d"})));
  const TopicPage page = rows.page(10);
  EXPECT_THAT(names(page), ElementsAre("a", "b")) << "the first shard may have another c";
  EXPECT_EQ(page.cursor, "b");
}

TEST(TopicRows, APageIsNoLongerThanItsLimit) {
  TopicRows rows;
  ASSERT_TRUE(rows.add_all(answer("", {"a", "c"})));
  ASSERT_TRUE(rows.add_all(answer("", {"b"})));
  const TopicPage page = rows.page(2);
  EXPECT_THAT(names(page), ElementsAre("a", "b"));
  EXPECT_EQ(page.cursor, "b");
}

TEST(TopicRows, TheOldestLeaseIsThatOfAnyShard) {
  constexpr int64_t kMs = 1'700'000'000'000;
  TopicRows rows;
  ASSERT_TRUE(rows.add_all(answer("", {"t"}, -1, 0, 1024 * (kMs + 5) + 1)));
  ASSERT_TRUE(rows.add_all(answer("", {"t"}, -1, 0, 1024 * kMs + 1023)));
  ASSERT_TRUE(rows.add_all(answer("", {"t"}, -1, 0, 0)));
  EXPECT_EQ(rows.counts_of("t").oldest_lease, from_unix_ms(kMs));
  EXPECT_EQ(time_of_lease(1'234), std::nullopt) << "a number of an earlier version, which only counted";
}

TEST(TopicRows, TheFirstInLineIsThatOfTheFirstPriority) {
  TopicRows rows;
  ASSERT_TRUE(rows.add_all(answer("", {"t"}, 5, 100)));
  ASSERT_TRUE(rows.add_all(answer("", {"t"}, 1, 300)));
  ASSERT_TRUE(rows.add_all(answer("", {"t"}, 1, 200)));
  ASSERT_TRUE(rows.add_all(answer("", {"t"}, -1, 0)));
  EXPECT_EQ(rows.counts_of("t").oldest_ready, from_unix_ms(200));
  EXPECT_EQ(rows.counts_of("nobody").oldest_ready, std::nullopt);
  EXPECT_EQ(rows.counts_of("t").oldest_lease, std::nullopt);
}

TEST(TopicRows, WhatMakesNoSense) {
  TopicRows rows;
  EXPECT_FALSE(rows.add_all(resp::Value{}));
  resp::Value cut = answer("", {"a"});
  cut.items.pop_back();
  EXPECT_FALSE(rows.add_all(cut));
}

}  // namespace
}  // namespace delayq::redis
