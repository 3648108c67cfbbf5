#include "bench/load/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/load/progress_bar.h"

namespace delayq::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

Report report_of(Scenario scenario) {
  Report report;
  report.options.scenario = scenario;
  report.options = with_defaults(report.options);
  report.result.answered = 1'000;
  report.result.seconds = 2;
  report.result.early = 3;
  report.result.latency.record(std::chrono::milliseconds(4), 1'000);
  report.result.timeline = {400, 500, 100};
  return report;
}

TEST(Report, JsonHasTheFiguresOfTheIssue) {
  const std::string push = to_json(report_of(Scenario::kPush));
  for (const char* const field :
       {"\"scenario\":\"push\"", "\"jobs\":1000000", "\"seconds\":2.0", "\"ops_per_s\":500.0",
        "\"p50_ms\":4.0", "\"p99_ms\":4.0", "\"p999_ms\":4.0", "\"max_ms\":4.0", "\"errors\":0"})
    EXPECT_THAT(push, HasSubstr(field));
  EXPECT_THAT(push, Not(HasSubstr("early")));
  EXPECT_TRUE(push.ends_with("}\n"));
  EXPECT_THAT(to_json(report_of(Scenario::kLateness)), HasSubstr("\"early\":3"));
}

TEST(Report, TableSaysWhatIsTimedAndTheFirstError) {
  Report report = report_of(Scenario::kSpike);
  report.result.count_error("-DISKFULL no room\r\n+OK");
  report.last_hand_over = 1.25;
  const std::string table = to_table(report);
  EXPECT_THAT(table, HasSubstr("hand-over minus due"));
  EXPECT_THAT(table, HasSubstr("1.250 s after"));
  EXPECT_THAT(table, HasSubstr("errors: 1, the first: -DISKFULL no room\n"));
}

TEST(Report, PlotsWhatTheScenarioIsAbout) {
  EXPECT_THAT(to_plot(report_of(Scenario::kPush)), HasSubstr("per second</text>"));
  EXPECT_THAT(to_plot(report_of(Scenario::kLateness)), HasSubstr(">99.9</text>"));
}

TEST(ProgressBar, FillsUp) {
  EXPECT_THAT(ProgressBar::text("push", 0, 100, 0), HasSubstr("[........................]   0 %"));
  EXPECT_THAT(ProgressBar::text("push", 50, 100, 2),
              HasSubstr("[############............]  50 %        25/s"));
  EXPECT_THAT(ProgressBar::text("push", 200, 100, 2), HasSubstr("[########################] 100 %"));
}

}  // namespace
}  // namespace delayq::bench
