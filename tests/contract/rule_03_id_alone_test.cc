// Rule 3, the queue's part: the server makes ids, and an id alone is enough to find a job.
#include "core/random.h"
#include "tests/contract/queue_contract.h"

namespace delayq::contract {
namespace {

class Rule03IdAlone : public QueueContract {
 protected:
  Result<std::optional<std::string>> topic_of(std::string_view id) {
    const auto found = queue_->ask<std::optional<FoundJob>>(
        "find", [&](auto reply) { queue_->queue().find(queue_->now(), id, kAllTopics, std::move(reply)); });
    if (!found.ok()) return found.error();
    if (!*found) return std::optional<std::string>{};
    return std::optional<std::string>{std::string{(*found)->job.topic}};
  }

  Result<CancelOutcome> cancel_by_id(std::string_view id) {
    return queue_->ask<CancelOutcome>("cancel_by_id", [&](auto reply) {
      queue_->queue().cancel_by_id(queue_->now(), id, std::move(reply));
    });
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule03IdAlone);

TEST_P(Rule03IdAlone, TheServerMakesIdsThatSortByTime) {
  std::vector<std::string> ids;
  for (int64_t ms = 0; ms < 20; ++ms) {
    queue_->go_to(at(ms / 2));
    ids.push_back(queue_->push({.topic = "t"}));
    EXPECT_THAT(ids.back(), SizeIs(36));
    EXPECT_EQ(ids.back()[14], '7') << "the version of a UUID";
  }
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  for (const std::string& id : ids) EXPECT_EQ(queue_->state_of("t", id), JobState::kReady);
}

TEST_P(Rule03IdAlone, FindsAJobByItsIdAlone) {
  queue_->push({.topic = "orders", .id = "a", .delay = seconds{5}});
  EXPECT_EQ(topic_of("a").value(), "orders");
  EXPECT_EQ(topic_of("b").value(), std::nullopt);
  EXPECT_EQ(cancel_by_id("a").value(), CancelOutcome::kCancelled);
  EXPECT_EQ(cancel_by_id("a").value(), CancelOutcome::kUnknown);
}

TEST_P(Rule03IdAlone, AnIdInTwoTopicsIsNotGuessed) {
  queue_->push({.topic = "t", .id = "a", .delay = seconds{5}});
  queue_->push({.topic = "u", .id = "a", .delay = seconds{5}});
  EXPECT_EQ(topic_of("a").error().code, ErrorCode::kConflict);
  EXPECT_EQ(cancel_by_id("a").error().code, ErrorCode::kConflict);
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kDelayed) << "nothing was cancelled";
}

TEST_P(Rule03IdAlone, AnAddMayRefuseAnIdThatWaitsInAnotherTopic) {
  queue_->push({.topic = "t", .id = "a", .delay = seconds{5}});
  EXPECT_EQ(refused({.topic = "u", .id = "a", .unique_across_topics = true}).code, ErrorCode::kConflict);
  EXPECT_EQ(queue_->get("u", "a"), std::nullopt);
}

TEST_P(Rule03IdAlone, ConflictPoliciesReachTheEngine) {
  queue_->push({.topic = "t", .id = "a", .body = "old", .delay = seconds{5}});
  EXPECT_EQ(refused({.topic = "t", .id = "a"}).code, ErrorCode::kConflict);
  const Result<PushReceipt> kept =
      queue_->try_push({.topic = "t", .id = "a", .body = "kept?", .on_conflict = OnConflict::kKeep});
  EXPECT_EQ(kept->outcome, PushOutcome::kKept);
  EXPECT_EQ(kept->due, at(5'000));
  const Result<PushReceipt> replaced = queue_->try_push(
      {.topic = "t", .id = "a", .body = "new", .delay = seconds{9}, .on_conflict = OnConflict::kReplace});
  EXPECT_EQ(replaced->outcome, PushOutcome::kReplaced);
  EXPECT_EQ(queue_->get("t", "a")->body, "new");
}

}  // namespace
}  // namespace delayq::contract
