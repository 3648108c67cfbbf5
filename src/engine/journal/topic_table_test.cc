#include "engine/journal/topic_table.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/job_spec.h"

namespace delayq::journal {
namespace {

using support::at;
using support::kStart;

class TopicTableTest : public testing::Test {
 protected:
  Slot add(std::string_view topic, JobState state, uint32_t priority = 0, Moment due = kStart) {
    const Slot slot = jobs.add();
    jobs[slot].topic = topics.find_or_add(topic);
    jobs[slot].set_state(state);
    jobs[slot].priority = priority;
    jobs[slot].due_ms = to_stored_ms(due) & kLatestMs;
    jobs[slot].seq = ++seq_ & kMaxSeq;
    topics.enter(slot);
    return slot;
  }
  void remove(Slot slot) {
    topics.leave(slot);
    jobs.remove(slot);
  }
  Topic& topic(std::string_view name) { return topics[topics.find(name)]; }
  std::vector<Slot> chain(std::string_view name, JobState state) {
    std::vector<Slot> slots;
    for (Slot slot = topic(name).chain(state).first; slot != kNoSlot; slot = jobs[slot].chain_next)
      slots.push_back(slot);
    return slots;
  }
  std::vector<std::string> page(std::string_view cursor, uint32_t limit) {
    std::vector<std::string> names;
    for (const TopicNumber number : topics.page(cursor, limit)) names.push_back(topics[number].name);
    return names;
  }

  JobTable jobs;
  TopicTable topics{jobs};

