#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/http/dialect.h"
#include "tests/support/http_client.h"

namespace delayq::http {
namespace {

std::string problem_of(const Error& error) {
  std::string text;
  json::Writer json(text);
  json.begin_object();
  write_problem(json, error);
  json.end_object();
  return text;
}

TEST(Problem, the_field_is_the_one_that_the_error_names) {
  EXPECT_EQ(problem_of(invalid("rate.per", "rate per 2d is out of range")),
            R"({"status":400,"code":"invalid","detail":"rate per 2d is out of range","field":"rate.per"})");
}

TEST(Problem, a_detail_that_begins_like_a_field_makes_none) {
  for (const std::string detail : {"delay: \"x\" is not a duration", "delay 2h is out of range", "rate 5",
                                   "keep_done time 20y", "from and to: no", "redis: not there", "topic"}) {
    EXPECT_EQ(problem_of(invalid(detail)).find(R"("field")"), std::string::npos) << detail;
  }
}

TEST(Problem, an_unknown_field_may_have_any_name) {
  Error error = invalid("a b: there is no such c", "a b: there is no such c: there is no such field");
  error.known.emplace();
  EXPECT_NE(problem_of(error).find(R"("field":"a b: there is no such c","known":[])"), std::string::npos);
}

TEST(Problem, a_field_of_the_queue_gets_the_requests_name) {
  const Error ids = renamed(invalid("id", "id is empty"), "id", "ids");
  EXPECT_EQ(ids.detail, "ids: id is empty");
  EXPECT_EQ(ids.field, "ids");
  const Error topic = renamed(invalid("topic", "topic is empty"), "id", "ids");
  EXPECT_EQ(topic.detail, "topic is empty");
  EXPECT_EQ(topic.field, "topic");
}

TEST(Problem, says_what_it_knows_and_no_more) {
  std::string text;
  json::Writer json(text);
  write_problem_document(json, {ErrorCode::kOverloaded, "push", "too much", Millis{1500}}, 429);
  EXPECT_EQ(text, R"({"type":"about:blank","title":"Too Many Requests","status":429,"code":"overloaded",)"
                  R"("detail":"too much","retry_after_ms":1500})");
}

/// A request of which one field is wrong: because of its type, and because of its value.
struct Refused {
  std::string_view method;
  std::string_view target;
  std::string_view body;
  std::string_view field;
};

constexpr std::string_view kJobs = "/v1/topics/t/jobs";
constexpr std::string_view kTopic = "/v1/topics/t";
constexpr std::string_view kPop = "/v1/topics/t/pop";

constexpr Refused kRefused[] = {
    // A push.
    {"POST", "/v1/topics/a%20b/jobs", R"({"body":1})", "topic"},
    {"POST", kJobs, R"({})", "body"},
    {"POST", kJobs, R"({"body":1,"id":7})", "id"},
    {"POST", kJobs, R"({"body":1,"id":""})", "id"},
    {"POST", kJobs, R"({"body":1,"id":"a\u0000b"})", "id"},
    {"POST", kJobs, R"({"body":1,"id":"taken"})", "id"},
    {"PUT", "/v1/topics/t/jobs/a", R"({"body":1,"id":"b"})", "id"},
    {"POST", kJobs, R"({"body":1,"group":[]})", "group"},
    {"POST", kJobs, R"({"body":1,"group":""})", "group"},
    {"POST", kJobs, R"({"body":1,"delay":"soon"})", "delay"},
    {"POST", kJobs, R"({"body":1,"delay":"200000d"})", "delay"},
    {"POST", kJobs, R"({"body":1,"delay":1,"at":1})", "delay"},
    {"POST", kJobs, R"({"body":1,"at":"soon"})", "at"},
    {"POST", kJobs, R"({"body":1,"at":"2190-01-01T00:00:00Z"})", "at"},
    {"POST", kJobs, R"({"body":1,"priority":-1})", "priority"},
    {"POST", kJobs, R"({"body":1,"priority":4294967296})", "priority"},
    {"POST", kJobs, R"({"body":1,"attempts":"x"})", "attempts"},
    {"POST", kJobs, R"({"body":1,"attempts":1000001})", "attempts"},
    {"POST", kJobs, R"({"body":1,"backoff":"x"})", "backoff"},
    {"POST", kJobs, R"({"body":1,"backoff":["1s","x"]})", "backoff"},
    {"POST", kJobs, R"({"body":1,"backoff":"200000d"})", "backoff"},
    {"POST", kJobs, R"({"body":1,"lease":"x"})", "lease"},
    {"POST", kJobs, R"({"body":1,"lease":"25h"})", "lease"},
    {"POST", kJobs, R"({"body":1,"callback":1})", "callback"},
    {"POST", kJobs, R"({"body":1,"callback":"ftp://x"})", "callback"},
    {"POST", kJobs, R"({"body":1,"callback_method":"GOT"})", "callback_method"},
    {"POST", kJobs, R"({"body":1,"callback_format":"x"})", "callback_format"},
    {"POST", kJobs, R"({"body":1,"unique":1})", "unique"},
    {"POST", kJobs, R"({"body":1,"on_conflict":"x"})", "on_conflict"},
    {"POST", kJobs, R"({"body":1,"body":1})", "body"},
    {"POST", "/v1/topics/t/jobs?delay=1", R"({"body":1})", "delay"},
    {"PATCH", "/v1/topics/t/jobs/taken", R"({})", "delay"},
    {"PATCH", "/v1/topics/t/jobs/taken", R"({"delay":"x"})", "delay"},
    {"PATCH", "/v1/topics/t/jobs/taken", R"({"at":"x"})", "at"},
    // A pop, and what ends it.
    {"POST", kPop, R"({"count":"x"})", "count"},
    {"POST", kPop, R"({"count":0})", "count"},
    {"POST", kPop, R"({"wait":"x"})", "wait"},
    {"POST", kPop, R"({"wait":"2h"})", "wait"},
    {"POST", kPop, R"({"lease":"x"})", "lease"},
    {"POST", kPop, R"({"lease":"1ms"})", "lease"},
    {"POST", kPop, R"({"ack":"x"})", "ack"},
    {"POST", "/v1/topics/called/pop", R"({})", "topic"},
    {"POST", "/v1/pop", R"({})", "topics"},
    {"POST", "/v1/pop", R"({"topics":[]})", "topics"},
    {"POST", "/v1/pop", R"({"topics":["a b"]})", "topics"},
    {"POST", "/v1/pop", R"({"topics":["called"]})", "topics"},
    {"POST", "/v1/ack", R"({})", "leases"},
    {"POST", "/v1/ack", R"({"leases":["x"]})", "leases"},
    {"POST", "/v1/nack", R"({"leases":["x"]})", "leases"},
    {"POST", "/v1/nack", R"({"leases":[],"delay":"x"})", "delay"},
    {"POST", "/v1/nack", R"({"leases":[],"delay":"200000d"})", "delay"},
    {"POST", "/v1/nack", R"({"leases":[],"reason":1})", "reason"},
    {"POST", "/v1/nack", R"({"leases":[],"reason":"a\u0000b"})", "reason"},
    {"POST", "/v1/nack", R"({"leases":[],"dead":1})", "dead"},
    {"POST", "/v1/extend", R"({"leases":["x"]})", "leases"},
    {"POST", "/v1/extend", R"({"leases":[],"lease":"x"})", "lease"},
    {"POST", "/v1/extend", R"({"leases":[],"lease":"1ms"})", "lease"},
    // The settings of a topic.
    {"PATCH", kTopic, R"({"attempts":1000001})", "attempts"},
    {"PATCH", kTopic, R"({"backoff":"x"})", "backoff"},
    {"PATCH", kTopic, R"({"lease":"25h"})", "lease"},
    {"PATCH", kTopic, R"({"keep_done":1})", "keep_done"},
    {"PATCH", kTopic, R"({"keep_done":{"time":"x"}})", "keep_done.time"},
    {"PATCH", kTopic, R"({"keep_done":{"time":"200000d"}})", "keep_done.time"},
    {"PATCH", kTopic, R"({"keep_done":{"count":"x"}})", "keep_done.count"},
    {"PATCH", kTopic, R"({"keep_done":{"what":1}})", "keep_done.what"},
    {"PATCH", kTopic, R"({"keep_dead":{"time":"200000d"}})", "keep_dead.time"},
    {"PATCH", kTopic, R"({"keep_dead":{"count":-1}})", "keep_dead.count"},
    {"PATCH", kTopic, R"({"rate":{"count":2000000000}})", "rate.count"},
    {"PATCH", kTopic, R"({"rate":{"count":1,"per":"2d"}})", "rate.per"},
    {"PATCH", kTopic, R"({"rate":{"per":"x"}})", "rate.per"},
    {"PATCH", kTopic, R"({"concurrency":"x"})", "concurrency"},
    {"PATCH", kTopic, R"({"paused":1})", "paused"},
    {"PATCH", kTopic, R"({"priority":"x"})", "priority"},
    {"PATCH", kTopic, R"({"delivery":"x"})", "delivery"},
    {"PATCH", kTopic, R"({"delivery":"redis_list"})", "delivery"},
    {"PATCH", kTopic, R"({"delivery":"kafka_topic"})", "delivery"},
    {"PATCH", kTopic, R"({"kafka_topic":"a b"})", "kafka_topic"},
    {"PATCH", kTopic, R"({"kafka_key":"x"})", "kafka_key"},
    {"PATCH", kTopic, R"({"kafka_content":"x"})", "kafka_content"},
    {"PATCH", kTopic, R"({"kafka_headers":"x"})", "kafka_headers"},
    {"PATCH", kTopic, R"({"delivery":"webhook"})", "callback"},
    {"PATCH", kTopic, R"({"callback":"x"})", "callback"},
    {"PATCH", kTopic, R"({"callback_method":"x"})", "callback_method"},
    {"PATCH", kTopic, R"({"callback_timeout":"2h"})", "callback_timeout"},
    {"PATCH", kTopic, R"({"callback_format":"x"})", "callback_format"},
    {"PATCH", kTopic, R"({"callback_secrets":["x"]})", "callback_secrets"},
    {"PATCH", kTopic, R"({"redis_key":"a\u0000b"})", "redis_key"},
    {"PATCH", kTopic, R"({"redis_content":"x"})", "redis_content"},
    {"PATCH", kTopic, R"({"redis_maxlen":100000000000000})", "redis_maxlen"},
    {"PATCH", "/v1/topics/a%20b", R"({"attempts":1})", "topic"},
    // The other calls.
    {"POST", "/v1/topics/t/forget", R"({})", "topic"},
    {"POST", "/v1/topics/t/pause", R"({"what":1})", "what"},
    {"POST", "/v1/topics/t/redrive", R"({"ids":[""]})", "ids"},
    {"POST", "/v1/topics/t/redrive", R"({"ids":[],"error":"x"})", "error"},
    {"DELETE", "/v1/groups/a%00b", "", "group"},
    {"GET", "/v1/topics/t/jobs", "", "state"},
    {"GET", "/v1/topics/t/jobs?state=x", "", "state"},
    {"GET", "/v1/topics/t/jobs?state=ready&limit=0", "", "limit"},
    {"GET", "/v1/topics/t/jobs?state=ready&cursor=x", "", "cursor"},
    {"GET", "/v1/topics/t/jobs?state=ready&bodies=x", "", "bodies"},
    {"GET", "/v1/topics/t/jobs?state=ready&due_after=1h", "", "due_after"},
    {"GET", "/v1/topics/t/jobs?state=ready&due_before=soon", "", "due_before"},
    {"GET", "/v1/topics/t/jobs?state=ready&due_after=5&due_before=5", "", "due_before"},
    {"GET", "/v1/topics?limit=1001", "", "limit"},
    {"GET", "/v1/forecast?bins=0", "", "bins"},
    {"GET", "/v1/forecast?from=10&to=9", "", "to"},
    {"GET", "/v1/forecast?topic=a%20b", "", "topic"},
    {"GET", "/v1/export?cursor=x", "", "cursor"},
    {"GET", "/v1/events?interval=1ms", "", "interval"},
    {"POST", "/v1/backups", R"({})", "name"},
    {"POST", "/v1/backups", R"({"name":"a/b"})", "name"},
    {"POST", "/v1/import", "", "body"},
    {"POST", "/v1/import", R"({"topic":"t","id":"i"})", "state"},
    {"POST", "/v1/import", R"({"topic":"t","settings":{"rate":{"count":1}}})", "rate"},
    {"GET", "/v1/stats?what=1", "", "what"},
};

class RefusedFieldsTest : public testing::Test, public HttpClient {};

TEST_F(RefusedFieldsTest, every_one_is_named) {
  ask("POST", kJobs, R"({"id":"taken","body":1,"delay":60})");
  ask("PATCH", "/v1/topics/called", R"({"delivery":"webhook","callback":"http://localhost/"})");
  for (const Refused& each : kRefused) {
    const Answer answer = ask(std::string(each.method), std::string(each.target), std::string(each.body));
    EXPECT_NE(answer.body.find(fmt::format(R"("field":"{}")", each.field)), std::string::npos)
        << each.method << ' ' << each.target << ' ' << each.body << ": " << answer.body;
  }
}

TEST_F(RefusedFieldsTest, a_problem_that_is_not_about_a_field_names_none) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"/v1/topics/t/jobs", "delay: x"}, {"/v1/topics/t/jobs", "[]"}, {"/v1/topics/t/what", "{}"}};
  for (const auto& [target, body] : cases) {
    const Answer answer = ask("POST", std::string(target), std::string(body));
    EXPECT_GE(answer.status, 400);
    EXPECT_EQ(answer.body.find(R"("field")"), std::string::npos) << answer.body;
  }
}

}  // namespace
}  // namespace delayq::http
