#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "queue/lookup.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using support::at;
using support::kStart;
using support::Taken;
using testing::ElementsAre;

class OverviewTest : public testing::Test {
 protected:
  std::vector<std::string> walk_topics(uint32_t limit) {
    std::vector<std::string> names;
    std::string cursor;
    do {
      const auto page = queue_.must<TopicSummaries>("topics", [&](auto reply) {
        queue_.queue().topics(queue_.now(), cursor, limit, std::move(reply));
      });
      EXPECT_LE(page.topics.size(), limit);
      for (const TopicSummary& topic : page.topics)
        names.push_back(topic.topic + (topic.paused ? " (paused)" : ""));
      cursor = page.cursor;
    } while (!cursor.empty() && names.size() < 100);
    return names;
  }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_};
};

TEST_F(OverviewTest, TopicsWithJobsAndTopicsWithSettingsInOneList) {
  for (const char* topic : {"b", "d", "f", "h"}) queue_.push({.topic = topic});
  for (const char* topic : {"a", "d", "e", "g", "z"}) queue_.pause(topic);
  for (uint32_t limit = 1; limit <= 10; ++limit) {
    EXPECT_THAT(walk_topics(limit), ElementsAre("a (paused)", "b", "d (paused)", "e (paused)", "f",
                                                "g (paused)", "h", "z (paused)"))
        << "in pages of " << limit;
  }
  const auto refused = queue_.ask<TopicSummaries>(
      "topics", [&](auto reply) { queue_.queue().topics(queue_.now(), "", 0, std::move(reply)); });
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
}

TEST_F(OverviewTest, ListSearchesByStatePrefixAndError) {
  for (const char* id : {"order:1", "order:2", "mail:1"})
    queue_.push({.topic = "t", .id = id, .delay = Millis{9}});
  const auto list = [&](const ListRequest& request) {
    return queue_.ask<JobPage>(
        "list", [&](auto reply) { queue_.queue().list(queue_.now(), request, std::move(reply)); });
  };
  ListRequest request;
  request.topic = "t";
  request.id_prefix = "order:";
  EXPECT_EQ(list(request)->jobs.size(), 2U);
  request.limit = 1;
  const Result<JobPage> first = list(request);
  EXPECT_EQ(first->jobs.at(0).id, "order:1");
  request.cursor = first->cursor;
  EXPECT_EQ(list(request)->jobs.at(0).id, "order:2");
  request.limit = 0;
  EXPECT_EQ(list(request).error().code, ErrorCode::kInvalid);
  request.limit = 5'000;
  EXPECT_EQ(list(request).error().code, ErrorCode::kInvalid);
  request.topic = "";
  EXPECT_EQ(list(request).error().code, ErrorCode::kInvalid);
}

TEST_F(OverviewTest, StatsOfATopicAndInTotal) {
  queue_.push({.topic = "t", .id = "a", .delay = Millis{100}});
  queue_.push({.topic = "t", .id = "b"});
  queue_.push({.topic = "u", .id = "c"});
  const Taken b = queue_.pop_one("t");
  const support::PendingPop waiting = queue_.begin_pop("t", Millis{50});
  queue_.run();

  const TopicStats t = queue_.stats("t");
  EXPECT_EQ(t.counts.of(JobState::kDelayed), 1U);
  EXPECT_EQ(t.counts.of(JobState::kReserved), 1U);
  EXPECT_EQ(t.tallies.of(Tally::kPushed), 2U);
  EXPECT_EQ(t.waiters, 1U);
  const TotalStats all = queue_.totals();
  EXPECT_EQ(all.counts.of(JobState::kDelayed), 1U);
  EXPECT_EQ(all.counts.of(JobState::kReady), 1U);
  EXPECT_EQ(all.counts.of(JobState::kReserved), 1U);
  EXPECT_EQ(all.tallies.of(Tally::kPushed), 3U);
  EXPECT_EQ(all.usage.jobs, 3U);
  EXPECT_EQ(all.waiters, 1U);
  EXPECT_EQ(all.unanswered_bytes, 0U);

  EXPECT_EQ(queue_.stats("never").counts.of(JobState::kReady), 0U);
  const auto refused = queue_.ask<TopicStats>(
      "stats", [&](auto reply) { queue_.queue().stats(queue_.now(), "", std::move(reply)); });
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
}

TEST_F(OverviewTest, LatenessIsMeasuredAtHandOver) {
  queue_.push({.topic = "t", .id = "a", .delay = Millis{100}});
  queue_.push({.topic = "t", .id = "b", .delay = Millis{100}});
  queue_.go_to(at(100));
  queue_.pop_one("t");
  queue_.go_to(at(105));
  queue_.pop_one("t");
  const Lateness lateness = queue_.stats("t").lateness;
  EXPECT_EQ(lateness.count(), 2U);
  EXPECT_EQ(lateness.sum(), Millis{5});
  EXPECT_EQ(lateness.buckets()[0], 1U);
  EXPECT_EQ(lateness.buckets()[3], 1U);
  EXPECT_EQ(queue_.totals().lateness.count(), 2U);
}

TEST_F(OverviewTest, AJobPushedAfterItsTimeIsNotLate) {
  queue_.push({.topic = "t", .id = "a", .at = kStart - std::chrono::hours{5}});
  queue_.pop_one("t");
  EXPECT_EQ(queue_.stats("t").lateness.sum(), Millis{0});
}

TEST_F(OverviewTest, ForecastCountsWhatFallsDue) {
  for (const int64_t delay : {100, 200, 900, 5'000}) queue_.push({.topic = "t", .delay = Millis{delay}});
  queue_.push({.topic = "u", .delay = Millis{900}});
  const auto forecast = [&](const ForecastRequest& request) {
    return queue_.ask<ForecastReport>("forecast", [&](auto reply) {
      queue_.queue().forecast(queue_.now(), request, kAllTopics, std::move(reply));
    });
  };
  EXPECT_THAT(forecast({"", at(0), at(1'000), 2})->jobs.bins, ElementsAre(2, 2));
  EXPECT_THAT(forecast({"t", at(0), at(1'000), 2})->jobs.bins, ElementsAre(2, 1));
  EXPECT_EQ(forecast({"t", at(0), at(0), 2}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(forecast({"t", at(0), at(1), 0}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(forecast({"t", at(0), at(1), 5'000}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(forecast({"a b", at(0), at(1), 1}).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace delayq
