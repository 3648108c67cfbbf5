#include <algorithm>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/random.h"
#include "engine/journal/job_table.h"

namespace delayq::journal {
namespace {

using testing::UnorderedElementsAre;

class IdIndexTest : public testing::Test {
 protected:
  Slot add(std::string_view id, uint32_t topic) {
    const Slot slot = jobs.add();
    jobs[slot].topic = topic;
    index.insert(index.key_of(id), slot);
    return slot;
  }
  void erase(Slot slot) {
    index.erase(slot);
    EXPECT_TRUE(jobs.find_extra(slot) == nullptr || jobs.find_extra(slot)->is_default());
    jobs.remove(slot);
  }
  Slot find(std::string_view id, uint32_t topic) const { return index.find(index.key_of(id), topic); }

  JobTable jobs;
  IdIndex index{jobs, SipKey{3, 4}};
};

TEST_F(IdIndexTest, finds_within_a_topic) {
  const Slot slot = add("a", 1);
  EXPECT_EQ(find("a", 1), slot);
  EXPECT_EQ(find("a", 2), kNoSlot);
  EXPECT_EQ(find("b", 1), kNoSlot);
  erase(slot);
  EXPECT_EQ(find("a", 1), kNoSlot);
}

TEST_F(IdIndexTest, the_same_id_in_many_topics) {
  std::vector<Slot> slots;
  for (uint32_t topic = 0; topic < 50; ++topic) slots.push_back(add("a", topic));
  for (uint32_t topic = 0; topic < 50; ++topic) EXPECT_EQ(find("a", topic), slots[topic]);
  EXPECT_EQ(find("a", 50), kNoSlot);
  EXPECT_THAT(index.find_all(index.key_of("a")), testing::UnorderedElementsAreArray(slots));
}

TEST_F(IdIndexTest, the_first_goes_first) {
  const Slot first = add("a", 1);
  const Slot second = add("a", 2);
  const Slot third = add("a", 3);
  erase(first);
  EXPECT_EQ(find("a", 1), kNoSlot);
  EXPECT_THAT(index.find_all(index.key_of("a")), UnorderedElementsAre(second, third));
  EXPECT_EQ(find("a", 2), second);
  EXPECT_EQ(find("a", 3), third);
}

TEST_F(IdIndexTest, the_first_goes_last) {
  const Slot first = add("a", 1);
  erase(add("a", 2));
  erase(add("a", 3));
  EXPECT_EQ(find("a", 1), first);
  EXPECT_FALSE(jobs[first].shares_id) << "an ordinary job again";
  EXPECT_EQ(jobs.find_extra(first), nullptr);
}

TEST_F(IdIndexTest, random_ops_against_a_map) {
  constexpr uint64_t kSeed = 9;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random{kSeed};
  std::map<std::pair<std::string, uint32_t>, Slot> expected;
  for (int step = 0; step < 20'000; ++step) {
    const std::string id = std::to_string(random.below(20));
    const auto topic = static_cast<uint32_t>(random.below(12));
    const auto known = expected.find({id, topic});
    if (known == expected.end()) {
      ASSERT_EQ(find(id, topic), kNoSlot);
      expected[{id, topic}] = add(id, topic);
    } else {
      ASSERT_EQ(find(id, topic), known->second);
      erase(known->second);
      expected.erase(known);
    }
    const auto count =
        std::count_if(expected.begin(), expected.end(), [&](auto& row) { return row.first.first == id; });
    ASSERT_EQ(index.find_all(index.key_of(id)).size(), static_cast<size_t>(count));
  }
}

}  // namespace
}  // namespace delayq::journal
