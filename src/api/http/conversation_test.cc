#include "api/http/conversation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_client.h"

namespace delayq::http {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Answer = HttpClient::Answer;

class HttpTest : public testing::Test, public HttpClient {};

TEST_F(HttpTest, a_jobs_life) {
  const Answer pushed =
      ask("POST", "/v1/topics/order/jobs", R"({"id": "a", "body": {"n": 1.10}, "delay": "30s"})");
  EXPECT_EQ(pushed.status, 201);
  EXPECT_EQ(
      pushed.body,
      R"({"topic":"order","id":"a","state":"delayed","due_at":"2023-11-14T22:13:50.000Z","result":"created"})");
  EXPECT_EQ(ask("POST", "/v1/topics/order/pop").body, R"({"jobs":[]})");
  pass(Millis{30'000});
  const Answer popped =
      ask("POST", "/v1/pop", R"({"topics": ["none", "order"], "count": 5, "lease": "10s"})");
  EXPECT_EQ(popped.status, 200);
  EXPECT_THAT(popped.body, HasSubstr(R"("topic":"order","id":"a","body":{"n": 1.10},"attempt":1)"))
      << "as it was written";
  const std::string lease = member(popped.body, "lease");
  EXPECT_THAT(ask("POST", "/v1/extend", fmt::format(R"({{"leases": ["{}"], "lease": "1m"}})", lease)).body,
              HasSubstr(R"({"result":"extended","lease_until":"2023-11-14T22:14:50.000Z"})"));
  EXPECT_THAT(ask("POST", "/v1/ack", fmt::format(R"({{"leases": ["{}", "order/x"]}})", lease)).body,
              StartsWith(R"({"results":[{"result":"acked"},{"status":409,"code":"stale_lease","detail":)"));
  EXPECT_THAT(ask("GET", "/v1/topics/order/jobs/a").body, HasSubstr(R"("state":"done")"));
}

TEST_F(HttpTest, nack_dead_list_redrive) {
  ask("POST", "/v1/topics/t/jobs", R"({"id": "a", "body": null, "attempts": 1})");
  const std::string lease = member(ask("POST", "/v1/topics/t/pop").body, "lease");
  EXPECT_THAT(ask("POST", "/v1/nack", fmt::format(R"({{"leases":["{}"],"reason":"no bank"}})", lease)).body,
              HasSubstr(R"({"result":"dead"})"));
  EXPECT_THAT(ask("GET", "/v1/topics/t/jobs?state=dead&error=bank&bodies=true").body,
              HasSubstr(R"("body":null,"due_at")"));
  EXPECT_EQ(ask("POST", "/v1/topics/t/redrive", R"({"error":"other"})").body, R"({"jobs":0})");
  EXPECT_EQ(ask("POST", "/v1/topics/t/redrive", R"({"ids":["a"]})").body, R"({"jobs":1})");
  const std::string again = member(ask("POST", "/v1/topics/t/pop").body, "lease");
  EXPECT_THAT(ask("POST", "/v1/nack", fmt::format(R"({{"leases":["{}"],"dead":true}})", again)).body,
              HasSubstr("dead"));
  EXPECT_EQ(ask("POST", "/v1/topics/t/redrive").body, R"({"jobs":1})");
}

TEST_F(HttpTest, since_when_a_lease_is_held) {
  ask("POST", "/v1/topics/t/jobs", R"({"id":"a","body":0})");
  EXPECT_THAT(ask("GET", "/v1/topics/t").body, Not(HasSubstr("oldest_lease_at")));
  const std::string popped = ask("POST", "/v1/topics/t/pop").body;
  const std::string since = member(ask("GET", "/v1/topics/t/jobs/a").body, "handed_over_at");
  EXPECT_THAT(since, HasSubstr("T"));
  pass(Millis{20'000});
  EXPECT_EQ(ask("POST", "/v1/extend", fmt::format(R"({{"leases":["{}"]}})", member(popped, "lease"))).status,
            200);
  EXPECT_EQ(member(ask("GET", "/v1/topics/t/jobs?state=reserved").body, "handed_over_at"), since);
  EXPECT_EQ(member(ask("GET", "/v1/topics/t").body, "oldest_lease_at"), since);
  EXPECT_EQ(member(ask("GET", "/v1/topics").body, "oldest_lease_at"), since);
}

TEST_F(HttpTest, a_list_of_due_times) {
  for (const char* at : {"2040-01-01T00:00:00Z", "2040-01-02T00:00:00Z", "2040-01-03T00:00:00Z"})
    ask("POST", "/v1/topics/t/jobs", fmt::format(R"({{"id":"{0}","body":0,"at":"{0}"}})", at));
  const auto ids = [&](std::string_view query) {
    const std::string body = ask("GET", fmt::format("/v1/topics/t/jobs?state=delayed&{}", query)).body;
    std::string days;
    for (const char day : {'1', '2', '3'}) {
      if (body.find(fmt::format(R"("id":"2040-01-0{})", day)) != std::string::npos) days += day;
    }
    return days;
  };
  EXPECT_EQ(ids("due_after=2040-01-02T00:00:00Z"), "23");
  EXPECT_EQ(ids("due_before=2040-01-02T00:00:00%2B00:00"), "1");
  EXPECT_EQ(ids("due_after=2208988800&due_before=2040-01-03T00:00:00Z&prefix=2040"), "12") << "Unix seconds";
  const std::string page = "/v1/topics/t/jobs?state=delayed&limit=1";
  const std::string cursor = member(ask("GET", page).body, "cursor");
  EXPECT_EQ(ask("GET", page + "&cursor=" + cursor).status, 200);
  EXPECT_EQ(ask("GET", page + "&due_after=1&cursor=" + cursor).status, 400);
}

TEST_F(HttpTest, put_replaces_patch_moves_delete_cancels) {
  EXPECT_EQ(ask("PUT", "/v1/topics/t/jobs/a%20b", R"({"body":1,"delay":60})").status, 201);
  EXPECT_EQ(ask("PUT", "/v1/topics/t/jobs/a%20b", R"({"body":2,"delay":60,"group":"g"})").status, 201);
  EXPECT_EQ(ask("POST", "/v1/topics/t/jobs", R"({"id":"a b","body":3})").status, 409);
  EXPECT_EQ(ask("POST", "/v1/topics/t/jobs", R"({"id":"a b","body":3,"on_conflict":"keep"})").status, 200);
  EXPECT_THAT(ask("GET", "/v1/topics/t/jobs/a%20b").body, HasSubstr(R"("body":2)"));
  EXPECT_EQ(ask("PATCH", "/v1/topics/t/jobs/a%20b", R"({"at":"2030-01-01T00:00:00Z"})").body,
            R"({"result":"moved"})");
  EXPECT_EQ(ask("PATCH", "/v1/topics/t/jobs/x", R"({"delay":1})").status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/topics/t/jobs/a%20b").body, R"({"result":"cancelled"})");
  EXPECT_EQ(ask("DELETE", "/v1/topics/t/jobs/a%20b").body, R"({"result":"unknown"})");
  ask("PUT", "/v1/topics/t/jobs/c", R"({"body":2,"delay":60,"group":"g"})");
  EXPECT_EQ(ask("DELETE", "/v1/groups/g").body, R"({"cancelled":1,"reserved":0})");
}

TEST_F(HttpTest, bodies_come_back_as_they_were) {
  for (const std::string_view value :
       {"1e400", "\"text\"", "[1,  2]", "\"\\u00e9\"", "123456789012345678901234567890"}) {
    ask("POST", "/v1/topics/t/jobs", fmt::format(R"({{"body":{}}})", value));
    EXPECT_THAT(ask("POST", "/v1/topics/t/pop", R"({"ack":"auto"})").body,
                HasSubstr(fmt::format(R"("body":{},)", value)));
  }
  ask("POST", "/v1/topics/t/jobs", R"({"body":"by curl"})", "application/x-www-form-urlencoded");
  EXPECT_THAT(ask("POST", "/v1/topics/t/pop", R"({"ack":"auto"})").body, HasSubstr(R"("body":"by curl",)"));
  EXPECT_EQ(ask("POST", "/v1/topics/t/jobs?id=raw&delay=0", "{not json", "text/plain").status, 201);
  EXPECT_THAT(ask("POST", "/v1/topics/t/pop", R"({"ack":"auto"})").body,
              HasSubstr(R"("body":"{not json","content_type":"text/plain")"));
  ask("POST", "/v1/topics/t/jobs", "\xff\xfe", "application/octet-stream");
  EXPECT_THAT(ask("POST", "/v1/topics/t/pop").body, HasSubstr(R"("body_base64":"//4=")"));
}

TEST_F(HttpTest, a_callback_header_cannot_smuggle_another_one) {
  for (const auto& [path, more] :
       {std::pair("/v1/topics/t/jobs/a", ""), {"/v1/schedules/s", R"("every":"1h","topic":"t",)"}}) {
    for (const std::string_view end : {R"(\n)", R"(\r\n)", R"(\r)"}) {
      const std::string body = fmt::format(
          R"({{{}"body":1,"callback":"http://h/","callback_headers":["A: b{}C: d"]}})", more, end);
      const Answer answer = ask("PUT", path, body);
      EXPECT_EQ(answer.status, 400) << body;
      EXPECT_THAT(answer.body, HasSubstr(R"("field":"callback_headers")")) << body;
    }
  }
}

TEST_F(HttpTest, headers_of_a_job_come_back) {
  ask("PUT", "/v1/topics/t/jobs/a", R"({"body":1,"headers":{"traceparent":"00-1","Note":"\u00fc \"x\""}})");
  constexpr std::string_view kSeen = R"("headers":{"traceparent":"00-1","Note":"ü \"x\""})";
  EXPECT_THAT(ask("GET", "/v1/topics/t/jobs/a").body, HasSubstr(kSeen));
  EXPECT_THAT(ask("GET", "/v1/topics/t/jobs?state=ready").body, Not(HasSubstr("headers")));
  EXPECT_THAT(ask("GET", "/v1/topics/t/jobs?state=ready&bodies=true").body, HasSubstr(kSeen));
  EXPECT_THAT(ask("POST", "/v1/topics/t/pop", R"({"ack":"auto"})").body, HasSubstr(kSeen));
  ask("POST", "/v1/topics/t/jobs?id=raw&headers[tenant]=acme%20ltd&headers%5Bx.y%5D=", "text", "text/plain");
  EXPECT_THAT(ask("GET", "/v1/topics/t/jobs/raw").body,
              HasSubstr(R"("content_type":"text/plain","headers":{"tenant":"acme ltd","x.y":""})"));
  ask("PUT", "/v1/topics/t/jobs/raw", R"({"body":1})");
  EXPECT_THAT(ask("GET", "/v1/topics/t/jobs/raw").body, Not(HasSubstr("headers"))) << "replaced as a whole";
  ask("POST", "/v1/jobs",
      R"([{"topic":"b","id":"1","body":1,"headers":{"n":"1"}},{"topic":"b","id":"2","body":1},)"
      R"({"topic":"b","id":"3","body":1,"headers":null},{"topic":"b","id":"4","body":1,"headers":{}}])");
  EXPECT_THAT(ask("GET", "/v1/topics/b/jobs/1").body, HasSubstr(R"("headers":{"n":"1"})"));
  for (const std::string_view id : {"2", "3", "4"})
    EXPECT_THAT(ask("GET", fmt::format("/v1/topics/b/jobs/{}", id)).body, Not(HasSubstr("headers")));
}

TEST_F(HttpTest, bad_headers_are_named) {
  const auto field = [this](std::string_view headers) {
    return ask("POST", "/v1/topics/t/jobs", fmt::format(R"({{"body":1,"headers":{}}})", headers)).body;
  };
  EXPECT_THAT(field("7"), HasSubstr(R"("field":"headers")"));
  EXPECT_THAT(field(R"({"a":7})"), HasSubstr(R"("field":"headers.a")"));
  EXPECT_THAT(field(R"({"a":null})"), HasSubstr(R"("field":"headers.a")"));
  EXPECT_THAT(field(R"({"a":"1","a":"2"})"), HasSubstr(R"("field":"headers.a")"));
  EXPECT_THAT(field(R"({"a-b":"1","A_B":"2"})"), HasSubstr(R"("field":"headers.A_B")"));
  EXPECT_THAT(field(R"({"a":"x\r\nHost: y"})"), HasSubstr(R"("field":"headers.a")"));
  EXPECT_THAT(field(R"({"a":"\ud800"})"), HasSubstr(R"("field":"headers.a")"));
  EXPECT_THAT(field(R"({"a:b":"1"})"), HasSubstr(R"("field":"headers")"));
  EXPECT_THAT(field(R"({"Content-Length":"1"})"), HasSubstr(R"("field":"headers.Content-Length")"));
  EXPECT_THAT(ask("POST", "/v1/topics/t/jobs?headers=x", "b", "text/plain").body,
              HasSubstr("headers: in a query this is written as headers[NAME]=VALUE"));
  EXPECT_THAT(ask("POST", "/v1/topics/t/jobs?headers[a=x", "b", "text/plain").body,
              HasSubstr("headers[a: there is no"));
  EXPECT_THAT(ask("POST", "/v1/topics/t/jobs?headers[a]=1&headers[a]=2", "b", "text/plain").status, 400);
  EXPECT_THAT(ask("GET", "/v1/topics/t").body, HasSubstr(R"("ready":0)"));
}

TEST_F(HttpTest, a_batch_answers_for_each) {
  const Answer array = ask(
      "POST", "/v1/jobs",
      R"([{"topic":"a","id":"1","body":1},{"topic":"bad topic","body":1},{"topic":"a","what":1,"body":1},7])");
  EXPECT_EQ(array.status, 200);
  EXPECT_THAT(array.body,
              StartsWith(R"({"pushed":1,"failed":3,"results":[{"topic":"a","id":"1","state":"ready")"));
  EXPECT_THAT(array.body, HasSubstr(R"({"status":400,"code":"invalid","detail":"topic)"));
  EXPECT_THAT(array.body, HasSubstr(R"("field":"what","known":["topic","body","id",)"));
  EXPECT_THAT(array.body, HasSubstr("expected a JSON object, got a number"));
  const Answer lines = ask("POST", "/v1/jobs", "{\"topic\":\"b\",\"body\":1}\n{\"topic\":\"b\",\"body\":2}\n",
                           "application/x-ndjson");
  EXPECT_EQ(lines.status, 200);
  EXPECT_THAT(ask("GET", "/v1/topics/b").body, HasSubstr(R"("ready":2)"));
  EXPECT_EQ(ask("POST", "/v1/jobs", "{}").status, 400);
  EXPECT_EQ(ask("POST", "/v1/jobs", "{\"a\"", "application/x-ndjson").status, 400);
}

TEST_F(HttpTest, topics_settings_stats_forecast) {
  ask("POST", "/v1/topics/a/jobs", R"({"body":1,"delay":"1h"})");
  ask("POST", "/v1/topics/b/jobs", R"({"body":1})");
  EXPECT_THAT(ask("GET", "/v1/topics").body, StartsWith(R"({"topics":[{"topic":"a","counts":{"delayed":1)"));
  EXPECT_THAT(ask("GET", "/v1/topics?limit=1").body, HasSubstr(R"("cursor":"a")"));
  EXPECT_EQ(
      ask("PATCH", "/v1/topics/a",
          R"({"attempts":3,"backoff":["1s","2s"],"lease":"5s","keep_done":{"count":5},"rate":{"count":10,"per":"1s"}})")
          .status,
      200);
  const std::string topic = ask("GET", "/v1/topics/a").body;
  EXPECT_THAT(
      topic, HasSubstr(R"("attempts":3,"backoff":"1s,2s","lease":"5s","keep_done":{"time":"1h","count":5})"));
  EXPECT_THAT(topic, HasSubstr(R"("rate":"10/1s")"));
  EXPECT_EQ(ask("POST", "/v1/topics/b/pause").status, 200);
  EXPECT_EQ(ask("POST", "/v1/topics/b/pop").body, R"({"jobs":[]})");
  EXPECT_EQ(ask("POST", "/v1/topics/b/resume").status, 200);
  EXPECT_THAT(ask("GET", "/v1/forecast?bins=2&to=2023-11-15T00:13:20Z").body, HasSubstr(R"("bins":[0,1])"));
  EXPECT_THAT(ask("GET", "/v1/stats").body, HasSubstr(R"("pushed":2)"));
  EXPECT_EQ(ask("DELETE", "/v1/topics/b").body, R"({"jobs":1})");
  EXPECT_EQ(ask("GET", "/healthz").body, R"({"status":"ok","version":"9.9.9"})");
}

TEST_F(HttpTest, null_unsets_a_setting_and_an_empty_topic_is_forgotten) {
  ask("PATCH", "/v1/topics/*", R"({"lease":"7s"})");
  ask("PATCH", "/v1/topics/a", R"({"attempts":3,"lease":"5s","keep_done":{"count":5},"paused":true})");
  EXPECT_EQ(
      ask("PATCH", "/v1/topics/a", R"({"attempts":null,"lease":null,"keep_done":null,"priority":9})").status,
      200);
  EXPECT_EQ(queue.settings("a"), (Settings{.paused = true, .priority = 9}));
  EXPECT_THAT(ask("GET", "/v1/topics/a").body, HasSubstr(R"("lease":"7s")")) << "the default again";
  EXPECT_EQ(ask("PATCH", "/v1/topics/a", R"({"nonsense":null})").status, 400);
  EXPECT_EQ(ask("PATCH", "/v1/topics/*", R"({"lease":null})").status, 200);
  EXPECT_EQ(queue.settings("*"), Settings{});

  ask("POST", "/v1/topics/a/jobs", R"({"body":1})");
  EXPECT_EQ(ask("POST", "/v1/topics/a/forget").status, 409);
  ask("DELETE", "/v1/topics/a");
  EXPECT_THAT(ask("GET", "/v1/topics").body, HasSubstr(R"("topic":"a")")) << "it has settings";
  EXPECT_EQ(ask("POST", "/v1/topics/a/forget").body, R"({"result":"ok","existed":true})");
  EXPECT_EQ(ask("POST", "/v1/topics/a/forget").body, R"({"result":"ok","existed":false})");
  EXPECT_THAT(ask("GET", "/v1/topics").body, HasSubstr(R"("topics":[])"));
  EXPECT_THAT(ask("GET", "/v1/topics/a").body, HasSubstr(R"("pushed":0)")) << "and its figures begin anew";
}

TEST_F(HttpTest, a_server_that_stops_is_alive_and_not_ready) {
  EXPECT_EQ(ask("GET", "/readyz").body, R"({"status":"ok","version":"9.9.9"})");
  ask("POST", "/v1/topics/t/jobs", R"({"body":1})");
  ask("POST", "/v1/topics/t/pop");
  queue.stop(now, std::chrono::hours{1}, [](const Result<StopReport>&) {});
  const Answer ready = ask("GET", "/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_THAT(ready.body, HasSubstr(R"("code":"stopping")"));
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

TEST_F(HttpTest, a_pop_that_waits_holds_up_what_is_behind_it) {
  const std::string both =
      request("POST", "/v1/topics/t/pop", R"({"wait":"10s"})") + request("GET", "/healthz");
  EXPECT_EQ(say(both), "");
  const PushRequest job{.topic = "t", .body = "1"};
  queue.push(now, {&job, 1}, [](const Result<PushReport>&) {});
  settle();
  EXPECT_EQ(resumed, 1);
  const std::string replies = say("");
  EXPECT_THAT(replies, HasSubstr(R"("body":1)"));
  EXPECT_THAT(replies, HasSubstr(R"("status":"ok")"));
}

TEST_F(HttpTest, pipelined_requests_are_answered_in_order) {
  std::string all;
  for (int i = 0; i < 20; ++i) {
    all += request("POST", "/v1/topics/t/jobs", fmt::format(R"({{"id":"{}","body":1}})", i));
    all += request("GET", fmt::format("/v1/topics/t/jobs/{}", i));
  }
  const std::string replies = say(all);
  size_t place = 0;
  for (int i = 0; i < 20; ++i) {
    for (int twice = 0; twice < 2; ++twice) {
      place = replies.find(fmt::format("\"id\":\"{}\"", i), place);
      ASSERT_NE(place, std::string::npos) << i;
      ++place;
    }
  }
}

TEST_F(HttpTest, pipelined_requests_take_effect_in_order) {
  ask("POST", "/v1/topics/t/jobs", R"({"id":"old","delay":60,"body":1})");
  const std::string replies =
      say(request("DELETE", "/v1/topics/t") +
          request("POST", "/v1/topics/t/jobs", R"({"id":"new","delay":60,"body":1})"));
  EXPECT_THAT(replies, HasSubstr("201 Created"));
  EXPECT_EQ(ask("GET", "/v1/topics/t/jobs/new").status, 200);
  EXPECT_EQ(ask("GET", "/v1/topics/t/jobs/old").status, 404);
}

TEST_F(HttpTest, problems_name_the_field_and_store_nothing) {
  const std::tuple<std::string_view, std::string_view, std::string_view, int, std::string_view> cases[] = {
      {"POST", "/v1/topics/bad%20topic/jobs", R"({"body":1})", 400, "topic"},
      {"POST", "/v1/topics/t/jobs", R"({"body":1,"delay":"soon"})", 400, "\"field\":\"delay\""},
      {"POST", "/v1/topics/t/jobs", R"({"body":1,"delay":1,"at":1})", 400, "at"},
      {"POST", "/v1/topics/t/jobs", R"({"body":1,"priority":"x"})", 400, "\"field\":\"priority\""},
      {"POST", "/v1/topics/t/jobs", R"({"body":1,"whatever":1})", 400, "\"field\":\"whatever\""},
      {"POST", "/v1/topics/t/jobs", R"({"body":1,"id":5})", 400, "\"field\":\"id\""},
      {"POST", "/v1/topics/t/jobs", R"({"body":1,"id":"a","id":"b"})", 400, "given twice"},
      {"POST", "/v1/topics/t/jobs", R"({"body":1,"body":2})", 400, "given twice"},
      {"GET", "/v1/topics?limit=1&limit=2", "", 400, "given twice"},
      {"POST", "/v1/topics/t/jobs", R"({"body":1,"on_conflict":"x"})", 400, "\"field\":\"on_conflict\""},
      {"POST", "/v1/topics/t/jobs", R"({})", 400, "\"field\":\"body\""},
      {"POST", "/v1/topics/t/jobs", "{", 400, "not JSON"},
      {"POST", "/v1/topics/t/jobs", "[]", 400, "expected a JSON object"},
      {"PUT", "/v1/topics/t/jobs/a", R"({"body":1,"id":"b"})", 400, "\"field\":\"id\""},
      {"POST", "/v1/topics/t/pop", R"({"wait":"2h"})", 400, "\"field\":\"wait\""},
      {"POST", "/v1/topics/t/pop", "\n", 400, "not JSON"},
      {"POST", "/v1/topics/t/pop", R"({"ack":"never"})", 400, "\"field\":\"ack\""},
      {"POST", "/v1/pop", "{}", 400, "\"field\":\"topics\""},
      {"POST", "/v1/ack", "{}", 400, "\"field\":\"leases\""},
      {"POST", "/v1/ack", R"({"leases":[1]})", 400, "\"field\":\"leases\""},
      {"POST", "/v1/extend", R"({"leases":["t/x"],"lease":"25h"})", 400, "\"field\":\"lease\""},
      {"POST", "/v1/nack", R"({"leases":["t/x"],"delay":"37000d"})", 400, "\"field\":\"delay\""},
      {"POST", "/v1/nack", R"({"leases":["t/x"],"reason":"\u0007"})", 400, "\"field\":\"reason\""},
      {"GET", "/v1/topics/t/jobs", "", 400, "\"field\":\"state\""},
      {"GET", "/v1/topics/t/jobs?state=asleep", "", 400, "\"field\":\"state\""},
      {"GET", "/v1/topics/t/jobs?state=dead&limit=x", "", 400, "\"field\":\"limit\""},
      {"GET", "/v1/forecast?bins=0", "", 400, "bins"},
      {"PATCH", "/v1/topics/t", R"({"keep_done":5})", 400, "\"field\":\"keep_done\""},
      {"PATCH", "/v1/topics/t", R"({"lease":"1ms"})", 400, "lease"},
      {"GET", "/v1/topics/t/jobs/none", "", 404, "not_found"},
      {"GET", "/nothing", "", 404, "not_found"},
      {"GET", "/%zz", "", 400, "escape"},
      {"DELETE", "/v1/ack", "", 405, "POST"},
      {"GET", "/v1/topics?lim%afit=3", "", 400, "lim?it"},
      {"GET", "/v1/topics?limit=3&limit=4", "", 400, "\"field\":\"limit\""},
      {"GET", "/v1/topics?limit=0", "", 400, "\"field\":\"limit\""},
      {"GET", "/v1/stats?x=1", "", 400, "\"field\":\"x\",\"known\":[]"},
      {"GET", "/v1/forecast?from=2&to=1", "", 400, "\"field\":\"to\""},
      {"POST", "/v1/topics/t/jobs?delay=5", R"({"body":1})", 400, "belong into that body"},
      {"POST", "/v1/topics/t/jobs", R"({"bdoy":1})", 400, "did you mean body?"},
      {"POST", "/v1/topics/t/jobs", R"({"body":1,"dealy":1})", 400,
       "\"field\":\"dealy\",\"known\":[\"body\","},
      {"POST", "/v1/topics/t/jobs", R"({"body":1,"priority":1.5})", 400, "\"field\":\"priority\""},
      {"POST", "/v1/topics/t/pause", R"({"for":"1h"})", 400, "\"field\":\"for\",\"known\":[]"},
      {"DELETE", "/v1/topics/t?state=dead", "", 400, "\"field\":\"state\",\"known\":[]"},
      {"DELETE", "/v1/topics/t/jobs/a?force=1", "", 400, "\"field\":\"force\""},
      {"PATCH", "/v1/topics/t", R"({"keep_done":{"time":"soon"}})", 400, "\"field\":\"keep_done.time\""},
      {"PATCH", "/v1/topics/t", R"({"keep_dead":{"time":"4000d"}})", 400, "\"field\":\"keep_dead.time\""},
      {"PATCH", "/v1/topics/t", R"({"keep_dead":{"tiem":1}})", 400, "\"known\":[\"time\",\"count\"]"},
      {"PATCH", "/v1/topics/t", R"({"rate":{"count":1,"per":"2d"}})", 400, "\"field\":\"rate.per\""},
      {"PATCH", "/v1/topics/t", R"({"rate":{"count":4000000000}})", 400, "\"field\":\"rate.count\""},
      {"PATCH", "/v1/topics/t", R"({"rate":{"count":0,"per":"2d"}})", 400, "\"field\":\"rate.per\""},
      {"PATCH", "/v1/topics/t", R"({"rate":"100"})", 400, "\"field\":\"rate\""},
      {"PATCH", "/v1/topics/t", R"({"rate":"1/2d"})", 400, "\"field\":\"rate.per\""},
      {"PATCH", "/v1/topics/t", R"({"rate":["1/1s"]})", 400, "expected a string"},
      {"PATCH", "/v1/topics/t", R"({"backoff":["1s,2s"]})", 400, "\"field\":\"backoff\""},
      {"POST", "/v1/pop", R"({"topics":["a","b c"]})", 400, "\"field\":\"topics\""},
      {"POST", "/v1/topics/b%20c/pop", "", 400, "\"field\":\"topic\""},
      {"POST", "/v1/topics/t/redrive", R"({"ids":[""]})", 400, "\"field\":\"ids\""},
  };
  for (const auto& [method, target, body, status, word] : cases) {
    const Answer response = ask(method, target, body);
    EXPECT_EQ(response.status, status) << method << " " << target << " " << body << "\n" << response.body;
    EXPECT_THAT(response.head, HasSubstr("application/problem+json")) << target;
    EXPECT_THAT(response.body, HasSubstr(std::string(word))) << target << " " << body;
  }
  EXPECT_THAT(ask("GET", "/v1/stats").body, HasSubstr("\"jobs\":0"));
}

TEST_F(HttpTest, a_page_from_elsewhere_cannot_ask) {
  const auto ask_from = [this](std::string_view origin) {
    return parse(say(fmt::format("POST /v1/topics/t/pop HTTP/1.1\r\nHost: localhost:9277\r\nOrigin: {}\r\n"
                                 "Content-Length: 0\r\n\r\n",
                                 origin)))
        .status;
  };
  EXPECT_EQ(ask_from("http://localhost:9277"), 200);
  EXPECT_EQ(ask_from("http://evil.example"), 403);
  EXPECT_EQ(ask_from("null"), 403);
}

TEST_F(HttpTest, the_connection_closes_when_it_should) {
  EXPECT_THAT(say("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(conversation->is_over());
  conversation->hang_up();
  conversation = std::make_shared<Conversation>(host, *this);
  input.clear();
  EXPECT_THAT(say("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_TRUE(conversation->is_over());
}

TEST_F(HttpTest, who_hangs_up_while_waiting_is_handed_nothing) {
  say(request("POST", "/v1/topics/t/pop", R"({"wait":"10s"})"));
  conversation->hang_up();
  conversation = std::make_shared<Conversation>(host, *this);
  input.clear();
  ask("POST", "/v1/topics/t/jobs", R"({"body":1})");
  EXPECT_THAT(ask("POST", "/v1/topics/t/pop").body, HasSubstr("\"body\":1"));
}

TEST_F(HttpTest, numbers_count_however_they_are_written) {
  EXPECT_EQ(ask("POST", "/v1/topics/t/jobs", R"({"id":"a","body":1,"priority":2.0e1,"delay":1.5e2})").status,
            201);
  EXPECT_THAT(ask("GET", "/v1/topics/t/jobs/a").body, HasSubstr(R"("priority":20)"));
  EXPECT_THAT(ask("GET", "/v1/topics/t/jobs/a").body, HasSubstr(R"("due_at":"2023-11-14T22:15:50.000Z")"));
}

TEST_F(HttpTest, head_is_get_without_the_body) {
  const std::string got = say("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string both =
      say("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\nHEAD /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
          "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string head = got.substr(0, got.find("\r\n\r\n") + 4);
  EXPECT_THAT(both, StartsWith(head + "HTTP/1.1 404 "));
  EXPECT_TRUE(both.ends_with("\r\n\r\n" + got)) << both;
  EXPECT_THAT(ask("PUT", "/healthz").head, HasSubstr("Allow: GET, HEAD"));
}

TEST_F(HttpTest, what_is_wrong_behind_a_head_is_told_in_full) {
  const std::string both = say("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\nGARBAGE\x01\r\n\r\n");
  const std::string last = both.substr(both.rfind("HTTP/1.1 "));
  EXPECT_THAT(last, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(last, HasSubstr(R"("code":"invalid")"));
  EXPECT_TRUE(conversation->is_over());
}

TEST_F(HttpTest, a_request_whose_end_is_in_doubt_is_refused_and_nothing_behind_it_is_read) {
  const std::string behind = request("POST", "/v1/topics/t/jobs", R"({"body":1})");
  for (const std::string_view fields :
       {"Host: x\r\nTransfer-Encoding: xchunked\r\n", "Host: x\r\nTransfer-Encoding: identity\r\n",
        "Host: x\r\nTransfer-Encoding: gzip, chunked\r\n",
        "Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n", "", "Host: x\r\nHost: y\r\n"}) {
    const std::string said = say(fmt::format("POST /v1/topics/t/jobs HTTP/1.1\r\n{}\r\n{}", fields, behind));
    EXPECT_THAT(said,
                testing::AnyOf(StartsWith("HTTP/1.1 400 "), StartsWith("HTTP/1.1 501 Not Implemented")));
    EXPECT_THAT(said, HasSubstr("Connection: close\r\n"));
    EXPECT_THAT(said, HasSubstr(R"("code":"invalid")"));
    EXPECT_EQ(said.find("}HTTP/1.1 "), std::string::npos) << said;
    EXPECT_TRUE(conversation->is_over());
    conversation->hang_up();
    conversation = std::make_shared<Conversation>(host, *this);
    input.clear();
  }
  EXPECT_EQ(engine.usage().jobs, 0U);
}

TEST_F(HttpTest, what_everybody_may_ask_keeps_no_body) {
  const std::string head = "GET /healthz HTTP/1.1\r\nHost: x\r\n";
  EXPECT_EQ(parse(say(head + "Content-Length: 60000\r\n\r\n" + std::string(60'000, 'x'))).status, 200);
  EXPECT_EQ(parse(say(head + "Content-Length: 100000\r\n\r\n")).status, 413);
  conversation->hang_up();
  conversation = std::make_shared<Conversation>(host, *this);
  input.clear();
  say(head + "Transfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "1000\r\n" + std::string(0x1000, 'x') + "\r\n";
  std::string said;
  for (int i = 0; i < 20 && said.empty(); ++i) said = say(chunk);
  EXPECT_EQ(parse(said).status, 413);
}

TEST_F(HttpTest, a_header_that_is_too_large_is_told_as_such) {
  const Answer response = parse(say("GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"));
  EXPECT_EQ(response.status, 431);
  EXPECT_THAT(response.body, HasSubstr(R"("status":431,"code":"too_large")"));
}

TEST_F(HttpTest, put_takes_any_bytes_too) {
  EXPECT_EQ(ask("PUT", "/v1/topics/t/jobs/a?delay=60", "{not json", "Text/Plain; charset=utf-8").status, 201);
  EXPECT_EQ(ask("PUT", "/v1/topics/t/jobs/a", R"({"body":1,"on_conflict":"reject"})").status, 409);
  EXPECT_THAT(ask("GET", "/v1/topics/t/jobs/a").body, HasSubstr(R"("body":"{not json")"));
  EXPECT_EQ(ask("PUT", "/v1/topics/t/jobs/a?id=b", "x", "text/plain").status, 400);
}

TEST_F(HttpTest, who_is_refused_for_now_hears_when_to_come_back) {
  QueueConfig config;
  config.limits.waiters = 0;
  Queue full(engine, config, 2);
  full.start(now, [](const Status&) {});
  Endpoint other{full, [this] { return now; }, "9.9.9"};
  const auto with_it = std::make_shared<Conversation>(other, *this);
  do {
    full.tick(now);
  } while (full.poll(now));
  with_it->read(request("POST", "/v1/topics/t/pop"));
  full.poll(now);
  const Answer response = parse(with_it->output());
  EXPECT_EQ(response.status, 429);
  EXPECT_THAT(response.head, HasSubstr("Retry-After: "));
  EXPECT_THAT(response.body, HasSubstr(R"("retry_after_ms":)"));
  with_it->hang_up();
}

}  // namespace
}  // namespace delayq::http
