#include "engine/redis/keys.h"

#include <map>
#include <set>

#include <gmock/gmock.h>

namespace delayq::redis {
namespace {

using testing::Each;
using testing::StartsWith;

TEST(Keys, OfOneShardHaveOneHashTag) {
  const Keyspace keys("delayq", 8);
  EXPECT_THAT(keys.topic(3, "orders").all(), Each(StartsWith("delayq:{3}:")));
  EXPECT_EQ(keys.topic(3, "orders")[Key::kPool], "delayq:{3}:job:orders");
  EXPECT_EQ(keys.topic(3, "orders")[Key::kNext], keys.in_shard(3, "next"));
  EXPECT_EQ(keys.shared("settings"), "delayq:settings");
}

TEST(Keys, NoTwoTopicsShareOne) {
  const Keyspace keys("p", 1);
  std::set<std::string> names;
  // The shard's own four are the same for all.
  for (const char* topic : {"a", "a:callback", "callback", "job:a", "group:"}) {
    const TopicKeys own = keys.topic(0, topic);
    for (const std::string_view name : own.all()) names.emplace(name);
  }
  EXPECT_EQ(names.size(), 5 * (kTopicKeys - 4) + 4);
}

TEST(Keys, OutliveAMove) {
  TopicKeys keys = Keyspace("p", 1).topic(0, "t");
  const TopicKeys moved = std::move(keys);
  EXPECT_EQ(moved[Key::kDelay], "p:{0}:delay:t");
}

TEST(Keys, IdsAreSpreadEvenlyAndForEver) {
  const Keyspace keys("p", 16);
  std::map<uint32_t, int> jobs;
  for (int i = 0; i < 16'000; ++i) ++jobs[keys.shard_of("job " + std::to_string(i))];
  EXPECT_EQ(jobs.size(), 16U);
  for (const auto& [shard, count] : jobs) EXPECT_NEAR(count, 1'000, 200) << "shard " << shard;
  // Stored jobs are found by this: another answer would lose them.
  EXPECT_EQ(keys.shard_of("a"), Keyspace("other", 16).shard_of("a"));
  EXPECT_EQ(keys.shard_of("a"), 13U);
}

}  // namespace
}  // namespace delayq::redis
