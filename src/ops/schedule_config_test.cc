#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/config.h"
#include "queue/job_headers.h"

namespace delayq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr Moment kScheduleNow = from_unix_ms(1'800'000'000'000);

/// All that is wrong, as `config check` reports it.
std::vector<std::string> wrong(std::string_view toml) {
  ConfigOutcome outcome = parse_config(toml, "a.toml");
  for (std::string& error : check_schedules(outcome.config, kScheduleNow))
    outcome.errors.push_back(with_origin(std::move(error), outcome.said));
  return outcome.errors;
}

TEST(ScheduleConfig, has_all_that_a_schedule_has) {
  const ConfigOutcome outcome = parse_config(R"(
[limits]
schedules = 7
[schedules.nightly-report]
cron = "0 2 * * *"
zone = "Asia/Shanghai"
start = "2030-01-31T08:00:00Z"
end = "2031-01-31T08:00:00Z"
runs = 1000
jitter = "5m"
overlap = "skip"
missed = "all"
topic = "report"
body = '{"kind":"daily"}'
priority = 7
group = "reports"
attempts = 0
backoff = ["10s", "1m"]
lease = "5m"
callback = "https://shop.example/hook"
callback_method = "PUT"
callback_format = "cloudevents"
headers = { tenant = "acme", "a.b" = "x" }
[schedules."report.often"]
every = "15m"
topic = "report"
)",
                                             "a.toml");
  ASSERT_THAT(outcome.errors, IsEmpty());
  EXPECT_THAT(check_schedules(outcome.config, kScheduleNow), IsEmpty());
  EXPECT_EQ(queue_config(outcome.config).schedules, 7u);
  ASSERT_EQ(outcome.config.schedules.size(), 2u);
  Arena texts;
  const ScheduleSpec spec = outcome.config.schedules.at("nightly-report").spec("nightly-report", texts);
  ScheduleSpec wanted;
  wanted.name = "nightly-report";
  wanted.cron = "0 2 * * *";
  wanted.zone = "Asia/Shanghai";
  wanted.start = from_unix_ms(1'896'076'800'000);
  wanted.end = from_unix_ms(1'927'612'800'000);
  wanted.runs = 1'000;
  wanted.jitter = std::chrono::minutes{5};
  wanted.overlap = Overlap::kSkip;
  wanted.missed = Missed::kAll;
  wanted.topic = "report";
  wanted.body = R"({"kind":"daily"})";
  wanted.priority = 7;
  wanted.group = "reports";
  wanted.options.attempts = 0;
  wanted.options.backoff = StepBackoff{{std::chrono::seconds{10}, std::chrono::minutes{1}}};
  wanted.options.lease = std::chrono::minutes{5};
  wanted.options.callback = "https://shop.example/hook";
  wanted.options.method = "PUT";
  wanted.options.format = CallbackFormat::kCloudEvents;
  std::string headers;
  encode_job_headers(std::vector<JobHeader>{{"a.b", "x"}, {"tenant", "acme"}}, headers);
  wanted.options.headers = headers;
  wanted.from_configuration = true;
  EXPECT_EQ(spec, wanted);
}

TEST(ScheduleConfig, each_error_has_its_line_and_its_key) {
  EXPECT_THAT(
      wrong(R"([schedules.a]
cron = "0 0 30 2 *"
topic = "t"
[schedules.b]
cron = "@daily"
zone = "Mars/Base"
topic = "no spaces"
overlap = "never"
[schedules.c]
every = "1s"
topic = "t"
start = 1979-05-27T07:32:00Z
[schedules.d]
every = "1m"
topic = "t"
start = "2030-01-31T08:00:00Z"
end = "2029-01-31T08:00:00Z"
[schedules.e]
every = "1m"
cron = "@daily"
topic = "t"
[schedules.f]
topic = "t"
[schedules.g]
[schedules.h]
every = "1m"
zone = "UTC"
topic = "t"
[schedules.i]
every = "1m"
colour = 1
[schedules."no spaces"]
every = "1m"
[schedules.j]
every = "1m"
topic = "t"
[schedules.j.headers]
Host = "x"
)"),
      ElementsAre(StartsWith("a.toml:2: schedules.a.cron: "), StartsWith("a.toml:6: schedules.b.zone: "),
                  StartsWith("a.toml:7: schedules.b.topic: "),
                  StartsWith("a.toml:8: schedules.b.overlap: \"never\" is not known"),
                  StartsWith("a.toml:10: schedules.c.every: "),
                  StartsWith("a.toml:12: schedules.c.start: a date or a time is not allowed"),
                  StartsWith("a.toml:31: schedules.i.colour: unknown key"),
                  StartsWith("a.toml:33: schedules.no spaces.every: the name of a schedule"),
                  StartsWith("a.toml:17: schedules.\"d\".end: end 2029-01-31"),
                  StartsWith("a.toml:19: schedules.\"e\".every: every and cron"),
                  "a.toml:23: schedules.\"f\": cron or every is missing",
                  "a.toml:24: schedules.\"g\": cron or every is missing",
                  "a.toml:24: schedules.\"g\": topic is missing",
                  StartsWith("a.toml:27: schedules.\"h\".zone: zone belongs to a cron rule"),
                  StartsWith("a.toml:38: schedules.\"j\".headers.Host: ")));
}

TEST(ScheduleConfig, a_name_is_there_once_and_with_dots_in_quotes) {
  EXPECT_THAT(wrong("[schedules.a]\ntopic = \"t\"\n[schedules.a]\n"),
              ElementsAre(HasSubstr("a.toml:3: this is not TOML")));
  EXPECT_THAT(wrong("[schedules.a.b]\ntopic = \"t\"\n"),
              ElementsAre(HasSubstr("a name with dots needs quotes")));
  EXPECT_THAT(wrong("[schedules]\na = 1\n"),
              ElementsAre(HasSubstr("a.toml:2: schedules.a: this is a section")));
}

TEST(ScheduleConfig, the_body_is_as_large_as_jobs_may_be) {
  EXPECT_THAT(wrong("[limits]\nbody = 3\n[schedules.a]\ntopic = \"t\"\nevery = \"1m\"\nbody = \"four\"\n"),
              ElementsAre(StartsWith("a.toml:6: schedules.\"a\".body: ")));
}

TEST(ScheduleConfig, the_environment_cannot_name_one) {
  const std::vector<std::pair<std::string, std::string>> variables{{"DELAYQ_SCHEDULES_A_CRON", "@daily"}};
  EXPECT_THAT(check_environment(variables), ElementsAre(HasSubstr("schedules cannot be configured there")));
}

}  // namespace
}  // namespace delayq
