// Verbs of one client take effect in the order of their calls, even those of several steps. The next verb is
// called as soon as the sequence allows it, which may be before the reply to the previous one.
#include "queue/verbs.h"
#include "tests/contract/queue_contract.h"
#include "tests/contract/redis_under_test.h"

namespace delayq::contract {
namespace {

/// More than one step of any sweep processes.
constexpr int kMany = 2'500;

class OrderOfEffects : public QueueContract {
 protected:
  ~OrderOfEffects() override { sequence_->abandon(); }

  Queue& queue() { return queue_->queue(); }
  Moment now() const { return queue_->now(); }

  /// Calls the verb as the next one of the client, without waiting for the reply.
  template <class T, class Verb>
  std::shared_ptr<std::optional<Result<T>>> call(Verb verb) {
    queue_->wait_for("the sequence", [this] { return !sequence_->is_busy(); });
    auto answer = std::make_shared<std::optional<Result<T>>>();
    const Queue::InOrder guard = queue().in_order(sequence_);
    verb([answer](Result<T> result) { *answer = std::move(result); });
    return answer;
  }

  auto push(PushRequest job) {
    return call<PushReport>([&](auto reply) { queue().push(now(), {&job, 1}, std::move(reply)); });
  }
  auto purge(std::optional<JobState> state = {}) {
    return call<uint64_t>([&](auto reply) { queue().purge(now(), "t", state, std::move(reply)); });
  }
  auto nack(const Taken& taken, bool dead, std::string_view reason = "no") {
    const NackItem item{.lease = taken.lease, .reason = reason, .dead = dead};
    using Receipts = std::vector<Result<NackReceipt>>;
    return call<Receipts>([&](auto reply) { queue().nack(now(), {&item, 1}, std::move(reply)); });
  }
  auto pop(std::vector<std::string_view> topics) {
    PopRequest request;
    request.topics = topics;
    return call<PopAnswer>([&](auto reply) { queue().pop(now(), request, std::move(reply)); });
  }

  /// The reply to an earlier call.
  template <class T>
  const T& value(const std::shared_ptr<std::optional<Result<T>>>& answer) {
    queue_->wait_for("the answer", [&] { return answer->has_value(); });
    return (*answer)->value();
  }

  /// Pushes many jobs, which are dead or delayed.
  void fill(std::string_view topic, bool dead, std::string_view group = {}) {
    std::vector<std::string> ids;
    for (int i = 0; i < kMany; ++i) ids.push_back("old " + std::to_string(i));
    std::vector<PushRequest> jobs;
    for (const std::string& id : ids) {
      PushRequest& job = jobs.emplace_back();
      job.topic = topic;
      job.id = id;
      if (!dead) job.delay = hours{1};
      if (!group.empty()) job.group = group;
    }
    queue_->must<PushReport>("push", [&](auto reply) { queue().push(now(), jobs, std::move(reply)); });
    if (!dead) return;
    queue_->run();
    for (std::vector<Taken> taken = queue_->pop(topic, 1000); !taken.empty();
         taken = queue_->pop(topic, 1000)) {
      std::vector<NackItem> items;
      for (const Taken& job : taken) items.push_back({.lease = job.lease, .reason = "old", .dead = true});
      queue_->must<std::vector<Result<NackReceipt>>>(
          "nack", [&](auto reply) { queue().nack(now(), items, std::move(reply)); });
    }
  }

