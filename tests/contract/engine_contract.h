#pragma once

#include <algorithm>
#include <memory>
#include <ostream>
#include <vector>

#include <gmock/gmock.h>

#include "tests/contract/engines.h"
#include "tests/support/engine_driver.h"
#include "tests/support/print.h"

namespace delayq::contract {

using support::at;
using support::ids_of;
using support::JobSpec;
using support::kKeepAll;
using support::kKeepNone;
using support::kStart;
using support::SeenJob;
using support::Taken;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

inline void PrintTo(const EngineEntry& entry, std::ostream* out) { *out << entry.name; }

/// A test of the contract: one new engine, driven as if it replied at once. Most tests need one
/// topic and call it "t".
class EngineContract : public testing::TestWithParam<EngineEntry> {
 protected:
  EngineContract() {
    if (GetParam().ticks_first) engine_.tick_before_verbs();
  }

  /// So many, or fewer over an engine that is slow.
  static int few(int many) { return GetParam().is_slow ? std::max(many / 10, 2) : many; }

  /// Pushes a job that is due now and takes it.
  Taken reserve(const std::string& id, Millis lease = std::chrono::minutes{1}) {
    engine_.push(JobSpec("t", id).due_at(engine_.now()));
    Taken taken = engine_.take_one("t", lease);
    EXPECT_EQ(taken.job.id, id) << "another ready job was in the way";
    return taken;
  }

  void bury(const std::string& id, std::string_view reason = "failed", Keep keep = kKeepAll) {
    EXPECT_EQ(engine_.bury(reserve(id), reason, keep), NackOutcome::kDead);
  }

  void finish(const std::string& id, Keep keep = kKeepAll) {
    EXPECT_EQ(engine_.ack(reserve(id), keep), AckOutcome::kAcked);
  }

  /// How a listing of delayed jobs must look if these are all jobs: exactly so, or in any order and each at
  /// least once, depending on what the engine promises.
  static testing::Matcher<std::vector<std::string>> lists_delayed(const std::vector<std::string>& ids) {
    if (GetParam().lists_delayed_in_order) return testing::ElementsAreArray(ids);
    return testing::AllOf(testing::IsSupersetOf(ids), testing::Each(testing::AnyOfArray(ids)));
  }

  void reopen() {
    subject_->reopen();
    engine_.attach(subject_->engine());
  }

  void lose_power() {
    subject_->lose_power();
    engine_.attach(subject_->engine());
  }

  std::unique_ptr<EngineUnderTest> subject_ = GetParam().make();
  support::EngineDriver engine_{subject_->engine(), [this] { return subject_->pump(); }};
};

inline std::string name_of_engine(const testing::TestParamInfo<EngineEntry>& info) {
  return std::string{info.param.name};
}

inline std::vector<EngineEntry> durable_engines() {
  std::vector<EngineEntry> durable;
  for (const EngineEntry& entry : engines()) {
    if (entry.durable) durable.push_back(entry);
  }
  return durable;
}

}  // namespace delayq::contract

/// Runs a suite over every engine.
#define DELAYQ_OVER_ALL_ENGINES(suite)                                                               \
  INSTANTIATE_TEST_SUITE_P(                                                                          \
      Engines, suite,                                                                                \
      testing::ValuesIn(::delayq::contract::engines().begin(), ::delayq::contract::engines().end()), \
      ::delayq::contract::name_of_engine)

/// Runs a suite over the durable engines.
#define DELAYQ_OVER_DURABLE_ENGINES(suite)                                                           \
  INSTANTIATE_TEST_SUITE_P(Engines, suite, testing::ValuesIn(::delayq::contract::durable_engines()), \
                           ::delayq::contract::name_of_engine)
