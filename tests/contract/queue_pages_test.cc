// Pages of jobs and topics, and counts of topics, as the queue returns them.
#include "tests/contract/queue_contract.h"

namespace delayq::contract {
namespace {

class QueuePages : public QueueContract {
 protected:
  Result<JobPage> list(std::string_view topic, JobState state, std::string_view cursor = {}) {
    ListRequest request;
    request.topic = topic;
    request.state = state;
    request.limit = 2;
    request.cursor = cursor;
    return queue_->ask<JobPage>(
        "list", [&](auto reply) { queue_->queue().list(queue_->now(), request, std::move(reply)); });
  }

  std::vector<std::string> topics(uint32_t limit) {
    std::vector<std::string> names;
    std::string cursor;
    for (int pages = 0; pages < 100; ++pages) {
      const auto page = queue_->must<TopicSummaries>("topics", [&](auto reply) {
        queue_->queue().topics(queue_->now(), cursor, limit, std::move(reply));
      });
      EXPECT_LE(page.topics.size(), limit);
      for (const TopicSummary& topic : page.topics) names.push_back(topic.topic);
      cursor = page.cursor;
      if (cursor.empty()) return names;
      EXPECT_FALSE(page.topics.empty()) << "a page before others has topics: limit " << limit;
    }
    ADD_FAILURE() << "the pages never end";
    return names;
  }
};
DELAYQ_OVER_ALL_ENGINES(QueuePages);

TEST_P(QueuePages, ACursorOfAnotherListingIsRefused) {
  for (int i = 0; i < 6; ++i)
    queue_->push({.topic = "t", .id = std::to_string(i), .delay = std::chrono::hours{1}});
  const std::string cursor = list("t", JobState::kDelayed)->cursor;
  ASSERT_NE(cursor, "");
  EXPECT_TRUE(list("t", JobState::kDelayed, cursor).ok());
  EXPECT_TRUE(list("t", JobState::kDelayed, cursor).ok()) << "a GET can be repeated";
  for (const auto& [topic, state] : {std::pair{"t", JobState::kReady}, std::pair{"u", JobState::kDelayed}}) {
    const Result<JobPage> other = list(topic, state, cursor);
    ASSERT_FALSE(other.ok()) << topic;
    EXPECT_EQ(other.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(other.error().detail, HasSubstr("cursor"));
  }
}

TEST_P(QueuePages, DueTimesOfAListing) {
  for (int i = 0; i < 6; ++i)
    queue_->push({.topic = "t", .id = std::to_string(i), .delay = std::chrono::hours{1 + i}});
  const auto list_due = [&](DueWindow window, std::string_view cursor = {}) {
    ListRequest request;
    request.topic = "t";
    request.limit = 2;
    request.due = window;
    request.cursor = cursor;
    return queue_->ask<JobPage>(
        "list", [&](auto reply) { queue_->queue().list(queue_->now(), request, std::move(reply)); });
  };
  const Moment now = queue_->now();
  const DueWindow window{now + std::chrono::hours{2}, now + std::chrono::hours{6}};
  const std::string cursor = list_due(window)->cursor;
  ASSERT_NE(cursor, "");
  EXPECT_TRUE(list_due(window, cursor).ok());
  EXPECT_EQ(list("t", JobState::kDelayed, cursor).error().code, ErrorCode::kInvalid)
      << "a listing with due times may be in another order";
  EXPECT_EQ(list_due(window, list("t", JobState::kDelayed)->cursor).error().code, ErrorCode::kInvalid);
  for (const DueWindow wrong : {DueWindow{now, now}, DueWindow{now, now - Millis{1}}}) {
    const Error refused = list_due(wrong).error();
    EXPECT_EQ(refused.code, ErrorCode::kInvalid);
    EXPECT_EQ(refused.field, "due_before");
  }
}

TEST_P(QueuePages, TopicsWithSettingsAndNoJobsAreOnSomePage) {
  queue_->push({.topic = "b", .id = "1", .delay = std::chrono::hours{1}});
  queue_->push({.topic = "x", .id = "1", .delay = std::chrono::hours{1}});
  for (const char* name : {"a", "c", "d", "zz"}) queue_->set(name, {.attempts = 3});
  queue_->set(kDefaultsName, {.attempts = 4});
  for (const bool restarts : {false, true}) {
    if (restarts && !GetParam().durable) break;
    if (restarts) restart();
    for (const uint32_t limit : {1U, 2U, 3U, 4U, 100U})
      EXPECT_THAT(topics(limit), ElementsAre("a", "b", "c", "d", "x", "zz")) << "limit " << limit;
  }
}

TEST_P(QueuePages, ACancelledGroupIsInTheFiguresOfItsTopics) {
  for (int i = 0; i < 3; ++i) {
    const std::string id = std::to_string(i);
    queue_->push({.topic = i == 0 ? "u" : "t", .id = id, .group = "g", .delay = std::chrono::hours{1}});
  }
  EXPECT_EQ(queue_->cancel_group("g").cancelled, 3U);
  EXPECT_EQ(queue_->stats("t").tallies.of(Tally::kCancelled), 2U);
  EXPECT_EQ(queue_->stats("u").tallies.of(Tally::kCancelled), 1U);
  EXPECT_EQ(queue_->totals().tallies.of(Tally::kCancelled), 3U);
}

// A hand-over does not wait for the disk: after a power cut the job may be ready again. But if its lease is
// there, it has its own length.
TEST_P(QueuePages, AJobsOwnLeaseOutlivesTheServer) {
  if (!GetParam().durable) return;
  for (const bool waits_for_disk : {true, false}) {
    const std::string topic = waits_for_disk ? "t" : "u";
    queue_->push({.topic = topic, .id = "a", .options = {.lease = std::chrono::minutes{10}}});
    const Moment until = queue_->pop_one(topic).job.until;
    EXPECT_EQ(until, queue_->now() + std::chrono::minutes{10});
    if (waits_for_disk) queue_->push({.topic = topic, .id = "later", .delay = std::chrono::hours{1}});
    const Moment now = queue_->now();
    queue_.reset();
    subject_->lose_power();
    queue_ = make_queue({});
    queue_->go_to(now);
    const support::SeenJob job = *queue_->get(topic, "a");
    if (waits_for_disk || job.state == JobState::kReserved) {
      EXPECT_EQ(job.until, until);
    } else {
      EXPECT_EQ(job.state, JobState::kReady);
    }
  }
}

}  // namespace
}  // namespace delayq::contract
