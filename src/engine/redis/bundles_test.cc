#include <gmock/gmock.h>

#include "engine/redis/arguments.h"

namespace delayq::redis {
namespace {

using testing::ElementsAre;
using Place = std::pair<uint32_t, std::string_view>;

std::vector<Bundle> bundle(const std::vector<Place>& places, bool in_strict_order = false) {
  return make_bundles(
      places, [](const Place& place) { return place; }, in_strict_order);
}

TEST(Bundles, AreOfOneShardAndTopicInTheBatchsOrder) {
  const std::vector<Bundle> bundles = bundle({{0, "t"}, {1, "t"}, {0, "u"}, {0, "t"}, {1, "t"}});
  ASSERT_EQ(bundles.size(), 3U);
  EXPECT_THAT(bundles[0].items, ElementsAre(0, 3));
  EXPECT_THAT(bundles[1].items, ElementsAre(1, 4));
  EXPECT_EQ(bundles[1].shard, 1U);
  EXPECT_THAT(bundles[2].items, ElementsAre(2));
  EXPECT_EQ(bundles[2].topic, "u");
}

TEST(Bundles, InStrictOrderAreRunsOnly) {
  const std::vector<Bundle> bundles = bundle({{0, "t"}, {0, "t"}, {0, "u"}, {0, "t"}}, true);
  ASSERT_EQ(bundles.size(), 3U);
  EXPECT_THAT(bundles[0].items, ElementsAre(0, 1));
  EXPECT_THAT(bundles[1].items, ElementsAre(2));
  EXPECT_THAT(bundles[2].items, ElementsAre(3));
}

TEST(Bundles, HaveABound) {
  std::vector<Place> places(2 * kItemsPerCall + 1, Place{0, "t"});
  places.insert(places.begin() + 5, {0, "u"});
  const std::vector<Bundle> bundles = bundle(places);
  ASSERT_EQ(bundles.size(), 4U);
  uint32_t last = 0;
  size_t items = 0;
  for (const Bundle& each : bundles) {
    EXPECT_LE(each.items.size(), kItemsPerCall);
    items += each.items.size();
    if (each.topic == "u") continue;
    EXPECT_TRUE(std::is_sorted(each.items.begin(), each.items.end()));
    EXPECT_GE(each.items.front(), last);
    last = each.items.back();
  }
  EXPECT_EQ(items, places.size());
}

TEST(Bundles, OfLargeItemsHaveFewOfThem) {
  const std::vector<size_t> sizes{kBytesPerCall / 2, kBytesPerCall / 2, 1, 1, 3 * kBytesPerCall, 1};
  const auto where = [](size_t) { return std::pair(uint32_t{0}, std::string_view("t")); };
  std::vector<std::vector<uint32_t>> items;
  for (const Bundle& each : make_bundles(
           sizes, where, [](size_t size) { return size; }, false))
    items.push_back(each.items);
  EXPECT_EQ(items, (std::vector<std::vector<uint32_t>>{{0, 1}, {2, 3, 4}, {5}}))
      << "full when it has the bytes; one that is too large by itself is sent all the same";
}

TEST(Bundles, OfThoseThatLookAtAllTopicsHaveFewWhenTheseAreMany) {
  EXPECT_EQ(unique_per_call(1), kItemsPerCall);
  EXPECT_EQ(unique_per_call(100), 10U);
  EXPECT_EQ(unique_per_call(1'000), 1U);
  EXPECT_EQ(unique_per_call(1'000'000), 1U) << "one is the least";
  EXPECT_EQ(unique_per_call(0), 8U) << "while nobody has counted";
}

TEST(Bundles, OfNothingAreNone) { EXPECT_TRUE(bundle({}).empty()); }

}  // namespace
}  // namespace delayq::redis
