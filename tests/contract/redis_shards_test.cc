// How verbs combine the replies of several shards. The contract suite runs on one shard, where orders are
// strict; here jobs are in several shards.
#include <algorithm>
#include <map>
#include <numeric>

#include "tests/contract/engine_contract.h"
#include "tests/contract/redis_under_test.h"

namespace delayq::contract {
namespace {

struct Spread {
  std::string_view name;
  std::unique_ptr<EngineUnderTest> (*make)();
};
void PrintTo(const Spread& spread, std::ostream* out) { *out << spread.name; }

std::vector<Spread> spreads() {
  std::vector<Spread> all{{"redis", make_redis_shards}};
  if (has_topologies()) all.push_back({"redis_cluster", make_redis_cluster_shards});
  return all;
}

constexpr int kJobs = 100;

class RedisShards : public testing::TestWithParam<Spread> {
 protected:
  /// A hundred jobs of "t", every tenth of them in the group "g".
  void push_many(Moment due) {
    std::vector<JobSpec> jobs;
    for (int i = 0; i < kJobs; ++i) {
      jobs.push_back(JobSpec("t", std::to_string(i)).due_at(due));
      if (i % 10 == 0) jobs.back().in_group("g");
    }
    engine_.push_all(jobs);
  }
  void bury_many() {
    push_many(at(0));
    std::vector<NackRequest> requests;
    const std::vector<Taken> taken = engine_.take("t", kJobs);
    ASSERT_THAT(taken, SizeIs(kJobs));
    for (const Taken& each : taken) {
      NackRequest request;
      request.lease = each.ref();
      request.keep = kKeepAll;
      request.reason = "broken";
      requests.push_back(request);
    }
    EXPECT_THAT(engine_.nack_all(requests), testing::Each(NackOutcome::kDead));
  }

