// Tests the comparison itself: it must report nothing for two engines that agree, and find
// every planted defect.
#include "tests/support/lockstep.h"

#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "tests/support/forwarding_engine.h"

namespace delayq::support {
namespace {

constexpr int kSteps = 20'000;  // the rarest defect appears about once in 2'000
constexpr uint64_t kSeed = 1;

std::optional<std::string> first_difference(Engine& model, Engine& subject) {
  Lockstep lockstep(model, subject);
  Workload workload(kSeed);
  for (int i = 0; i < kSteps; ++i) {
    if (auto difference = lockstep.play(workload.next())) return difference;
    if (i % 50 != 49) continue;
    if (auto difference = lockstep.compare_everything()) return difference;
  }
  return std::nullopt;
}

template <class Defect>
void expect_found() {
  MemoryEngine model;
  MemoryEngine inner;
  Defect subject(inner);
  EXPECT_TRUE(first_difference(model, subject));
}

TEST(Lockstep, EnginesThatAgree) {
  MemoryEngine model;
  MemoryEngine subject;
  EXPECT_EQ(first_difference(model, subject), std::nullopt);
}

TEST(Lockstep, TheSameSeedIsTheSameWorkload) {
  Workload one(7);
  Workload other(7);
  Workload different(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const Step step = one.next();
    EXPECT_EQ(step.text, other.next().text);
    differs = differs || step.text != different.next().text;
  }
  EXPECT_TRUE(differs);
}

TEST(Lockstep, FindsAJobThatIsReadyEarly) {
  struct Early final : ForwardingEngine {
    using ForwardingEngine::ForwardingEngine;
    Moment tick(Moment now) override { return inner_.tick(now + Millis{1}); }
  };
  expect_found<Early>();
}

TEST(Lockstep, FindsALostCancel) {
  struct LostCancel final : ForwardingEngine {
    using ForwardingEngine::ForwardingEngine;
    void cancel(Moment now, std::span<const JobRef> jobs, Reply<std::vector<CancelOutcome>> reply) override {
      std::vector<JobRef> most(jobs.begin(), jobs.end());
      if (++calls % 10 == 0) most.back().id = "somebody else";
      inner_.cancel(now, most, std::move(reply));
    }
    int calls = 0;
  };
  expect_found<LostCancel>();
}

TEST(Lockstep, FindsALostPriority) {
  struct LostPriority final : ForwardingEngine {
    using ForwardingEngine::ForwardingEngine;
    void push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) override {
      std::vector<NewJob> flat(jobs.begin(), jobs.end());
      for (NewJob& job : flat) job.priority = kDefaultPriority;
      inner_.push(now, flat, std::move(reply));
    }
  };
  expect_found<LostPriority>();
}

TEST(Lockstep, FindsALeaseThatIsGoodForTooLong) {
  struct LongLease final : ForwardingEngine {
    using ForwardingEngine::ForwardingEngine;
    void ack(Moment now, std::span<const AckRequest> leases, Reply<std::vector<AckOutcome>> reply) override {
      inner_.ack(now - Millis{10}, leases, std::move(reply));
    }
  };
  expect_found<LongLease>();
}

TEST(Lockstep, FindsExpiredLeasesThatAreNotTold) {
  struct Silent final : ForwardingEngine, EngineListener {
    using ForwardingEngine::ForwardingEngine;
    bool poll(EngineListener& listener) override {
      told = &listener;
      return inner_.poll(*this);
    }
    void on_ready(std::string_view topic, Outlet outlet) override { told->on_ready(topic, outlet); }
    void on_expired(std::vector<LeaseInfo> leases) override { (void)leases; }
    void on_schedules_due(std::vector<StoredSchedule> due) override { (void)due; }
    EngineListener* told = nullptr;
  };
  expect_found<Silent>();
}

TEST(Lockstep, FindsReadyJobsThatAreNotTold) {
  struct Silent final : ForwardingEngine, EngineListener {
    using ForwardingEngine::ForwardingEngine;
    bool poll(EngineListener& listener) override {
      told = &listener;
      return inner_.poll(*this);
    }
    void on_ready(std::string_view, Outlet) override {}
    void on_expired(std::vector<LeaseInfo> leases) override { told->on_expired(std::move(leases)); }
    void on_schedules_due(std::vector<StoredSchedule> due) override {
      told->on_schedules_due(std::move(due));
    }
    EngineListener* told = nullptr;
  };
  expect_found<Silent>();
}

TEST(Lockstep, FindsAWrongForecast) {
  struct Misleading final : ForwardingEngine {
    using ForwardingEngine::ForwardingEngine;
    void forecast(Moment now, const ForecastRequest& request, Reply<Forecast> reply) override {
      ForecastRequest shifted = request;
      shifted.from += std::chrono::hours{1};
      shifted.to += std::chrono::hours{1};
      inner_.forecast(now, shifted, std::move(reply));
    }
  };
  expect_found<Misleading>();
}

TEST(Lockstep, FindsATurnWithoutItsJob) {
  struct LostJob final : ForwardingEngine {
    using ForwardingEngine::ForwardingEngine;
    void turn(Moment now, std::span<const TurnRequest> requests,
              Reply<std::vector<TurnAnswer>> reply) override {
      std::vector<TurnRequest> most(requests.begin(), requests.end());
      if (++calls % 10 == 0) most.back().job.reset();
      inner_.turn(now, most, std::move(reply));
    }
    int calls = 0;
  };
  expect_found<LostJob>();
}

TEST(Lockstep, FindsAScheduleThatIsNotTurned) {
  struct LostTurn final : ForwardingEngine {
    using ForwardingEngine::ForwardingEngine;
    void turn(Moment now, std::span<const TurnRequest> requests,
              Reply<std::vector<TurnAnswer>> reply) override {
      std::vector<TurnRequest> most(requests.begin(), requests.end());
      if (++calls % 10 == 0) most.back().progress = "as before";
      inner_.turn(now, most, std::move(reply));
    }
    int calls = 0;
  };
  expect_found<LostTurn>();
}

TEST(Lockstep, FindsADueScheduleThatIsNotTold) {
  struct Quiet final : ForwardingEngine {
    using ForwardingEngine::ForwardingEngine;
    struct Ears final : EngineListener {
      explicit Ears(EngineListener& listener) : outer(listener) {}
      void on_ready(std::string_view topic, Outlet outlet) override { outer.on_ready(topic, outlet); }
      void on_expired(std::vector<LeaseInfo> leases) override { outer.on_expired(std::move(leases)); }
      void on_schedules_due(std::vector<StoredSchedule>) override {}
      EngineListener& outer;
    };
    bool poll(EngineListener& listener) override {
      Ears ears(listener);
      return inner_.poll(ears);
    }
  };
  expect_found<Quiet>();
}

}  // namespace
}  // namespace delayq::support
