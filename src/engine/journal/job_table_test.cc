#include "engine/journal/job_table.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.h"

namespace delayq::journal {
namespace {

TEST(Slab, a_new_place_is_all_zeros_even_when_used_before) {
  Slab<Location> slab;
  const uint32_t first = slab.allocate();
  slab[first] = {1, 2, 3};
  slab.free(first);
  const uint32_t again = slab.allocate();
  EXPECT_EQ(again, first);
  EXPECT_EQ(slab[again], Location{});
}

TEST(Slab, numbers_are_unique_and_stable) {
  Slab<Location> slab;
  std::set<uint32_t> numbers;
  for (uint32_t i = 0; i < 200'000; ++i) {
    const uint32_t number = slab.allocate();
    ASSERT_TRUE(numbers.insert(number).second);
    slab[number].offset = number;
  }
  EXPECT_EQ(slab.size(), 200'000U);
  for (const uint32_t number : numbers) ASSERT_EQ(slab[number].offset, number);
}

TEST(Slab, chunks_that_are_empty_go_back_to_the_system) {
  Slab<Location> slab;
  slab.allocate();
  const uint64_t one_chunk = slab.memory_bytes();
  std::vector<uint32_t> numbers;
  while (slab.memory_bytes() < 4 * one_chunk) numbers.push_back(slab.allocate());
  for (const uint32_t number : numbers) slab.free(number);
  EXPECT_EQ(slab.memory_bytes(), one_chunk);
  EXPECT_EQ(slab.size(), 1U);
  // They can be used again.
  for (size_t i = 0; i < numbers.size(); ++i) slab[slab.allocate()].size = 1;
  EXPECT_EQ(slab.memory_bytes(), 4 * one_chunk);
}

TEST(Slab, low_places_are_used_first_so_that_high_chunks_empty) {
  Slab<Location> slab;
  slab.allocate();
  const uint64_t one_chunk = slab.memory_bytes();
  std::vector<uint32_t> numbers;
  while (slab.memory_bytes() < 3 * one_chunk) numbers.push_back(slab.allocate());
  for (size_t i = 0; i < 100; ++i) slab.free(numbers[i]);
  for (size_t i = 0; i < 100; ++i) EXPECT_LT(slab.allocate(), one_chunk / sizeof(Location));
}

TEST(JobTable, a_new_job_is_linked_to_nothing) {
  JobTable jobs;
  const Slot slot = jobs.add();
  EXPECT_EQ(jobs[slot].wheel_next, kNoSlot);
  EXPECT_EQ(jobs[slot].chain_previous, kNoSlot);
  EXPECT_EQ(jobs.find_extra(slot), nullptr);
  EXPECT_EQ(jobs.size(), 1U);
}

TEST(JobTable, an_extra_is_made_when_asked_for_and_trimmed_when_it_says_nothing) {
  JobTable jobs;
  const Slot slot = jobs.add();
  jobs.extra(slot).lease = 5;
  jobs.trim_extra(slot);
  ASSERT_NE(jobs.find_extra(slot), nullptr);
  EXPECT_EQ(jobs.find_extra(slot)->lease, 5U);
  jobs.extra(slot).lease = 0;
  jobs.trim_extra(slot);
  EXPECT_EQ(jobs.find_extra(slot), nullptr);
  EXPECT_TRUE(jobs.extra(slot).is_default()) << "a reused extra starts from nothing";
}

TEST(JobTable, removing_a_job_gives_its_extra_back) {
  JobTable jobs;
  uint64_t memory = 0;
  for (int i = 0; i < 500'000; ++i) {
    const Slot slot = jobs.add();
    jobs.extra(slot).lease = 7;
    jobs.remove(slot);
    if (i == 0) memory = jobs.memory_bytes();
  }
  EXPECT_EQ(jobs.memory_bytes(), memory);
  EXPECT_EQ(jobs.size(), 0U);
}

TEST(Entry, times_are_kept_to_the_millisecond_within_their_range) {
  Entry entry{};
  entry.due_ms = to_stored_ms(from_unix_ms(1'700'000'000'123)) & kLatestMs;
  EXPECT_EQ(entry.due(), from_unix_ms(1'700'000'000'123));
  EXPECT_EQ(to_stored_ms(from_unix_ms(-1)), 0U);
  EXPECT_EQ(to_stored_ms(kNever), static_cast<uint64_t>(kLatestMs));
}

}  // namespace
}  // namespace delayq::journal
