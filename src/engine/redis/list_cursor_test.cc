#include <gtest/gtest.h>

#include "engine/redis/lease.h"

namespace delayq::redis {
namespace {

TEST(ListCursor, ComesBackAsItWas) {
  const std::string member = std::string(20, '\0') + "\xff id.";
  const std::pair<JobState, ListCursor> cursors[] = {
      {JobState::kDelayed, {3, {"18446744073709551615", "0", "an.id\n"}}},
      {JobState::kDelayed, {3, {"12", "", ""}}},
      {JobState::kReady, {0, {"1", member}}},
      {JobState::kReserved, {1, {"17"}}},
      {JobState::kDone, {2, {"0"}}},
      {JobState::kDead, {2, {}}},
  };
  for (const auto& [state, cursor] : cursors) {
    const std::string text = write_cursor(state, cursor);
    const std::optional<ListCursor> read = read_cursor(text, state, 4);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->shard, cursor.shard);
    EXPECT_EQ(read->place, cursor.place) << text;
    EXPECT_FALSE(read_cursor(text, state, cursor.shard)) << "there is no such shard";
    EXPECT_FALSE(read_cursor(text, state == JobState::kDone ? JobState::kDead : JobState::kDone, 4));
  }
}

TEST(ListCursor, WhatNoListingAnswered) {
  for (const std::string& text :
       {std::string{"0"}, std::string{"0."}, std::string{"0.0."}, std::string{"0.0.zz..", 8},
        std::string{"0.0.31"}, std::string{"0.0.31.31.31.31"}, std::string{"0.00"}, std::string{"+0.0"},
        std::string{"0.0.78.."}, std::string{"0.0.3A.."}, std::string(2'000, '1'), std::string("\0", 1)}) {
    EXPECT_FALSE(read_cursor(text, JobState::kDelayed, 1)) << text;
  }
  EXPECT_FALSE(read_cursor("1.0.32." + std::string(60, '0'), JobState::kReady, 1))
      << "there is no third outlet";
  EXPECT_FALSE(read_cursor("1.0.30.00", JobState::kReady, 1)) << "too short for a member";
  EXPECT_FALSE(read_cursor("4.0.2d31", JobState::kDead, 1)) << "negative";
}

TEST(GroupCursor, ComesBackAsItWas) {
  const std::vector<uint32_t> shards{0, 3};
  const GroupCursor places{{3, "18446744073709551615"}, {5, "7"}};
  const std::string text = write_group_cursor(shards, places);
  EXPECT_EQ(text, "0:0,3:18446744073709551615");
  EXPECT_EQ(read_group_cursor(text, 4), (GroupCursor{{0, "0"}, {3, "18446744073709551615"}}));
  EXPECT_EQ(read_group_cursor(text, 3), std::nullopt) << "there is no such shard";
  EXPECT_EQ(write_group_cursor({}, places), "");
}

TEST(GroupCursor, WhatNoCallAnswered) {
  for (const std::string_view text : {"0", ":", "0:", ":0", ",0:0", "0:-1", "0:x", "a:0", "0:0:0"}) {
    EXPECT_EQ(read_group_cursor(text, 4), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace delayq::redis
