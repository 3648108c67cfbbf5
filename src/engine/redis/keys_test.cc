#include "engine/redis/keys.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "core/moment.h"
#include "net/redis/client.h"

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

/// How many shards each of `masters` gets if the slots are distributed as `redis-cli --cluster create` does.
std::vector<int> spread(const Tags& tags, int masters) {
  std::vector<int> shards(static_cast<size_t>(masters));
  for (const std::string& tag : tags) {
    const double part = static_cast<double>(net::redis::kSlots) / masters;
    const int slot = net::redis::slot_of("p:{" + tag + "}:job:t");
    int master = 0;
    while (master + 1 < masters && slot > std::lround(part * (master + 1)) - 1) ++master;
    ++shards[static_cast<size_t>(master)];
  }
  return shards;
}

TEST(Keys, ShardsAreSpreadEvenlyOverAnyNumberOfMasters) {
  for (const char* prefix : {"delayq", "shop", "a", "", "delayq:2", "test1"}) {
    for (const uint32_t shards : {2U, 3U, 8U, 10U, 16U, 24U, 32U, 64U, 100U, 256U}) {
      const Tags tags = spread_tags(prefix, shards);
      ASSERT_EQ(std::set<std::string>(tags.begin(), tags.end()).size(), shards);
      for (int masters = 1; masters <= 32; ++masters) {
        const std::vector<int> each = spread(tags, masters);
        const auto [least, most] = std::minmax_element(each.begin(), each.end());
        // Where the slots cannot be divided evenly, a shard may be on the other side of a boundary.
        const int apart = net::redis::kSlots % shards == 0 ? 1 : 2;
        EXPECT_LE(*most - *least, apart) << prefix << ": " << shards << " shards on " << masters;
      }
    }
  }
}

TEST(Keys, DeploymentsThatShareAClusterHaveOtherTags) {
  EXPECT_NE(spread_tags("a", 16), spread_tags("b", 16));
  std::set<std::vector<int>> spreads;
  for (int i = 0; i < 50; ++i) spreads.insert(spread(spread_tags("p" + std::to_string(i), 16), 3));
  EXPECT_EQ(spreads.size(), 3U) << "each of three masters has the sixth shard of some";
  EXPECT_EQ(spread_tags("a", 16), spread_tags("a", 16));
}

TEST(Keys, NoTwoTopicsShareOne) {
  const Keyspace keys("p", 1);
  std::set<std::string> names;
  // The four keys of the shard itself are the same for all topics.
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
  // Stored jobs are found by this: a different result would lose them.
  EXPECT_EQ(keys.shard_of("a"), Keyspace("other", 16).shard_of("a"));
  EXPECT_EQ(keys.shard_of("a"), 13U);
}

TEST(Keys, AScheduleAndItsJobsShareAShard) {
  const Keyspace keys("p", new_shards("p", 16));
  const Keyspace before("p", Shards{spread_tags("p", 16), LayoutVersion::kTagged});
  const Keyspace first("p", 16);
  std::set<uint32_t> shards;
  for (int i = 0; i < 100; ++i) {
    const std::string id = occurrence_id("nightly", from_unix_ms(1'800'000'000'000 + i * 3'600'500));
    EXPECT_EQ(keys.shard_of(id), keys.shard_of_schedule("nightly")) << id;
    EXPECT_EQ(before.shard_of(id), first.shard_of(id));
    shards.insert(before.shard_of(id));
  }
  // Also when the name of a schedule is written like an occurrence.
  const std::string odd = "nightly@2026-11-16T09:00:00Z";
  EXPECT_EQ(keys.shard_of(occurrence_id(odd, from_unix_ms(0))), keys.shard_of_schedule(odd));
  EXPECT_GT(shards.size(), 10U) << "deployments of earlier layouts find their jobs where they are";
  EXPECT_EQ(keys.shard_of("nightly"), first.shard_of("nightly"));
  EXPECT_EQ(keys.shard_of("a"), 13U);
}

}  // namespace
}  // namespace delayq::redis
