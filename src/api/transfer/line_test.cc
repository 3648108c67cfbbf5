#include "api/transfer/line.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "json/reader.h"
#include "queue/job_headers.h"

namespace delayq::transfer {
namespace {

using testing::HasSubstr;

Job simple_job() {
  Job job;
  job.topic = "order";
  job.id = "7";
  job.due = from_unix_ms(1'896'076'800'123);
  job.pushed = from_unix_ms(1'700'000'000'000);
  return job;
}

std::string line_of(const Job& job) {
  std::string out;
  write_line(out, {job, {}});
  return out;
}

/// Every field but the options, which are compared by what they say.
void expect_same(const Job& read, const Job& written) {
  EXPECT_EQ(read.topic, written.topic);
  EXPECT_EQ(read.id, written.id);
  EXPECT_EQ(read.group, written.group);
  EXPECT_EQ(read.body, written.body);
  EXPECT_EQ(read.outcome, written.outcome);
  EXPECT_EQ(read.state, written.state);
  EXPECT_EQ(read.priority, written.priority);
  EXPECT_EQ(read.attempts, written.attempts);
  EXPECT_EQ(read.due, written.due);
  EXPECT_EQ(read.pushed, written.pushed);
  EXPECT_EQ(read.cancel_requested, written.cancel_requested);
  if (!is_live(written.state)) {
    EXPECT_EQ(read.until, written.until);
  }
}

void expect_round_trip(const Job& job) {
  const std::string text = line_of(job);
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "one line: " << text;
  const Result<Line> line = parse_line(text);
  ASSERT_TRUE(line.ok()) << to_string(line.error()) << "\n" << text;
  expect_same(line->item.job, job);
  EXPECT_EQ(line->item.options, decode_job_options(job.options));
}

std::string problem_of(std::string_view text) {
  const Result<Line> line = parse_line(text);
  return line.ok() ? "it was taken" : line.error().detail;
}

TEST(Line, ReadsLikeAJob) {
  Job job = simple_job();
  job.body = R"({"uid": 1})";
  job.group = "customer:1";
  EXPECT_EQ(line_of(job),
            R"({"topic":"order","id":"7","state":"delayed","due_at":"2030-01-31T08:00:00.123Z",)"
            R"("pushed_at":"2023-11-14T22:13:20.000Z","attempts":0,"priority":1024,"group":"customer:1",)"
            R"("body":{"uid": 1}})"
            "\n");
}

TEST(Line, EveryStateComesBack) {
  for (size_t i = 0; i < kJobStateCount; ++i) {
    Job job = simple_job();
    job.state = static_cast<JobState>(i);
    job.attempts = 4'000'000'000;
    job.priority = UINT32_MAX;
    job.outcome = "connection \"refused\"\n\tat once";
    job.until = from_unix_ms(1'900'000'000'001);
    job.cancel_requested = job.state == JobState::kReserved;
    expect_round_trip(job);
  }
}

TEST(Line, BodiesComeBackByteForByte) {
  const std::string deep = std::string(127, '[') + std::string(127, ']');
  const std::string too_deep = std::string(128, '[') + std::string(128, ']');
  const std::vector<std::string> bodies{"",
                                        " ",
                                        "{}",
                                        " {} ",
                                        "{\n}",
                                        "[1,\r2]",
                                        "1.50e+03",
                                        "\"text\"",
                                        "text",
                                        "nul",
                                        "null",
                                        "{\"a\":1,\"a\":2}",
                                        "\"\\u0000\\ud83d\\ude00\"",
                                        std::string("\0", 1),
                                        "\xff\xfe",
                                        "caf\xc3\xa9",
                                        std::string(300, '\x01'),
                                        std::string(300, '"'),
                                        deep,
                                        too_deep,
                                        "{\"b\":1} {\"c\":2}",
                                        "\\",
                                        "\x7f",
                                        "-0",
                                        "\xef\xbb\xbf{}"};
  for (const std::string& body : bodies) {
    Job job = simple_job();
    job.body = body;
    expect_round_trip(job);
    EXPECT_LE(line_of(job).size(), 2 * body.size() + 300) << "it grows too much: " << body;
  }
}

TEST(Line, ABodyLooksAsGoodAsItCan) {
  Job job = simple_job();
  job.body = "[1, 2]";
  EXPECT_THAT(line_of(job), HasSubstr("\"body\":[1, 2]"));
  job.body = "hello";
  EXPECT_THAT(line_of(job), HasSubstr("\"body_text\":\"hello\""));
  job.body = "\xff";
  EXPECT_THAT(line_of(job), HasSubstr("\"body_base64\":\"/w==\""));
}

TEST(Line, OptionsComeBack) {
  JobOptions options;
  options.attempts = 0;
  options.backoff = ExponentialBackoff{Millis{1'500}, 1.5, std::chrono::hours{2}, 0.25};
  options.lease = Millis{90'500};
  options.callback = "https://shop.example/hook";
  options.method = "PUT";
  options.format = CallbackFormat::kCloudEvents;
  options.content_type = "text/plain; charset=utf-8";
  options.name = "关闭订单";
  options.kafka_topic = "orders.late";
  std::string headers;
  encode_job_headers(std::vector<JobHeader>{{"traceparent", "00-1"}, {"Note", "\"ü\""}}, headers);
  options.headers = headers;
  std::string encoded;
  encode_job_options(options, encoded);
  Job job = simple_job();
  job.options = encoded;
  expect_round_trip(job);
  EXPECT_THAT(line_of(job), HasSubstr(R"("headers":{"traceparent":"00-1","Note":"\"ü\""})"));

  options.headers = std::string_view("\x93\x02\xa4name\xc2", 8);
  encoded.clear();
  encode_job_options(options, encoded);
  job.options = encoded;
  expect_round_trip(job);
  EXPECT_THAT(line_of(job), HasSubstr("kafka_record_base64"));
}

TEST(Line, BadHeadersAreNamed) {
  const auto refusal = [](std::string_view headers) {
    const auto line = parse_line(fmt::format(
        R"({{"topic":"t","id":"7","state":"ready","due_at":"2030-01-31T08:00:00.000Z","body":1,{}}})",
        headers));
    return line.ok() ? std::string() : line.error().field;
  };
  EXPECT_EQ(refusal(R"("headers":{"a":"1"})"), "");
  EXPECT_EQ(refusal(R"("headers":7)"), "headers");
  EXPECT_EQ(refusal(R"("headers":{"a":1})"), "headers.a");
  EXPECT_EQ(refusal(R"("headers":{"a":"\ud800"})"), "headers.a");
  EXPECT_EQ(refusal(R"("headers":{},"kafka_record_base64":"kQA=")"), "headers");
  EXPECT_EQ(refusal(R"("kafka_record_base64":"kQQ=")"), "kafka_record_base64") << "headers of a push";
}

TEST(Line, SettingsComeBack) {
  Settings settings;
  settings.attempts = 5;
  settings.backoff = StepBackoff{{Millis{10'000}, Millis{60'500}}};
  settings.lease = Millis{2'000};
  settings.keep_done = Retention{std::chrono::hours{1}, 10};
  settings.keep_dead = Retention{std::chrono::days{30}, 0};
  settings.rate = Rate{100, std::chrono::seconds{1}};
  settings.concurrency = 3;
  settings.paused = false;
  settings.priority = 0;
  settings.delivery = Delivery::kWebhook;
  settings.callback = "https://shop.example/hook";
  settings.callback_method = "PATCH";
  settings.callback_timeout = Millis{2'000};
  settings.callback_format = CallbackFormat::kCallbackApi;
  settings.redis_key = "orders";
  settings.redis_content = RedisContent::kId;
  settings.redis_maxlen = uint64_t{10'000'000'000};
  for (const Settings& each : {settings, Settings{}, Settings{.paused = true}}) {
    ExportItem item;
    item.job.topic = "*";
    item.settings = each;
    std::string text;
    write_line(text, item);
    const Result<Line> line = parse_line(text);
    ASSERT_TRUE(line.ok()) << to_string(line.error());
    EXPECT_EQ(line->topic, "*");
    EXPECT_EQ(line->settings, each);
  }
}

// ---- schedules

std::string line_of(const ScheduleSpec& spec, const ScheduleProgress& progress) {
  auto view = std::make_shared<ScheduleView>();
  view->spec = spec;
  view->progress = progress;
  ExportItem item;
  item.schedule = std::move(view);
  std::string out;
  write_line(out, item);
  return out;
}

void expect_round_trip(const ScheduleSpec& spec, const ScheduleProgress& progress) {
  const std::string text = line_of(spec, progress);
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "one line: " << text;
  const Result<Line> line = parse_line(text);
  ASSERT_TRUE(line.ok()) << to_string(line.error()) << "\n" << text;
  ASSERT_TRUE(line->schedule && line->progress) << text;
  EXPECT_EQ(*line->schedule, spec) << text;
  EXPECT_EQ(*line->progress, progress) << text;
  EXPECT_FALSE(line->moving);
}

ScheduleSpec simple_schedule() {
  return {.name = "nightly", .cron = "0 2 * * *", .topic = "report", .body = R"({"kind":"daily"})"};
}

ScheduleProgress some_progress() {
  ScheduleProgress progress;
  progress.created = from_unix_ms(1'700'000'000'000);
  progress.decided = from_unix_ms(1'700'000'000'001);
  return progress;
}

TEST(Line, AScheduleReadsLikeItsDefinition) {
  EXPECT_EQ(
      line_of(simple_schedule(), some_progress()),
      R"({"schedule":"nightly","topic":"report","cron":"0 2 * * *","body":{"kind":"daily"},)"
      R"("progress":{"created_at":"2023-11-14T22:13:20.000Z","decided_until":"2023-11-14T22:13:20.001Z"}})"
      "\n");
}

TEST(Line, SchedulesComeBack) {
  expect_round_trip(simple_schedule(), some_progress());
  ScheduleSpec spec = simple_schedule();
  spec.zone = "Asia/Shanghai";
  spec.start = from_unix_ms(1);
  spec.end = from_unix_ms(1'900'000'000'000);
  spec.runs = UINT64_MAX;
  spec.jitter = Millis{90'500};
  spec.overlap = Overlap::kReplace;
  spec.missed = Missed::kAll;
  spec.priority = 0;
  spec.group = "customer:1";
  spec.from_configuration = true;
  spec.options.attempts = 0;
  spec.options.backoff = StepBackoff{{Millis{10'000}, Millis{60'500}}};
  spec.options.lease = Millis{90'500};
  spec.options.callback = "https://shop.example/hook";
  spec.options.method = "PUT";
  spec.options.format = CallbackFormat::kCloudEvents;
  spec.options.content_type = "text/plain";
  spec.options.name = "关闭订单";
  ScheduleProgress progress = some_progress();
  progress.made = UINT64_MAX;
  progress.skipped = 2;
  progress.missed = 3;
  progress.previous = from_unix_ms(1'700'000'000'250);
  progress.previous_topic = "订单";
  progress.catch_up_until = from_unix_ms(1'700'000'000'999);
  progress.paused = progress.moving = true;
  expect_round_trip(spec, progress);
  spec.cron = spec.zone = {};
  spec.every = Millis{10'001};
  expect_round_trip(spec, progress);
}

TEST(Line, BodiesOfSchedulesComeBackByteForByte) {
  for (const std::string& body : {std::string("\0", 1), std::string("\xff\xfe"), std::string(),
                                  std::string("text"), std::string("[1,\r2]")}) {
    ScheduleSpec spec = simple_schedule();
    spec.body = body;
    expect_round_trip(spec, some_progress());
  }
}

TEST(Line, ADamagedScheduleIsShownAndNotTaken) {
  auto view = std::make_shared<ScheduleView>();
  view->spec.name = "nightly";
  view->problem = "it cannot be read";
  ExportItem item;
  item.schedule = std::move(view);
  std::string text;
  write_line(text, item);
  EXPECT_EQ(text, "{\"schedule\":\"nightly\",\"damaged\":\"it cannot be read\"}\n");
  EXPECT_THAT(problem_of(text), HasSubstr("damaged: "));
}

TEST(Line, AMarkHasNothingElse) {
  for (const bool moving : {true, false}) {
    const std::string text = fmt::format(R"({{"schedule":"nightly","moving":{}}})", moving);
    const Result<Line> line = parse_line(text);
    ASSERT_TRUE(line.ok()) << to_string(line.error());
    EXPECT_EQ(line->moving, moving);
    EXPECT_EQ(line->schedule->name, "nightly");
  }
  EXPECT_THAT(problem_of(R"({"schedule":"a","moving":true,"cron":"@daily"})"), HasSubstr("cron: this field"));
}

TEST(Line, AScheduleWithoutProgressBegins) {
  const Result<Line> line = parse_line(R"({"schedule":"a","topic":"t","every":"10s","body":1})");
  ASSERT_TRUE(line.ok()) << to_string(line.error());
  EXPECT_FALSE(line->progress);
}

TEST(Line, ProblemsOfSchedulesNameTheirField) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"({"schedule":7})", "schedule: expected a string"},
      {R"({"schedule":"a","schedule":"b"})", "schedule: is there twice"},
      {R"({"schedule":"a"})", "topic: is missing"},
      {R"({"schedule":"a","topic":"t"})", "body: expected one of"},
      {R"({"schedule":"a","topic":"t","body":1,"every":"often"})", "every: "},
      {R"({"schedule":"a","topic":"t","body":1,"overlap":"never"})", "overlap: overlap"},
      {R"({"schedule":"a","topic":"t","body":1,"missed":3})", "missed: expected a string"},
      {R"({"schedule":"a","topic":"t","body":1,"runs":-1})", "runs: "},
      {R"({"schedule":"a","topic":"t","body":1,"start":"soon"})", "start: "},
      {R"({"schedule":"a","topic":"t","body":1,"state":"paused"})", "state: this field is not known here"},
      {R"({"schedule":"a","topic":"t","body":1,"progress":[]})", "progress: expected an object"},
      {R"({"schedule":"a","topic":"t","body":1,"progress":{}})", "progress: created_at: is missing"},
      {R"({"schedule":"a","topic":"t","body":1,"progress":{"created_at":"5","decided_until":"5","made":1.5}})",
       "progress: made: "},
      {R"({"schedule":"a","topic":"t","body":1,"progress":{"created_at":"5","decided_until":"5","mode":1}})",
       "progress: mode: this field is not known here; did you mean made?"},
  };
  for (const auto& [text, problem] : cases) EXPECT_THAT(problem_of(text), HasSubstr(problem)) << text;
}

TEST(Line, ADamagedJobIsShownAndNotTaken) {
  Job job;
  job.topic = "order";
  job.state = JobState::kDead;
  job.outcome = "its record on disk is damaged";
  const std::string text = line_of(job);
  EXPECT_EQ(text, "{\"topic\":\"order\",\"state\":\"dead\",\"damaged\":\"its record on disk is damaged\"}\n");
  EXPECT_THAT(problem_of(text), HasSubstr("damaged: "));
}

TEST(Line, WhatMayBeLeftOut) {
  const Result<Line> line =
      parse_line(R"({"topic":"t","id":"a","state":"ready","due_at":"1970-01-01T00:00:01Z","body":1})");
  ASSERT_TRUE(line.ok()) << to_string(line.error());
  EXPECT_EQ(line->item.job.pushed, from_unix_ms(1'000));
  EXPECT_EQ(line->item.job.priority, kDefaultPriority);
  EXPECT_EQ(line->item.job.attempts, 0U);
}

TEST(Line, ProblemsNameTheirField) {
  const std::string good = R"("topic":"t","id":"a","state":"dead","due_at":"2030-01-01T00:00:00Z","body":1)";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "not JSON"},
      {"[1]", "expected a JSON object, got an array"},
      {"{" + good + ",\"kept_until\":\"2031-01-01T00:00:00Z\"} x", "not JSON"},
      {"{" + good + "}", "kept_until: is missing"},
      {R"({"id":"a"})", "topic: is missing"},
      {R"({"topic":7})", "topic: expected a string"},
      {R"({"topic":"t","id":"a","id":"b"})", "id: is there twice"},
      {R"({"topic":"t","id":"a","state":"gone"})", "state: expected delayed"},
      {R"({"topic":"t","id":"a","state":"ready","due_at":"soon"})", "due_at: "},
      {R"({"topic":"t","id":"a","state":"ready","due_at":"5"})", "body: expected one of"},
      {R"({"topic":"t","id":"a","state":"ready","due_at":"5","body":1,"body_text":"1"})",
       "body: expected one"},
      {R"({"topic":"t","id":"a","state":"ready","due_at":"5","body_base64":"_"})", "body_base64: "},
      {R"({"topic":"t","id":"a","state":"ready","due_at":"5","body":1,"kept_until":"5"})",
       "kept_until: only"},
      {R"({"topic":"t","id":"a","state":"ready","due_at":"5","body":1,"attempts":-1})", "attempts: "},
      {R"({"topic":"t","id":"a","state":"ready","due_at":"5","body":1,"priority":4294967296})", "priority: "},
      {R"({"topic":"t","id":"a","state":"ready","due_at":"5","body":1,"lease":"long"})", "lease: "},
      {R"({"topic":"t","id":"a","state":"ready","due_at":"5","body":1,"colour":1})", "colour: this field"},
      {R"({"topic":"t","settings":{"lease":"long"}})", "lease: "},
      {R"({"topic":"t","settings":[]})", "settings: expected an object"},
      {R"({"topic":"t","settings":{"rate":{"count":1}}})", "rate: per: is missing"},
      {R"({"topic":"t","settings":{},"id":"a"})", "id: this field is not known here. Known: topic, settings"},
      {R"({"topic":"t","settings":{"leese":"1m"}})",
       "leese: this field is not known here; did you mean lease? Known: attempts, backoff, lease,"},
      {R"({"topic":"t","settings":{"rate":{"count":1,"per":"1s","pre":"1s"}}})",
       "rate: pre: this field is not known here; did you mean per? Known: count, per"},
  };
  for (const auto& [text, problem] : cases) EXPECT_THAT(problem_of(text), HasSubstr(problem)) << text;
}

}  // namespace
}  // namespace delayq::transfer
