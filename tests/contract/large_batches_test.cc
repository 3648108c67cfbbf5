// Batches of jobs so large that an engine may process them in parts: every job is
// processed and has its result.
#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

class LargeBatches : public EngineContract {
 protected:
  static constexpr int kJobs = 10;

  void SetUp() override {
    for (int i = 0; i < kJobs; ++i) {
      ids_.push_back(std::to_string(i));
      engine_.push(JobSpec("t", ids_.back()).with_body(std::string(size_t{1} << 20, 'x')));
    }
  }
  /// Takes all, with leases of a minute. A reply has no more than 8 MiB.
  std::vector<Taken> take_all() {
    std::vector<Taken> all;
    while (all.size() < kJobs) {
      const size_t before = all.size();
      for (Taken& each : engine_.take("t", kJobs)) all.push_back(std::move(each));
      if (all.size() == before) throw std::runtime_error("there are no more");
    }
    return all;
  }
  /// One request for each of them.
  template <class Request>
  static std::vector<Request> about(const std::vector<Taken>& taken) {
    std::vector<Request> requests(taken.size());
    for (size_t i = 0; i < taken.size(); ++i) requests[i].lease = taken[i].ref();
    return requests;
  }
  size_t count(JobState state) { return engine_.counts("t").of(state); }

  std::vector<std::string> ids_;
};
DELAYQ_OVER_ALL_ENGINES(LargeBatches);

TEST_P(LargeBatches, Ack) {
  const std::vector<Taken> taken = take_all();
  auto requests = about<AckRequest>(taken);
  requests[3].lease.lease = "0.1";
  std::vector<AckOutcome> expected(kJobs, AckOutcome::kAcked);
  expected[3] = AckOutcome::kStale;
  std::vector<AckOutcome> outcomes;
  engine_.engine().ack(engine_.now(), requests,
                       [&](Result<std::vector<AckOutcome>> result) { outcomes = std::move(result.value()); });
  engine_.settle();
  EXPECT_EQ(outcomes, expected);
  EXPECT_EQ(count(JobState::kReserved), 1U);
}

TEST_P(LargeBatches, NackThenRedrive) {
  const std::vector<Taken> taken = take_all();
  auto requests = about<NackRequest>(taken);
  for (NackRequest& request : requests) request.keep = kKeepAll;
  EXPECT_EQ(engine_.nack_all(requests), std::vector<NackOutcome>(kJobs, NackOutcome::kDead));
  EXPECT_EQ(count(JobState::kDead), static_cast<size_t>(kJobs));
  EXPECT_EQ(engine_.redrive("t", {ids_.begin(), ids_.end()}), static_cast<uint64_t>(kJobs));
  EXPECT_EQ(count(JobState::kReady), static_cast<size_t>(kJobs));
}

TEST_P(LargeBatches, Extend) {
  const std::vector<Taken> taken = take_all();
  auto requests = about<ExtendRequest>(taken);
  for (ExtendRequest& request : requests) request.until = at(3'600'000);
  std::vector<ExtendAnswer> extended;
  engine_.engine().extend(engine_.now(), requests, [&](Result<std::vector<ExtendAnswer>> result) {
    extended = std::move(result.value());
  });
  engine_.settle();
  EXPECT_EQ(extended, std::vector<ExtendAnswer>(kJobs, at(3'600'000)));
  engine_.go_to(at(3'599'999));
  engine_.tick();
  EXPECT_EQ(count(JobState::kReserved), static_cast<size_t>(kJobs));
  EXPECT_THAT(engine_.expired_news(), IsEmpty());
}

TEST_P(LargeBatches, RescheduleThenCancel) {
  std::vector<RescheduleRequest> moves;
  std::vector<JobRef> jobs;
  for (const std::string& id : ids_) {
    jobs.push_back({"t", id});
    moves.push_back({{"t", id}, at(1'000)});
  }
  moves.insert(moves.begin() + 5, RescheduleRequest{{"t", "nobody"}, at(1'000)});
  std::vector<RescheduleOutcome> expected(moves.size(), RescheduleOutcome::kMoved);
  expected[5] = RescheduleOutcome::kUnknown;
  std::vector<RescheduleOutcome> moved;
  engine_.engine().reschedule(engine_.now(), moves, [&](Result<std::vector<RescheduleOutcome>> result) {
    moved = std::move(result.value());
  });
  engine_.settle();
  EXPECT_EQ(moved, expected);
  EXPECT_EQ(count(JobState::kDelayed), static_cast<size_t>(kJobs));
  std::vector<CancelOutcome> cancelled;
  // Two verbs at once, which an engine may join.
  const std::span<const JobRef> all = jobs;
  for (const std::span<const JobRef> some : {all.first(6), all.subspan(6)}) {
    engine_.engine().cancel(engine_.now(), some, [&](const Result<std::vector<CancelOutcome>>& result) {
      cancelled.insert(cancelled.end(), result->begin(), result->end());
    });
  }
  engine_.settle();
  EXPECT_EQ(cancelled, std::vector<CancelOutcome>(kJobs, CancelOutcome::kCancelled));
  EXPECT_EQ(count(JobState::kDelayed), 0U);
}

}  // namespace
}  // namespace delayq::contract
