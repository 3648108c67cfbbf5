#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/load/scenarios.h"
#include "bench/load/toy_server.h"

namespace delayq::bench {
namespace {

using testing::HasSubstr;

class ScenariosTest : public testing::Test {
 protected:
  static LoadOptions small(Scenario scenario) {
    LoadOptions options;
    options.scenario = scenario;
    options.jobs = 1'003;  // no multiple of anything
    options.connections = 5;
    options.pipeline = 8;
    options.body = 32;
    return options;
  }

  static Result<Report> run(const LoadOptions& options, const ToyServer& server) {
    EXPECT_TRUE(server.is_listening());
    return run_scenario(options, {server.address()}, "t",
                        std::chrono::steady_clock::now() + std::chrono::seconds(30));
  }

  static void expect_all(const Result<Report>& report, uint64_t jobs) {
    ASSERT_TRUE(report.ok()) << to_string(report.error());
    EXPECT_EQ(report->result.answered, jobs);
    EXPECT_EQ(report->result.errors, 0U) << report->result.first_error;
    EXPECT_GT(report->result.seconds, 0);
    uint64_t in_time = 0;
    for (const uint64_t count : report->result.timeline) in_time += count;
    EXPECT_EQ(in_time, jobs);
  }
};

TEST_F(ScenariosTest, PushAnswersEveryJob) {
  const ToyServer server;
  const Result<Report> report = run(small(Scenario::kPush), server);
  expect_all(report, 1'003);
  EXPECT_EQ(server.pushes(), 1'003U);
  EXPECT_EQ(report->result.latency.count(), 1'003U);
}

TEST_F(ScenariosTest, PushWorksWithoutAPipeline) {
  const ToyServer server;
  LoadOptions options = small(Scenario::kPush);
  options.pipeline = 1;
  expect_all(run(options, server), 1'003);
}

TEST_F(ScenariosTest, RefusedPushesAreErrorsAndNotOperations) {
  const ToyServer server(10);
  const Result<Report> report = run(small(Scenario::kPush), server);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->result.answered, 903U);
  EXPECT_EQ(report->result.errors, 100U);
  EXPECT_EQ(report->result.first_error, "-X no");
}

TEST_F(ScenariosTest, LifeAcksEveryJob) {
  const ToyServer server;
  const Result<Report> report = run(small(Scenario::kLife), server);
  expect_all(report, 1'003);
  EXPECT_EQ(server.acks(), 1'003U);
}

TEST_F(ScenariosTest, LivesThatWereRefusedAreGivenUp) {
  const ToyServer server(10);
  const Result<Report> report = run(small(Scenario::kLife), server);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->result.answered, 903U);
  EXPECT_EQ(report->result.errors, 100U);
  EXPECT_EQ(server.acks(), 903U);
}

TEST_F(ScenariosTest, DrainTakesWhatIsThere) {
  const ToyServer server;
  expect_all(run(small(Scenario::kDrain), server), 1'003);
  EXPECT_EQ(server.acks(), 1'003U);
}

TEST_F(ScenariosTest, CancelMeasuresOnlyTheCancels) {
  const ToyServer server;
  expect_all(run(small(Scenario::kCancel), server), 1'003);
  EXPECT_EQ(server.pushes(), 1'003U);
}

TEST_F(ScenariosTest, WhatIsHandedOverBeforeItsTimeIsEarly) {
  const ToyServer server;
  LoadOptions options = small(Scenario::kLateness);
  options.rate = 500;
  options.seconds = 2;
  options.lead = 30;
  const Result<Report> report = run(options, server);
  expect_all(report, 1'000);
  EXPECT_EQ(report->result.early, 1'000U);
}

TEST_F(ScenariosTest, ALoadThatCannotBePreparedIsAnError) {
  const ToyServer server(10);
  const Result<Report> report = run(small(Scenario::kDrain), server);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().detail, HasSubstr("only 903 of 1003"));
}

TEST_F(ScenariosTest, NobodyThereIsAnError) {
  const Result<Report> report = run_scenario(small(Scenario::kPush), {loopback(free_loopback_port().value())},
                                             "t", std::chrono::steady_clock::now() + std::chrono::seconds(5));
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().detail, HasSubstr("refused"));
}

}  // namespace
}  // namespace delayq::bench