  std::shared_ptr<Sequence> sequence_ = std::make_shared<Sequence>([this] { ++idles_; });
  int idles_ = 0;
};
DELAYQ_OVER_ALL_ENGINES(OrderOfEffects);
INSTANTIATE_TEST_SUITE_P(Shards, OrderOfEffects,
                         testing::Values(EngineEntry{.name = "redis_shards",
                                                     .durable = true,
                                                     .lists_delayed_in_order = false,
                                                     .verbs_tick = false,
                                                     .make = make_redis_shards}),
                         name_of_engine);

TEST_P(OrderOfEffects, APopSeesWhatWasPushedBeforeItAndNothingBehindIt) {
  for (int i = 0; i < 40; ++i) {
    const std::string id = std::to_string(i);
    const auto none = pop({"t"});
    const auto pushed = push({.topic = "t", .id = id});
    const auto one = pop({"t"});
    EXPECT_TRUE(value(none).jobs.empty()) << i;
    EXPECT_TRUE(value(pushed).jobs.at(0).ok());
    ASSERT_EQ(value(one).jobs.size(), 1U) << i;
    EXPECT_EQ(value(one).jobs.at(0).job.id, id);
  }
}

TEST_P(OrderOfEffects, ALookSeesNothingOfWhatIsPushedBehindIt) {
  for (int i = 0; i < 40; ++i) {
    const std::string id = std::to_string(i);
    ListRequest request;
    request.topic = "t";
    const auto page = call<JobPage>([&](auto reply) { queue().list(now(), request, std::move(reply)); });
    const auto stats = call<TopicStats>([&](auto reply) { queue().stats(now(), "t", std::move(reply)); });
    push({.topic = "t", .id = id, .delay = hours{1}});
    EXPECT_LE(value(page).jobs.size(), static_cast<size_t>(i)) << "a page may be short";
    EXPECT_EQ(value(stats).counts.of(JobState::kDelayed), static_cast<uint64_t>(i));
  }
}

TEST_P(OrderOfEffects, APushBehindAPurgeStays) {
  for (const Millis delay : {Millis{0}, Millis{60'000}}) {
    queue_->push({.topic = "t", .id = "old", .delay = seconds{60}});
    const auto purged = purge();
    const auto pushed = push({.topic = "t", .id = "new", .delay = delay});
    EXPECT_EQ(value(purged), 1U);
    EXPECT_TRUE(value(pushed).jobs.at(0).ok());
    queue_->run();
    EXPECT_TRUE(queue_->get("t", "new").has_value());
    EXPECT_FALSE(queue_->get("t", "old").has_value());
    queue_->cancel("t", "new");
  }
}

TEST_P(OrderOfEffects, APushBehindALargePurgeOfOneStateStays) {
  fill("t", false);
  const auto purged = purge(JobState::kDelayed);
  push({.topic = "t", .id = "new", .delay = seconds{60}});
  EXPECT_EQ(value(purged), static_cast<uint64_t>(kMany));
  EXPECT_TRUE(queue_->get("t", "new").has_value());
  EXPECT_EQ(queue_->count("t", JobState::kDelayed), 1U);
}

TEST_P(OrderOfEffects, APushBehindACancelOfItsGroupStays) {
  fill("t", false, "g");
  const auto cancelled = call<GroupCancelAnswer>(
      [&](auto reply) { queue().cancel_group(now(), "g", kAllTopics, std::move(reply)); });
  push({.topic = "t", .id = "new", .group = "g", .delay = seconds{60}});
  EXPECT_EQ(value(cancelled).cancelled, static_cast<uint64_t>(kMany));
  EXPECT_EQ(queue_->state_of("t", "new"), JobState::kDelayed);
}

TEST_P(OrderOfEffects, WhatDiesBehindARedriveStaysDead) {
  fill("t", true);
  queue_->push({.topic = "u", .id = "late"});
  const Taken late = queue_->pop_one("u");
  const auto redriven =
      call<uint64_t>([&](auto reply) { queue().redrive_all(now(), "t", std::move(reply)); });
  const auto seen = call<TopicStats>([&](auto reply) { queue().stats(now(), "t", std::move(reply)); });
  const auto nacked = nack(late, true);
  EXPECT_EQ(value(redriven), static_cast<uint64_t>(kMany));
  EXPECT_EQ(value(seen).counts.of(JobState::kDead), 0U);
  EXPECT_TRUE(value(nacked).at(0).ok());
  EXPECT_EQ(queue_->state_of("u", "late"), JobState::kDead);
}

TEST_P(OrderOfEffects, ARedriveByErrorIsOverBeforeWhatComesBehindIt) {
  fill("t", true);
  const auto redriven =
      call<uint64_t>([&](auto reply) { queue().redrive_by_error(now(), "t", "old", std::move(reply)); });
  const auto purged = purge(JobState::kDead);
  EXPECT_EQ(value(redriven), static_cast<uint64_t>(kMany));
  EXPECT_EQ(value(purged), 0U);
}

TEST_P(OrderOfEffects, ARedriveBehindANackFindsTheDeadJob) {
  const Taken taken = reserve("a");
  const auto nacked = nack(taken, true);
  const auto redriven =
      call<uint64_t>([&](auto reply) { queue().redrive_all(now(), "t", std::move(reply)); });
  const auto popped = pop({"t"});
  EXPECT_TRUE(value(nacked).at(0).ok());
  EXPECT_EQ(value(redriven), 1U);
  EXPECT_THAT(value(popped).jobs, SizeIs(1));
}

TEST_P(OrderOfEffects, AnAckBehindANackIsLate) {
  const Taken taken = reserve("a");
  nack(taken, false);
  const AckItem item{.lease = taken.lease};
  const auto acked = call<std::vector<Status>>([&](auto reply) {
    queue().ack(now(), {&item, 1}, std::move(reply));
  });
  EXPECT_EQ(value(acked).at(0).error().code, ErrorCode::kStaleLease);
}

TEST_P(OrderOfEffects, APushBehindACancelByIdStays) {
  queue_->push({.topic = "t", .id = "a", .delay = seconds{60}});
  const auto cancelled =
      call<CancelOutcome>([&](auto reply) { queue().cancel_by_id(now(), "a", std::move(reply)); });
  const auto pushed = push({.topic = "t", .id = "a", .delay = seconds{30}});
  EXPECT_EQ(value(cancelled), CancelOutcome::kCancelled);
  EXPECT_TRUE(value(pushed).jobs.at(0).ok());
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kDelayed);
}

TEST_P(OrderOfEffects, ALookUpByIdIsNotOvertakenByACancel) {
  queue_->push({.topic = "t", .id = "a", .delay = seconds{60}});
  const auto found = call<std::optional<FoundJob>>(
      [&](auto reply) { queue().find(now(), "a", kAllTopics, std::move(reply)); });
  const JobRef job{"t", "a"};
  call<std::vector<Result<CancelOutcome>>>([&](auto reply) {
    queue().cancel(now(), {&job, 1}, std::move(reply));
  });
  EXPECT_TRUE(value(found).has_value());
}

TEST_P(OrderOfEffects, APopBehindAnAckByNameFindsTheTopicEmpty) {
  reserve("a");
  call<void>([&](auto reply) { queue().ack_job(now(), {"t", "a"}, std::move(reply)); });
  const auto purged = purge();
  EXPECT_EQ(value(purged), 1U) << "done, and kept";
  EXPECT_FALSE(queue_->get("t", "a").has_value());
}

TEST_P(OrderOfEffects, APopOfSeveralTopicsDoesNotSeeWhatIsPushedBehindIt) {
  queue_->push({.topic = "a", .id = "delayed", .delay = seconds{60}});
  queue_->push({.topic = "b", .id = "delayed", .delay = seconds{60}});
  const auto popped = pop({"a", "b"});
  push({.topic = "b", .id = "new"});
  EXPECT_THAT(value(popped).jobs, IsEmpty());
  queue_->run();
  EXPECT_EQ(queue_->state_of("b", "new"), JobState::kReady);
}

TEST_P(OrderOfEffects, FiguresAreThoseOfTheMoment) {
  queue_->push({.topic = "t", .id = "a", .delay = seconds{60}});
  const auto seen = call<TopicStats>([&](auto reply) { queue().stats(now(), "t", std::move(reply)); });
  call<void>([&](auto reply) { queue().pause(now(), "t", std::move(reply)); });
  EXPECT_FALSE(value(seen).settings.paused);
}

TEST_P(OrderOfEffects, AnExportDoesNotSeeWhatIsPushedBehindIt) {
  queue_->push({.topic = "t", .id = "a", .delay = seconds{60}});
  const auto page =
      call<ExportPage>([&](auto reply) { queue().export_page(now(), {.limit = 100}, std::move(reply)); });
  push({.topic = "u", .id = "new", .delay = seconds{60}});
  EXPECT_THAT(value(page).items, SizeIs(1));
}

TEST_P(OrderOfEffects, VerbsOfOneStepDoNotHoldUpAnything) {
  const Taken taken = reserve("a");
  const Queue::InOrder guard = queue().in_order(sequence_);
  const PushRequest job{.topic = "t", .id = "b"};
  queue().push(now(), {&job, 1}, [](const Result<PushReport>&) {});
  const AckItem item{.lease = taken.lease};
  queue().ack(now(), {&item, 1}, [](const Result<std::vector<Status>>&) {});
  EXPECT_FALSE(sequence_->is_busy());
  const std::string_view topic = "t";
  queue().pop(now(), {.topics = {&topic, 1}}, [](const Result<PopAnswer>&) {});
  EXPECT_EQ(sequence_->is_busy(), queue().has_parts());
  EXPECT_EQ(idles_, 0);
}

TEST_P(OrderOfEffects, AVerbThatBelongsToNobodyHoldsUpNobody) {
  queue_->push({.topic = "t", .id = "a", .delay = seconds{60}});
  queue().purge(now(), "t", std::nullopt, [](const Result<uint64_t>&) {});
  EXPECT_FALSE(sequence_->is_busy());
}

TEST_P(OrderOfEffects, AScheduleIsAsTheChangesBeforeHaveLeftIt) {
  ScheduleSpec spec{.name = "s", .every = hours{1}, .topic = "t", .body = "b"};
  const auto set = [&] {
    return call<ScheduleReceipt>(
        [&](auto reply) { queue().set_schedule(now(), spec, kAllTopics, std::move(reply)); });
  };
  const auto look = [&] {
    return call<std::optional<ScheduleView>>(
        [&](auto reply) { queue().get_schedule(now(), "s", kAllTopics, std::move(reply)); });
  };
  const auto created = set();
  const auto is_there = look();
  call<ScheduleView>([&](auto reply) { queue().pause_schedule(now(), "s", kAllTopics, std::move(reply)); });
  spec.body = "c";
  const auto updated = set();
  const auto is_paused = look();
  const auto run =
      call<ScheduleRun>([&](auto reply) { queue().run_schedule(now(), "s", kAllTopics, std::move(reply)); });
  const auto popped = pop({"t"});
  const auto removed =
      call<void>([&](auto reply) { queue().remove_schedule(now(), "s", kAllTopics, std::move(reply)); });
  const auto is_gone = look();
  EXPECT_TRUE(value(created).is_new);
  ASSERT_TRUE(value(is_there).has_value());
  EXPECT_EQ(value(is_there)->spec.body, "b");
  EXPECT_FALSE(value(updated).is_new);
  ASSERT_TRUE(value(is_paused).has_value());
  EXPECT_EQ(value(is_paused)->state, ScheduleState::kPaused);
  EXPECT_EQ(value(is_paused)->spec.body, "c");
  EXPECT_EQ(value(popped).jobs.size(), 1U) << value(run).id;
  queue_->wait_for("the removal", [&] { return removed->has_value(); });
  EXPECT_TRUE((*removed)->ok());
  EXPECT_FALSE(value(is_gone).has_value());
}

}  // namespace
}  // namespace delayq::contract