  std::unique_ptr<EngineUnderTest> subject_ = GetParam().make();
  support::EngineDriver engine_{subject_->engine(), [this] { return subject_->pump(); }};
};
INSTANTIATE_TEST_SUITE_P(Spreads, RedisShards, testing::ValuesIn(spreads()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(RedisShards, ATakeSeesWhatWasPushedBeforeItsAnswer) {
  for (int i = 0; i < 60; ++i) {
    ASSERT_THAT(engine_.take("t", 10), IsEmpty()) << "all shards are known to be empty";
    // Both are in progress at the same time.
    const JobSpec spec("t", std::to_string(i));
    const NewJob job = spec.view();
    engine_.engine().push(engine_.now(), {&job, 1}, [](const Result<std::vector<PushAnswer>>&) {});
    const std::vector<Taken> taken = engine_.take("t", 10);
    ASSERT_THAT(ids_of(taken), testing::ElementsAre(std::to_string(i)));
    engine_.ack(taken[0], kKeepNone);
  }
}

TEST_P(RedisShards, ATakeSeesWhatWasGivenBackAndMovedBeforeItsAnswer) {
  engine_.push(JobSpec("t", "back"));
  engine_.push(JobSpec("t", "moved").due_at(at(60'000)));
  const Taken back = engine_.take_one("t");
  ASSERT_THAT(engine_.take("t", 10), IsEmpty());
  NackRequest nack;
  nack.lease = back.ref();
  nack.retry_at = engine_.now();
  engine_.engine().nack(engine_.now(), {&nack, 1}, [](const Result<std::vector<NackOutcome>>&) {});
  EXPECT_THAT(ids_of(engine_.take("t", 10)), testing::ElementsAre("back"));
  ASSERT_THAT(engine_.take("t", 10), IsEmpty());
  const RescheduleRequest move{{"t", "moved"}, engine_.now()};
  engine_.engine().reschedule(engine_.now(), {&move, 1},
                              [](const Result<std::vector<RescheduleOutcome>>&) {});
  EXPECT_THAT(ids_of(engine_.take("t", 10)), testing::ElementsAre("moved"));
}

TEST_P(RedisShards, KeepAboutAsManyAsTheyMayTogether) {
  constexpr uint32_t kMost = 40;
  constexpr Keep kSome{kNever, kMost};
  push_many(at(0));
  for (const Taken& each : engine_.take("t", kJobs)) engine_.ack(each, kSome);
  EXPECT_LE(engine_.count("t", JobState::kDone), kMost);
  EXPECT_GE(engine_.count("t", JobState::kDone), kMost * 3 / 4);
  push_many(at(0));
  for (const Taken& each : engine_.take("t", kJobs)) engine_.bury(each, "broken", kSome);
  EXPECT_LE(engine_.count("t", JobState::kDead), kMost);
  EXPECT_GE(engine_.count("t", JobState::kDead), kMost * 3 / 4);
  push_many(at(0));
  TakeRequest request;
  request.topic = "t";
  request.count = kJobs;
  request.auto_ack = true;
  request.keep_done = kSome;
  EXPECT_THAT(engine_.take(request), SizeIs(kJobs));
  EXPECT_LE(engine_.count("t", JobState::kDone), kMost);
  EXPECT_GE(engine_.count("t", JobState::kDone), kMost * 3 / 4);
  for (const Keep few : {Keep{kNever, 1}, kKeepNone}) {
    engine_.purge("t", JobState::kDone);
    push_many(at(0));
    for (const Taken& each : engine_.take("t", kJobs)) engine_.ack(each, few);
    EXPECT_LE(engine_.count("t", JobState::kDone), few.count == 0 ? 0U : 16U) << "at least one in a shard";
  }
}

TEST_P(RedisShards, TrimGoesThroughAllOfThem) {
  bury_many();
  TrimRequest request;
  request.topic = "t";
  request.state = JobState::kDead;
  request.count = 4 * kJobs;  // each shard has its part of this
  request.time = std::chrono::seconds{10};
  for (const uint32_t max : {1U, 7U, 1'000U}) {
    request.max = max;
    request.time -= std::chrono::seconds{1};
    EXPECT_EQ(engine_.trim(request), 0U);
    ListRequest dead;
    dead.topic = "t";
    dead.state = JobState::kDead;
    const std::vector<SeenJob> kept = engine_.list_all(dead);
    ASSERT_THAT(kept, SizeIs(kJobs));
    for (const SeenJob& job : kept) EXPECT_EQ(job.until, kStart + request.time);
  }
  request.max = 3;
  request.count = 40;
  EXPECT_GE(engine_.trim(request), kJobs - 40U);
  EXPECT_GE(engine_.count("t", JobState::kDead), 40U * 3 / 4);
  engine_.go_to(kStart + request.time - Millis{1});
  EXPECT_GE(engine_.count("t", JobState::kDead), 40U * 3 / 4);
  request.time -= std::chrono::seconds{1};
  engine_.trim(request);
  EXPECT_EQ(engine_.count("t", JobState::kDead), 0U);
}

TEST_P(RedisShards, ListingsGoThroughAllOfThem) {
  push_many(at(100));
  const auto expect_all = [&](JobState state) {
    for (const uint32_t limit : {1U, 7U, 33U, 1'000U}) {
      ListRequest request;
      request.topic = "t";
      request.state = state;
      request.limit = limit;
      std::map<std::string, int> times;
      std::string cursor;
      do {
        const support::SeenPage page = engine_.list(request);
        ASSERT_LE(page.jobs.size(), limit);
        for (const SeenJob& job : page.jobs) {
          EXPECT_EQ(job.state, state);
          ++times[job.id];
        }
        cursor = page.cursor;
        request.cursor = cursor;
      } while (!cursor.empty());
      EXPECT_EQ(times.size(), static_cast<size_t>(kJobs)) << name_of(state) << " in pages of " << limit;
    }
  };
  expect_all(JobState::kDelayed);
  engine_.go_to(at(100));
  expect_all(JobState::kReady);
  const std::vector<Taken> taken = engine_.take("t", kJobs);
  expect_all(JobState::kReserved);
  for (const Taken& each : taken) engine_.ack(each);
  expect_all(JobState::kDone);
}

TEST_P(RedisShards, CountsAndForecastsAddUp) {
  push_many(at(100));
  engine_.push(JobSpec("u", "other").due_at(at(50)));
  engine_.push(JobSpec("t", "first").due_at(at(0)).with_priority(1));
  engine_.push(JobSpec("t", "second").due_at(at(-5)).with_priority(2));
  const TopicCounts counts = engine_.counts("t");
  EXPECT_EQ(counts.of(JobState::kDelayed), static_cast<uint64_t>(kJobs));
  EXPECT_EQ(counts.of(JobState::kReady), 2U);
  EXPECT_EQ(counts.oldest_ready, at(0));
  EXPECT_EQ(engine_.counts("").of(JobState::kDelayed), kJobs + 1U);
  ForecastRequest request;
  request.from = at(0);
  request.to = at(150);
  request.bins = 3;
  EXPECT_THAT(engine_.forecast(request).bins, ElementsAre(0, 1, kJobs));
  request.topic = "t";
  EXPECT_THAT(engine_.forecast(request).bins, ElementsAre(0, 0, kJobs));
  EXPECT_EQ(engine_.usage().jobs, kJobs + 3U);
  EXPECT_EQ(engine_.usage().topics, 2U);
  EXPECT_GT(engine_.usage().memory_bytes, 0U);
}

TEST_P(RedisShards, TopicsAreMerged) {
  std::vector<std::string> expected;
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 300; ++i) {
    expected.push_back("topic " + std::to_string(i));
    jobs.push_back(JobSpec(expected.back(), "of " + std::to_string(i)).due_at(at(10)));
    if (i % 3 == 0)
      jobs.push_back(JobSpec(expected.back(), "another of " + std::to_string(i)).due_at(at(10)));
  }
  engine_.push_all(jobs);
  std::sort(expected.begin(), expected.end());
  for (const uint32_t limit : {1U, 7U, 299U, 1'000U})
    EXPECT_EQ(engine_.topic_names(limit), expected) << limit;
  EXPECT_EQ(engine_.usage().topics, 300U);
  EXPECT_EQ(engine_.usage().jobs, 400U);
  EXPECT_EQ(engine_.topics("topic 29", 1).topics.at(0).topic, "topic 290");
}

TEST_P(RedisShards, AGroupIsCancelledInAllOfThem) {
  push_many(at(0));
  engine_.take("t", 50);
  uint64_t cancelled = 0;
  uint64_t reserved = 0;
  std::string cursor;
  for (int calls = 0; calls < 10; ++calls) {
    const GroupCancelAnswer answer = engine_.cancel_of_group({"g", kAllTopics, 3, cursor});
    ASSERT_LE(answer.cancelled + answer.reserved, 3U);
    cancelled += answer.cancelled;
    reserved += answer.reserved;
    cursor = answer.cursor;
    if (cursor.empty()) break;
  }
  EXPECT_EQ(cancelled + reserved, 10U);
  EXPECT_EQ(engine_.count("t", JobState::kReserved), 50U);
  EXPECT_EQ(engine_.count("t", JobState::kReady), 50U - cancelled);
}

TEST_P(RedisShards, RedriveAndPurgeShareTheirMaximum) {
  bury_many();
  EXPECT_EQ(engine_.redrive_oldest("t", 37), 37U);
  EXPECT_EQ(engine_.count("t", JobState::kReady), 37U);
  EXPECT_EQ(engine_.purge("t", JobState::kDead, 1), 1U);
  EXPECT_EQ(engine_.purge("t", JobState::kDead, 50), 50U);
  EXPECT_EQ(engine_.purge("t", JobState::kDead, 50), 12U);
  EXPECT_EQ(engine_.redrive_oldest("t", 50), 0U);
  EXPECT_EQ(engine_.purge("t", JobState::kReady), 37U);
  EXPECT_THAT(engine_.topic_names(), IsEmpty());
}

TEST_P(RedisShards, EachIsFoundAndRestored) {
  push_many(at(100));
  std::vector<SeenJob> jobs;
  for (int i = 0; i < kJobs; ++i) {
    const std::string id = std::to_string(i);
    EXPECT_THAT(engine_.locate(id), ElementsAre("t"));
    jobs.push_back(engine_.get("t", id).value());
  }
  EXPECT_EQ(engine_.purge("t", JobState::kDelayed), static_cast<uint64_t>(kJobs));
  for (const SeenJob& job : jobs) EXPECT_EQ(engine_.restore(job).outcome, PushOutcome::kCreated);
  for (const SeenJob& job : jobs) EXPECT_EQ(engine_.get("t", job.id), job);
}

TEST_P(RedisShards, ACursorNamesAShardThatIsThere) {
  push_many(at(100));
  ListRequest request;
  request.topic = "t";
  request.cursor = "0.99";
  const Result<JobPage> answer = engine_.ask<JobPage>(
      "list", [&](auto reply) { engine_.engine().list(engine_.now(), request, std::move(reply)); });
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace delayq::contract