 private:
  static constexpr uint64_t kMaxSeq = (uint64_t{1} << 48) - 1;
  uint64_t seq_ = 0;
};

TEST_F(TopicTableTest, a_topic_has_one_number) {
  EXPECT_EQ(topics.find("mail"), kNoTopic);
  const TopicNumber number = topics.find_or_add("mail");
  EXPECT_EQ(topics.find("mail"), number);
  EXPECT_EQ(topics.find_or_add("mail"), number);
  EXPECT_NE(topics.find_or_add("push"), number);
}

TEST_F(TopicTableTest, ready_jobs_are_in_order_of_priority_due_time_and_push) {
  const Slot last = add("mail", JobState::kReady, 9, at(0));
  const Slot third = add("mail", JobState::kReady, 5, at(2));
  const Slot fourth = add("mail", JobState::kReady, 5, at(2));
  const Slot second = add("mail", JobState::kReady, 5, at(1));
  const Slot first = add("mail", JobState::kReady, 0, at(100));
  std::vector<Slot> order;
  for (const ReadyKey& key : topic("mail").ready_for(Outlet::kTopic)) order.push_back(key.slot);
  EXPECT_EQ(order, (std::vector{first, second, third, fourth, last}));
  topics.change_due(third, to_stored_ms(at(5)));
  remove(first);
  order.clear();
  for (const ReadyKey& key : topic("mail").ready_for(Outlet::kTopic)) order.push_back(key.slot);
  EXPECT_EQ(order, (std::vector{second, fourth, third, last}));
}

TEST_F(TopicTableTest, a_list_keeps_the_order_of_entering) {
  const Slot a = add("mail", JobState::kDelayed);
  const Slot b = add("mail", JobState::kDelayed);
  const Slot c = add("mail", JobState::kDelayed);
  EXPECT_EQ(chain("mail", JobState::kDelayed), (std::vector{a, b, c}));
  remove(b);
  EXPECT_EQ(chain("mail", JobState::kDelayed), (std::vector{a, c}));
  remove(a);
  remove(c);
  EXPECT_TRUE(chain("mail", JobState::kDelayed).empty());
  EXPECT_EQ(topic("mail").chain(JobState::kDelayed).last, kNoSlot);
}

TEST_F(TopicTableTest, counts_what_is_there) {
  const Slot a = add("mail", JobState::kDelayed);
  add("mail", JobState::kDead);
  add("push", JobState::kDead);
  EXPECT_EQ(topics.size(), 2U);
  EXPECT_EQ(topics.totals()[static_cast<size_t>(JobState::kDead)], 2U);
  EXPECT_EQ(topic("mail").jobs, 2U);
  remove(a);
  EXPECT_EQ(topics.totals()[static_cast<size_t>(JobState::kDelayed)], 0U);
}

TEST_F(TopicTableTest, pages_follow_the_bytes_of_the_names) {
  for (const char* name : {"b", "a", "\xc3\xa4", "B", "aa"}) topics.find_or_add(name);
  EXPECT_EQ(page("", 2), (std::vector<std::string>{"B", "a"}));
  EXPECT_EQ(page("a", 2), (std::vector<std::string>{"aa", "b"}));
  EXPECT_EQ(page("b", 2), std::vector<std::string>{"\xc3\xa4"});
  EXPECT_EQ(page("no such name", 9), std::vector<std::string>{"\xc3\xa4"});
}

TEST_F(TopicTableTest, an_empty_topic_is_forgotten_after_a_minute) {
  const Slot slot = add("mail", JobState::kDelayed);
  topics.note_idle(topics.find("mail"), kStart);
  EXPECT_EQ(topics.next_forgetting(), kNever) << "it has a job";
  remove(slot);
  topics.note_idle(topics.find("mail"), kStart);
  EXPECT_EQ(topics.next_forgetting(), at(60'000));
  topics.forget_idle(at(59'999));
  EXPECT_NE(topics.find("mail"), kNoTopic);
  topics.forget_idle(at(60'000));
  EXPECT_EQ(topics.find("mail"), kNoTopic);
  EXPECT_TRUE(page("", 10).empty());
  EXPECT_EQ(topics.next_forgetting(), kNever);
}

TEST_F(TopicTableTest, one_with_settings_or_jobs_or_news_stays) {
  for (const char* name : {"settings", "jobs", "news"}) topics.note_idle(topics.find_or_add(name), kStart);
  topic("settings").settings = "x";
  add("jobs", JobState::kDelayed);
  topic("news").announced[0] = true;
  topics.forget_idle(at(60'000));
  EXPECT_EQ(page("", 10), (std::vector<std::string>{"jobs", "news", "settings"}));
}

TEST_F(TopicTableTest, forgetting_is_done_in_portions_and_numbers_are_used_again) {
  for (int i = 0; i < 1000; ++i) topics.note_idle(topics.find_or_add(std::to_string(i)), kStart);
  topics.forget_idle(at(60'000));
  EXPECT_GT(page("", 10'000).size(), 500U);
  for (int i = 0; i < 10; ++i) topics.forget_idle(at(60'000));
  EXPECT_TRUE(page("", 10'000).empty());
  EXPECT_LT(topics.find_or_add("new"), 1000U);
}

TEST_F(TopicTableTest, a_cursor_moves_on_when_its_job_leaves) {
  const Slot a = add("mail", JobState::kDelayed);
  const Slot b = add("mail", JobState::kDelayed);
  const Slot c = add("mail", JobState::kDelayed);
  const uint64_t at_a = topics.cursors.add(a);
  const uint64_t also_at_a = topics.cursors.add(a);
  const uint64_t at_c = topics.cursors.add(c);
  remove(a);
  remove(b);
  EXPECT_EQ(topics.cursors.find(at_a), c);
  EXPECT_EQ(topics.cursors.find(at_a), c) << "a cursor can be used again";
  remove(c);
  EXPECT_EQ(topics.cursors.find(also_at_a), kNoSlot) << "the list came to an end";
  EXPECT_EQ(topics.cursors.find(at_c), kNoSlot);
}

TEST_F(TopicTableTest, a_cursor_that_is_taken_leaves_no_mark) {
  const Slot a = add("mail", JobState::kDelayed);
  const uint64_t first = topics.cursors.add(a);
  const uint64_t second = topics.cursors.add(a);
  topics.cursors.remove(first);
  EXPECT_TRUE(jobs[a].has_cursor);
  topics.cursors.remove(second);
  EXPECT_FALSE(jobs[a].has_cursor);
}

TEST_F(TopicTableTest, the_oldest_cursors_are_given_up) {
  const Slot a = add("mail", JobState::kDelayed);
  const uint64_t oldest = topics.cursors.add(a);
  uint64_t newest = 0;
  for (int i = 0; i < 1024; ++i) newest = topics.cursors.add(a);
  EXPECT_EQ(topics.cursors.find(oldest), std::nullopt);
  EXPECT_EQ(topics.cursors.find(newest), a);
}

}  // namespace
}  // namespace delayq::journal
