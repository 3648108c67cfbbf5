#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.h"
#include "engine/journal/job_table.h"

namespace delayq::journal {
namespace {

/// The key of a slot. A narrow `mask` makes keys collide.
SlotKey key_of(Slot slot, uint64_t mask) {
  const uint64_t mixed = mix64(slot + 1);
  return {mixed & mask, static_cast<uint32_t>(mix64(mixed) & mask)};
}

Slot find(const SlotMap& map, SlotKey key, Slot slot) {
  return map.find(key, [&](Slot candidate) { return candidate == slot; });
}

class SlotMapTest : public testing::TestWithParam<uint64_t> {};

TEST_P(SlotMapTest, does_what_an_unordered_map_does) {
  const uint64_t mask = GetParam();
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random{seed};
    SlotMap map;
    std::unordered_map<Slot, bool> expected;
    std::vector<Slot> members;
    for (int step = 0; step < 20'000; ++step) {
      const bool grows = (step / 5000) % 2 == 0;
      const Slot slot = static_cast<Slot>(random.below(5000));
      if (random.chance(grows ? 3 : 1, 4)) {
        if (expected.emplace(slot, true).second) map.insert(key_of(slot, mask), slot);
      } else if (expected.erase(slot) == 1) {
        map.erase(key_of(slot, mask), slot);
      }
      const Slot asked = static_cast<Slot>(random.below(5000));
      ASSERT_EQ(find(map, key_of(asked, mask), asked), expected.contains(asked) ? asked : kNoSlot);
    }
    for (Slot slot = 0; slot < 5000; ++slot) {
      ASSERT_EQ(find(map, key_of(slot, mask), slot) != kNoSlot, expected.contains(slot));
    }
  }
}

// Well distributed keys; keys with few different fragments in all shards; keys in one shard
// with sixteen fragments.
INSTANTIATE_TEST_SUITE_P(Keys, SlotMapTest, testing::Values(UINT64_MAX, 0xff, 0x0f));

TEST(SlotMap, grows_and_gives_back) {
  SlotMap map;
  const uint64_t empty = map.memory_bytes();
  for (Slot slot = 0; slot < 100'000; ++slot) map.insert(key_of(slot, UINT64_MAX), slot);
  EXPECT_GT(map.memory_bytes(), empty + 100'000 * 8);
  EXPECT_LT(map.memory_bytes(), empty + 100'000 * 8 * 3);
  for (Slot slot = 0; slot < 100'000; ++slot) map.erase(key_of(slot, UINT64_MAX), slot);
  EXPECT_EQ(map.memory_bytes(), empty);
}

TEST(SlotMap, many_under_one_key_are_all_found) {
  SlotMap map;
  const SlotKey key{42, 42};
  for (Slot slot = 0; slot < 1000; ++slot) map.insert(key, slot);
  for (Slot slot = 0; slot < 1000; slot += 2) map.erase(key, slot);
  for (Slot slot = 0; slot < 1000; ++slot) EXPECT_EQ(find(map, key, slot) == kNoSlot, slot % 2 == 0) << slot;
}

TEST(SlotMap, replace_leads_to_another_slot) {
  SlotMap map;
  map.insert({1, 1}, 10);
  map.insert({1, 1}, 11);
  map.replace({1, 1}, 10, 12);
  EXPECT_EQ(find(map, {1, 1}, 10), kNoSlot);
  EXPECT_EQ(find(map, {1, 1}, 11), 11U);
  EXPECT_EQ(find(map, {1, 1}, 12), 12U);
}

TEST(SlotMap, an_empty_map_has_nothing) {
  const SlotMap map;
  EXPECT_EQ(map.peek({1, 2}), kNoSlot);
}

}  // namespace
}  // namespace delayq::journal
