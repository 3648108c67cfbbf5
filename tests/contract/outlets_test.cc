// A job leaves by its outlet: jobs with a callback and jobs of the topic's own delivery are never mixed up.
#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

class Outlets : public EngineContract {
 protected:
  std::vector<Taken> take(Outlet outlet, uint32_t count = 100, uint32_t max_reserved = 0) {
    TakeRequest request;
    request.topic = "t";
    request.outlet = outlet;
    request.count = count;
    request.max_reserved = max_reserved;
    request.lease_until = engine_.now() + std::chrono::minutes{1};
    return engine_.take(request);
  }
  std::vector<std::string> called_back() { return ids_of(take(Outlet::kCallback)); }
  std::vector<std::string> popped() { return ids_of(take(Outlet::kTopic)); }
};
DELAYQ_OVER_ALL_ENGINES(Outlets);

TEST_P(Outlets, EachIsTakenByItsOwn) {
  engine_.push_all({JobSpec("t", "a"), JobSpec("t", "b").called_back(), JobSpec("t", "c")});
  EXPECT_THAT(popped(), ElementsAre("a", "c"));
  EXPECT_THAT(popped(), IsEmpty());
  const std::vector<Taken> taken = take(Outlet::kCallback);
  EXPECT_THAT(ids_of(taken), ElementsAre("b"));
  EXPECT_EQ(taken[0].job.outlet, Outlet::kCallback);
  EXPECT_THAT(called_back(), IsEmpty());
}

TEST_P(Outlets, EachIsInOrder) {
  engine_.push_all({JobSpec("t", "late").called_back().due_at(at(-1)),
                    JobSpec("t", "first").called_back().with_priority(0),
                    JobSpec("t", "popped").with_priority(0),
                    JobSpec("t", "early").called_back().due_at(at(-9)),
                    JobSpec("t", "early too").called_back().due_at(at(-9))});
  EXPECT_THAT(called_back(), ElementsAre("first", "early", "early too", "late"));
  EXPECT_THAT(popped(), ElementsAre("popped"));
}

TEST_P(Outlets, NewsNameTheOutlet) {
  engine_.push_all({JobSpec("t", "a").called_back().due_at(at(10)), JobSpec("u", "b").due_at(at(10))});
  engine_.tick();
  EXPECT_THAT(engine_.callback_news(), IsEmpty());
  engine_.go_to(at(10));
  engine_.tick();
  EXPECT_THAT(engine_.callback_news(), ElementsAre("t"));
  EXPECT_THAT(engine_.ready_news(), ElementsAre("t", "u"));
}

TEST_P(Outlets, ARetryKeepsIt) {
  engine_.push(JobSpec("t", "a").called_back());
  engine_.retry(take(Outlet::kCallback).at(0), at(5), "no");
  EXPECT_THAT(engine_.callback_news(), ElementsAre("t"));
  engine_.go_to(at(5));
  engine_.tick();
  EXPECT_THAT(engine_.callback_news(), ElementsAre("t"));
  EXPECT_THAT(popped(), IsEmpty());
  EXPECT_THAT(called_back(), ElementsAre("a"));
}

