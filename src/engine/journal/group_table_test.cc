#include <string>

#include <gtest/gtest.h>

#include "engine/journal/topic_table.h"

namespace delayq::journal {
namespace {

class GroupTableTest : public testing::Test {
 protected:
  Slot add(std::string_view group) {
    const Slot slot = jobs.add();
    groups.add(group, slot);
    return slot;
  }
  std::vector<Slot> members(std::string_view group, size_t max = 100) {
    return groups.members(group, {}, max, [](const Entry&) { return true; }).members;
  }

  JobTable jobs;
  GroupTable groups{jobs};
};

TEST_F(GroupTableTest, has_its_members_the_latest_first) {
  const Slot a = add("g");
  const Slot b = add("g");
  const Slot c = add("other");
  EXPECT_EQ(members("g"), (std::vector{b, a}));
  EXPECT_EQ(members("g", 1), std::vector{b});
  EXPECT_EQ(members("other"), std::vector{c});
  EXPECT_TRUE(members("none").empty());
}

TEST_F(GroupTableTest, only_wanted_members_count) {
  const Slot a = add("g");
  add("g");
  jobs[a].priority = 5;
  EXPECT_EQ(groups.members("g", {}, 1, [](const Entry& entry) { return entry.priority == 5; }).members,
            std::vector{a});
}

TEST_F(GroupTableTest, a_walk_goes_on_where_it_was) {
  const auto all = [](const Entry&) { return true; };
  const Slot a = add("g");
  const Slot b = add("g");
  const Slot c = add("g");
  const GroupTable::Page first = groups.members("g", {}, 1, all);
  EXPECT_EQ(first.members, std::vector{c});
  groups.remove(b);  // where it would go on
  add("g");          // too late for this walk
  const GroupTable::Page second = groups.members("g", first.cursor, 9, all);
  EXPECT_EQ(second.members, std::vector{a});
  EXPECT_EQ(second.cursor, "");
  EXPECT_EQ(groups.members("g", first.cursor, 9, all).members.size(), 3U) << "a cursor is used once";
}

TEST_F(GroupTableTest, a_walk_whose_rest_is_gone_is_at_its_end) {
  const auto all = [](const Entry&) { return true; };
  const Slot a = add("g");
  add("g");
  const GroupTable::Page first = groups.members("g", {}, 1, all);
  groups.remove(a);
  const GroupTable::Page second = groups.members("g", first.cursor, 9, all);
  EXPECT_TRUE(second.members.empty());
  EXPECT_EQ(second.cursor, "");
}

TEST_F(GroupTableTest, a_cursor_of_another_group_is_not_followed) {
  const auto all = [](const Entry&) { return true; };
  add("g");
  add("g");
  const Slot other = add("h");
  const GroupTable::Page first = groups.members("g", {}, 1, all);
  EXPECT_EQ(groups.members("h", first.cursor, 9, all).members, std::vector{other});
}

TEST_F(GroupTableTest, members_leave_from_either_end_and_from_the_middle) {
  const Slot a = add("g");
  const Slot b = add("g");
  const Slot c = add("g");
  groups.remove(b);
  EXPECT_EQ(members("g"), (std::vector{c, a}));
  groups.remove(c);
  EXPECT_EQ(members("g"), std::vector{a});
  groups.remove(a);
  EXPECT_TRUE(members("g").empty());
  EXPECT_EQ(jobs.find_extra(a), nullptr) << "it costs nothing any more";
  groups.remove(a);  // no group: no effect
}

TEST_F(GroupTableTest, a_job_without_a_group_costs_nothing) {
  const Slot slot = add("");
  EXPECT_EQ(jobs.find_extra(slot), nullptr);
}

TEST_F(GroupTableTest, names_come_and_go_without_a_trace) {
  groups.remove(add("first"));
  const uint64_t before = groups.memory_bytes();
  for (int i = 0; i < 10'000; ++i) groups.remove(add(std::to_string(i)));
  EXPECT_LE(groups.memory_bytes(), before * 64);
}

}  // namespace
}  // namespace delayq::journal
