#include "queue/schedules.h"

#include <gmock/gmock.h>

#include "core/moment.h"
#include "tests/support/memory_queue.h"

namespace delayq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SchedulesTest : public testing::Test, public MemoryQueue {
 protected:
  /// The answer to a verb.
  template <class T>
  Result<T> ask(const std::function<void(Reply<T>)>& call) {
    std::optional<Result<T>> answer;
    call([&](Result<T> result) { answer.emplace(std::move(result)); });
    settle();
    return std::move(*answer);
  }

  Status set(std::string_view name, std::string_view topic, TopicPatterns topics = kAllTopics) {
    const ScheduleSpec spec{.name = name, .every = std::chrono::hours{1}, .topic = topic};
    const auto receipt =
        ask<ScheduleReceipt>([&](auto reply) { queue.set_schedule(now, spec, topics, std::move(reply)); });
    return receipt.ok() ? Status() : Status(receipt.error());
  }

  ScheduleViews list(std::string_view after, uint32_t limit, TopicPatterns topics) {
    return *ask<ScheduleViews>([&](auto reply) {
      queue.list_schedules(now, {.after = after, .limit = limit}, topics, std::move(reply));
    });
  }

  const std::array<std::string, 1> orders_{"order"};
};

TEST_F(SchedulesTest, WhatBelongsToOtherTopicsIsNotThere) {
  ASSERT_TRUE(set("bills", "bill").ok());
  const auto pause =
      ask<ScheduleView>([&](auto reply) { queue.pause_schedule(now, "bills", orders_, std::move(reply)); });
  const auto none =
      ask<ScheduleView>([&](auto reply) { queue.pause_schedule(now, "none", orders_, std::move(reply)); });
  EXPECT_EQ(pause.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(none.error().code, pause.error().code);
  const auto resume =
      ask<ScheduleView>([&](auto reply) { queue.resume_schedule(now, "bills", orders_, std::move(reply)); });
  EXPECT_EQ(resume.error().code, ErrorCode::kNotFound);
  const auto run =
      ask<ScheduleRun>([&](auto reply) { queue.run_schedule(now, "bills", orders_, std::move(reply)); });
  EXPECT_EQ(run.error().code, ErrorCode::kNotFound);
  const auto removed =
      ask<void>([&](auto reply) { queue.remove_schedule(now, "bills", orders_, std::move(reply)); });
  EXPECT_EQ(removed.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(set("bills", "order", orders_).error().code, ErrorCode::kConflict);
  EXPECT_EQ(list("", 10, kAllTopics).schedules.size(), 1u);
}

TEST_F(SchedulesTest, ACursorNamesNoScheduleOfOtherTopics) {
  for (const char* name : {"a", "b", "m", "y", "z"}) ASSERT_TRUE(set(name, "bill").ok());
  for (const char* name : {"c", "n"}) ASSERT_TRUE(set(name, "order").ok());
  std::vector<std::string> cursors;
  std::vector<std::string> seen;
  std::string after;
  do {
    const ScheduleViews page = list(after, 1, orders_);
    for (const ScheduleView& view : page.schedules) seen.emplace_back(view.spec.name);
    cursors.push_back(after = page.cursor);
  } while (!after.empty() && cursors.size() < 10);
  EXPECT_THAT(seen, ElementsAre("c", "n"));
  EXPECT_THAT(cursors, ElementsAre("c", ""));
}

TEST_F(SchedulesTest, EveryVerbChecksTheName) {
  for (const std::string_view name : {std::string_view(""), std::string_view("a/b"), kPreviewName}) {
    EXPECT_EQ(set(name, "order").error().field, "name") << name;
    const auto found = ask<std::optional<ScheduleView>>(
        [&](auto reply) { queue.get_schedule(now, name, kAllTopics, std::move(reply)); });
    EXPECT_EQ(found.error().code, ErrorCode::kInvalid) << name;
    const auto removed =
        ask<void>([&](auto reply) { queue.remove_schedule(now, name, kAllTopics, std::move(reply)); });
    EXPECT_EQ(removed.error().code, ErrorCode::kInvalid) << name;
    const auto paused =
        ask<ScheduleView>([&](auto reply) { queue.pause_schedule(now, name, kAllTopics, std::move(reply)); });
    EXPECT_EQ(paused.error().code, ErrorCode::kInvalid) << name;
    const auto run =
        ask<ScheduleRun>([&](auto reply) { queue.run_schedule(now, name, kAllTopics, std::move(reply)); });
    EXPECT_EQ(run.error().code, ErrorCode::kInvalid) << name;
  }
  EXPECT_THAT(check_schedule_name(kPreviewName).error().detail, HasSubstr("reserved"));
}

TEST_F(SchedulesTest, AnOccurrenceIsSkippedWhileTheJobBeforeWaits) {
  for (const char* topic : {"a", "a-topic-that-is-too-long-to-be-kept-within-the-string-itself"}) {
    const ScheduleSpec spec{
        .name = topic, .every = std::chrono::hours{1}, .overlap = Overlap::kSkip, .topic = topic};
    ASSERT_TRUE(ask<ScheduleReceipt>([&](auto reply) {
                  queue.set_schedule(now, spec, kAllTopics, std::move(reply));
                }).ok());
  }
  for (int hour = 0; hour < 3; ++hour) pass(std::chrono::hours{1});
  for (const ScheduleView& view : list("", 10, kAllTopics).schedules) {
    EXPECT_EQ(view.progress.made, 1u) << view.spec.name;
    EXPECT_EQ(view.progress.skipped, 2u) << view.spec.name;
  }
}

std::vector<std::string> preview(const ScheduleSpec& spec, Moment from, uint32_t count) {
  const Result<std::vector<Moment>> found = preview_schedule(spec, from, count);
  if (!found.ok()) return {found.error().field};
  std::vector<std::string> texts;
  for (const Moment moment : *found) texts.push_back(format_moment(moment));
  return texts;
}

TEST(SchedulePreview, ShowsWhatAScheduleWouldMake) {
  const Moment from = *parse_moment("2026-03-28T00:30:00Z");
  EXPECT_THAT(
      preview({.cron = "30 2 * * *", .zone = "Europe/Berlin"}, from, 3),
      ElementsAre("2026-03-28T01:30:00.000Z", "2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"));
  EXPECT_THAT(preview({.every = std::chrono::hours{1}}, from, 2),
              ElementsAre("2026-03-28T01:30:00.000Z", "2026-03-28T02:30:00.000Z"));
  EXPECT_THAT(preview({.every = std::chrono::hours{1}, .start = from + std::chrono::minutes{5}}, from, 2),
              ElementsAre("2026-03-28T00:35:00.000Z", "2026-03-28T01:35:00.000Z"));
  const ScheduleSpec ends{.every = std::chrono::hours{1}, .end = from + std::chrono::hours{2}};
  EXPECT_EQ(preview(ends, from, 1'000).size(), 2u);
  EXPECT_EQ(preview({.every = std::chrono::hours{1}, .runs = 3}, from, 1'000).size(), 3u);
  EXPECT_THAT(preview({.cron = "0 0 1 1 *"}, *parse_moment("9999-06-01T00:00:00Z"), 5), IsEmpty());
}

TEST(SchedulePreview, RefusesWhatNoScheduleMayBe) {
  EXPECT_THAT(preview({}, Moment{}, 5), ElementsAre("cron"));
  EXPECT_THAT(preview({.cron = "0 0 30 2 *"}, Moment{}, 5), ElementsAre("cron"));
  EXPECT_THAT(preview({.cron = "0 0 * * *", .zone = "Mars/Base"}, Moment{}, 5), ElementsAre("zone"));
  EXPECT_THAT(preview({.every = std::chrono::seconds{1}}, Moment{}, 5), ElementsAre("every"));
  EXPECT_THAT(preview({.cron = "0 0 * * *"}, Moment{}, 0), ElementsAre("count"));
  EXPECT_THAT(preview({.cron = "0 0 * * *"}, Moment{}, 1'001), ElementsAre("count"));
}

}  // namespace
}  // namespace delayq
