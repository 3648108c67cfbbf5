// Compares every engine with the reference model: random calls of all verbs; every reply must be equal.
#include <cstdlib>

#include "engine/memory/memory_engine.h"
#include "tests/contract/engine_contract.h"
#include "tests/support/lockstep.h"
#include "tests/support/workload.h"

namespace delayq::contract {
namespace {

constexpr int kStepsPerSeed = 400;

/// How many seeds each test plays. DELAYQ_MODEL_SEEDS=10000 in the environment makes it a long search.
uint64_t seeds(const EngineEntry& entry) {
  const char* wanted = std::getenv("DELAYQ_MODEL_SEEDS");
  return wanted == nullptr ? entry.model_seeds : std::strtoull(wanted, nullptr, 10);
}

class AgainstTheModel : public testing::TestWithParam<EngineEntry> {
 protected:
  /// Plays one seed. Returns the first difference with the steps that led to it, or nothing.
  static std::optional<std::string> play(uint64_t seed, const support::WorkloadShape& shape) {
    MemoryEngine model;
    const std::unique_ptr<EngineUnderTest> subject = GetParam().make();
    support::Lockstep lockstep(model, subject->engine(), [&] { return subject->pump(); });
    support::Workload workload(seed, shape);
    for (int i = 1; i <= kStepsPerSeed; ++i) {
      std::optional<std::string> difference;
      try {
        support::Step step = workload.next();
        step.tick_first |= !GetParam().verbs_tick;
        difference = lockstep.play(step);
        if (!difference && i % 40 == 0) difference = lockstep.compare_everything();
        if (!difference && i % 100 == 0 && shape.restarts) {
          subject->reopen();
          lockstep.attach(subject->engine());
          difference = lockstep.compare_everything();
        }
      } catch (const std::exception& problem) {
        difference = problem.what();
      }
      if (difference) {
        return "step " + std::to_string(i) + ", the last steps:\n" + lockstep.trace() +
               "difference: " + *difference;
      }
    }
    return std::nullopt;
  }

  static void play_many(uint64_t first_seed, const support::WorkloadShape& shape) {
    for (uint64_t seed = first_seed; seed < first_seed + seeds(GetParam()); ++seed) {
      const std::optional<std::string> difference = play(seed, shape);
      ASSERT_FALSE(difference) << "seed " << seed << ", " << *difference;
    }
  }
};
DELAYQ_OVER_ALL_ENGINES(AgainstTheModel);

TEST_P(AgainstTheModel, FewNamesManyEncounters) { play_many(1, {}); }

TEST_P(AgainstTheModel, ASteadyClock) {
  support::WorkloadShape shape;
  shape.clock_jumps = false;
  play_many(1'000'001, shape);
}

TEST_P(AgainstTheModel, ManyNamesAndLargeBodies) {
  support::WorkloadShape shape;
  shape.topics = 40;
  shape.ids = 500;
  shape.largest_body = 5'000;
  play_many(2'000'001, shape);
}

TEST_P(AgainstTheModel, OneJobOnly) {
  support::WorkloadShape shape;
  shape.topics = 1;
  shape.ids = 1;
  shape.groups = 1;
  shape.schedules = 0;
  play_many(3'000'001, shape);
}

class DurableAgainstTheModel : public AgainstTheModel {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DurableAgainstTheModel);
DELAYQ_OVER_DURABLE_ENGINES(DurableAgainstTheModel);

// With a steady clock, because a job that was ready before the clock went back may be
// delayed after a restart.
TEST_P(DurableAgainstTheModel, ClosedAndOpenedAgain) {
  support::WorkloadShape shape;
  shape.clock_jumps = false;
  shape.restarts = true;
  play_many(4'000'001, shape);
}

TEST_P(DurableAgainstTheModel, ClosedAndOpenedAgainWithManyNames) {
  support::WorkloadShape shape;
  shape.clock_jumps = false;
  shape.restarts = true;
  shape.topics = 40;
  shape.ids = 500;
  shape.largest_body = 5'000;
  play_many(5'000'001, shape);
}

}  // namespace
}  // namespace delayq::contract