TEST_P(Outlets, RescheduleAndRedriveKeepIt) {
  engine_.push_all(
      {JobSpec("t", "moved").called_back().due_at(at(1'000)), JobSpec("t", "dead").called_back()});
  engine_.bury(take(Outlet::kCallback).at(0));
  engine_.reschedule("t", "moved", at(0));
  EXPECT_EQ(engine_.redrive("t", {"dead"}), 1U);
  EXPECT_THAT(popped(), IsEmpty());
  EXPECT_THAT(called_back(), UnorderedElementsAre("moved", "dead"));
}

TEST_P(Outlets, RestoreBringsIt) {
  SeenJob job;
  job.topic = "t";
  job.id = "a";
  job.due = job.pushed = kStart;
  job.outlet = Outlet::kCallback;
  engine_.restore(job);
  EXPECT_THAT(popped(), IsEmpty());
  EXPECT_THAT(called_back(), ElementsAre("a"));
}

TEST_P(Outlets, AReplacementHasItsOwn) {
  engine_.push(JobSpec("t", "a").called_back());
  engine_.push(JobSpec("t", "a").or_replace());
  EXPECT_THAT(called_back(), IsEmpty());
  EXPECT_THAT(popped(), ElementsAre("a"));
}

TEST_P(Outlets, TheLimitOfATopicCountsBoth) {
  engine_.push_all({JobSpec("t", "a"), JobSpec("t", "b").called_back(), JobSpec("t", "c").called_back()});
  EXPECT_THAT(ids_of(take(Outlet::kTopic, 9, 2)), ElementsAre("a"));
  const std::vector<Taken> second = take(Outlet::kCallback, 9, 2);
  EXPECT_THAT(ids_of(second), ElementsAre("b"));
  EXPECT_THAT(take(Outlet::kCallback, 9, 2), IsEmpty());
  engine_.ack(second.at(0));
  EXPECT_THAT(ids_of(take(Outlet::kCallback, 9, 2)), ElementsAre("c"));
}

TEST_P(Outlets, CountsAndListsShowBoth) {
  engine_.push_all({JobSpec("t", "a"), JobSpec("t", "b").called_back().due_at(at(-50))});
  EXPECT_EQ(engine_.count("t", JobState::kReady), 2U);
  EXPECT_EQ(engine_.counts("t").oldest_ready, at(-50));
  EXPECT_THAT(engine_.ids_in("t", JobState::kReady), UnorderedElementsAre("a", "b"));
  EXPECT_EQ(engine_.get("t", "b")->outlet, Outlet::kCallback);
  EXPECT_EQ(engine_.get("t", "a")->outlet, Outlet::kTopic);
  EXPECT_EQ(engine_.cancel("t", "b"), CancelOutcome::kCancelled);
  EXPECT_THAT(called_back(), IsEmpty());
}

class DurableOutlets : public Outlets {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DurableOutlets);
DELAYQ_OVER_DURABLE_ENGINES(DurableOutlets);

TEST_P(DurableOutlets, OutliveARestart) {
  engine_.push_all({JobSpec("t", "ready").called_back(), JobSpec("t", "later").called_back().due_at(at(100)),
                    JobSpec("t", "popped"), JobSpec("t", "retried").called_back().due_at(at(-1))});
  engine_.retry(take(Outlet::kCallback, 1).at(0), at(50), "no");
  engine_.flush();
  lose_power();
  engine_.go_to(at(100));
  engine_.tick();
  EXPECT_THAT(popped(), ElementsAre("popped"));
  EXPECT_THAT(called_back(), ElementsAre("ready", "retried", "later"));
}

TEST_P(Outlets, NoneHidesBehindManyOfTheOthers) {
  const auto find_it = [this] {
    TakeRequest request;
    request.topic = "t";
    request.count = 1;
    request.lease_until = engine_.now() + std::chrono::minutes{1};
    std::vector<std::string> found;
    // As the queue does.
    for (bool asks = true; asks;) {
      engine_.engine().take(engine_.now(), request, [&](const Result<TakeAnswer>& taken) {
        asks = taken.value().jobs.empty() && taken->is_cut;
        for (const TakenJob& each : taken->jobs) found.emplace_back(each.job.id);
      });
      engine_.settle();
    }
    return found;
  };
  const std::string body(size_t{1} << 20, 'x');
  for (int i = 0; i < 9; ++i)
    engine_.push(JobSpec("t", std::to_string(i)).called_back().due_at(at(10)).with_body(body));
  engine_.push(JobSpec("t", "large").due_at(at(10)));
  engine_.go_to(at(10));
  EXPECT_THAT(find_it(), ElementsAre("large"));
  std::vector<JobSpec> many;
  for (int i = 0; i < 3'000; ++i)
    many.push_back(JobSpec("t", "small" + std::to_string(i)).called_back().due_at(at(20)));
  engine_.push_all(many);
  engine_.push(JobSpec("t", "small").due_at(at(20)));
  engine_.go_to(at(20));
  EXPECT_THAT(find_it(), ElementsAre("small"));
}

}  // namespace
}  // namespace delayq::contract
