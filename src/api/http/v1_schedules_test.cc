// Schedules over HTTP.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/support/http_client.h"
#include "tests/support/tokens.h"

namespace delayq::http {
namespace {

using support::kOtherHash;
using support::kSecretHash;
using support::token;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Answer = HttpClient::Answer;

/// It is 2023-11-14T22:13:20Z.
class SchedulesHttpTest : public testing::Test, public HttpClient {
 protected:
  void expect_nothing_stored() {
    EXPECT_EQ(ask("GET", "/v1/schedules").body, R"({"schedules":[],"cursor":""})");
  }

  void refused(std::string_view target, std::string_view body, int status, std::string_view field) {
    const Answer answer = ask("PUT", target, body);
    EXPECT_EQ(answer.status, status) << target << " " << body << answer.body;
    EXPECT_THAT(answer.head, HasSubstr("application/problem+json"));
    EXPECT_EQ(member(answer.body, "field"), field) << answer.body;
    expect_nothing_stored();
  }
};

constexpr std::string_view kNightly = "/v1/schedules/nightly";
constexpr std::string_view kShanghai =
    R"({"cron":"0 2 * * *","zone":"Asia/Shanghai","topic":"report","body":{"kind": "daily"}})";

TEST_F(SchedulesHttpTest, a_schedule_is_set_once_and_answered_as_it_is_read) {
  const Answer first = ask("PUT", kNightly, kShanghai);
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(first.body,
            R"({"name":"nightly","state":"active","next_at":"2023-11-15T18:00:00.000Z",)"
            R"("next_local":"2023-11-16T02:00:00+08:00","cron":"0 2 * * *","zone":"Asia/Shanghai",)"
            R"("overlap":"allow","missed":"one","topic":"report","body":{"kind": "daily"},)"
            R"("created_at":"2023-11-14T22:13:20.000Z","occurrences":{"made":0,"skipped":0,"missed":0}})");
  const Answer second = ask("PUT", kNightly, kShanghai);
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.body, first.body);
  EXPECT_EQ(ask("GET", kNightly).body, first.body);
}

TEST_F(SchedulesHttpTest, everything_that_a_push_takes_is_kept_and_becomes_the_job) {
  const Answer set = ask(
      "PUT", "/v1/schedules/all",
      R"({"every":"10s","topic":"t","body":"x","start":"2023-11-14T22:14:00Z","end":"2030-01-01T00:00:00Z",)"
      R"("runs":2,"jitter":"1ms","overlap":"skip","missed":"all","group":"g","priority":7,"attempts":3,)"
      R"("backoff":["10s","1m"],"lease":"5m","callback":"http://127.0.0.1/x","callback_method":"PUT",)"
      R"("callback_format":"cloudevents"})");
  EXPECT_EQ(set.status, 201) << set.body;
  EXPECT_THAT(
      set.body,
      HasSubstr(
          R"("every":"10s","start":"2023-11-14T22:14:00.000Z","end":"2030-01-01T00:00:00.000Z",)"
          R"("runs":2,"jitter":"1ms","overlap":"skip","missed":"all","topic":"t","body":"x",)"
          R"("group":"g","priority":7,"attempts":3,"backoff":"10s,1m","lease":"5m",)"
          R"("callback":"http://127.0.0.1/x","callback_method":"PUT","callback_format":"cloudevents")"));
  pass(Millis{40'000});
  const Answer job = ask("GET", "/v1/topics/t/jobs/all@2023-11-14T22:14:00Z");
  EXPECT_THAT(job.body, AllOf(HasSubstr(R"("priority":7,"group":"g")"), HasSubstr(R"("body":"x")"),
                              HasSubstr(R"("callback":"http://127.0.0.1/x")")));
  EXPECT_THAT(ask("GET", "/v1/schedules/all").body,
              HasSubstr(R"("occurrences":{"made":1,"skipped":0,"missed":0},)"
                        R"("previous":{"topic":"t","id":"all@2023-11-14T22:14:00Z",)"
                        R"("at":"2023-11-14T22:14:00.000Z"}})"));
}

TEST_F(SchedulesHttpTest, a_body_of_another_type_comes_as_in_a_push) {
  const Answer text = ask("PUT", "/v1/schedules/text?every=1h&topic=t&attempts=2", "a b", "text/plain");
  EXPECT_EQ(text.status, 201) << text.body;
  EXPECT_THAT(text.body, HasSubstr(R"("body":"a b","content_type":"text/plain","attempts":2)"));
  const Answer bytes = ask("PUT", "/v1/schedules/bytes?every=1h&topic=t", "\xff", "image/png");
  EXPECT_THAT(bytes.body, HasSubstr(R"("body_base64":"/w==","content_type":"image/png")"));
  EXPECT_EQ(member(ask("PUT", "/v1/schedules/x?topic=t", R"({"body":1})").body, "field"), "topic");
}

TEST_F(SchedulesHttpTest, pause_resume_run_and_remove) {
  ask("PUT", kNightly, kShanghai);
  EXPECT_THAT(ask("POST", "/v1/schedules/nightly/pause").body,
              AllOf(HasSubstr(R"("state":"paused")"), Not(HasSubstr("next_at"))));
  const Answer run = ask("POST", "/v1/schedules/nightly/run");
  EXPECT_EQ(run.status, 201);
  EXPECT_THAT(run.body, AllOf(HasSubstr(R"({"topic":"report","id":"nightly#)"),
                              HasSubstr(R"("state":"ready","due_at":"2023-11-14T22:13:20.000Z"})")));
  EXPECT_THAT(ask("POST", "/v1/topics/report/pop").body, HasSubstr(R"("body":{"kind": "daily"})"));
  EXPECT_THAT(ask("POST", "/v1/schedules/nightly/resume").body,
              AllOf(HasSubstr(R"("state":"active","next_at")"), HasSubstr(R"("made":0)")));
  EXPECT_EQ(ask("DELETE", kNightly).body, R"({"result":"ok"})");
  EXPECT_EQ(ask("DELETE", kNightly).status, 404);
  for (const char* verb : {"pause", "resume", "run"})
    EXPECT_EQ(ask("POST", fmt::format("/v1/schedules/nightly/{}", verb)).status, 404) << verb;
  EXPECT_EQ(ask("GET", kNightly).status, 404);
  EXPECT_EQ(ask("POST", "/v1/schedules/nightly/run", R"({"x":1})").status, 400);
}

TEST_F(SchedulesHttpTest, requests_in_one_go_take_effect_in_their_order) {
  const std::string answers =
      say(request("PUT", kNightly, kShanghai) + request("POST", "/v1/schedules/nightly/pause") +
          request("DELETE", kNightly) + request("PUT", kNightly, kShanghai) + request("GET", kNightly));
  EXPECT_THAT(answers, Not(HasSubstr("HTTP/1.1 4")));
  EXPECT_EQ(parse(answers.substr(answers.rfind("HTTP/1.1"))).body, ask("GET", kNightly).body);
  EXPECT_THAT(ask("GET", kNightly).body, HasSubstr(R"("state":"active")"));
}

TEST_F(SchedulesHttpTest, a_list_has_pages_and_bodies_only_on_request) {
  for (const char* name : {"a", "b", "c"}) ask("PUT", fmt::format("/v1/schedules/{}", name), kShanghai);
  const Answer page = ask("GET", "/v1/schedules?limit=2");
  EXPECT_THAT(page.body, AllOf(StartsWith(R"({"schedules":[{"name":"a")"), Not(HasSubstr("daily")),
                               HasSubstr(R"("cursor":"b"})")));
  EXPECT_THAT(ask("GET", "/v1/schedules?limit=2&cursor=b").body,
              AllOf(StartsWith(R"({"schedules":[{"name":"c")"), HasSubstr(R"("cursor":""})")));
  EXPECT_THAT(ask("GET", "/v1/schedules?bodies=true").body, HasSubstr("daily"));
  for (const char* query : {"limit=0", "limit=1001", "limit=x", "after=b", "bodies=1"})
    EXPECT_EQ(ask("GET", fmt::format("/v1/schedules?{}", query)).status, 400) << query;
}

TEST_F(SchedulesHttpTest, a_list_of_large_schedules_is_cut_by_bytes) {
  const std::string large =
      fmt::format(R"({{"every":"1h","topic":"t","body":"{}"}})", std::string(1'000'000, 'x'));
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(ask("PUT", fmt::format("/v1/schedules/s{:02}", i), large).status, 201);
  size_t seen = 0;
  std::string cursor;
  do {
    const Answer page = ask("GET", fmt::format("/v1/schedules?bodies=true&limit=1000&cursor={}", cursor));
    EXPECT_LE(page.body.size(), Limits::kPopBytes + 2'000'000);
    for (size_t at = 0; (at = page.body.find(R"("name":)", at)) != std::string::npos; ++at) ++seen;
    cursor = member(page.body, "cursor");
  } while (!cursor.empty());
  EXPECT_EQ(seen, 20u);
}

TEST_F(SchedulesHttpTest, names) {
  const std::string longest(200, 'n');
  for (const std::string& name : {longest, std::string("%E6%97%A5%E6%8A%A5"), std::string("a:b.c_d-e")})
    EXPECT_EQ(ask("PUT", "/v1/schedules/" + name, kShanghai).status, 201) << name;
  EXPECT_THAT(ask("GET", "/v1/schedules/%E6%97%A5%E6%8A%A5").body, HasSubstr("\"name\":\"日报\""));
  for (const std::string& name : {longest + "n", std::string("a%2Fb"), std::string("a%20b"),
                                  std::string("%ff"), std::string("%00"), std::string("a%40b")}) {
    for (const char* method : {"PUT", "GET", "DELETE"}) {
      const Answer answer = ask(method, "/v1/schedules/" + name, *method == 'P' ? kShanghai : "");
      EXPECT_EQ(answer.status, 400) << method << " " << name;
      EXPECT_EQ(member(answer.body, "field"), "name") << method << " " << name;
    }
    EXPECT_EQ(ask("POST", "/v1/schedules/" + name + "/run").status, 400) << name;
  }
  EXPECT_EQ(ask("POST", "/v1/schedules//run").status, 400);
  EXPECT_EQ(ask("PUT", "/v1/schedules/", kShanghai).status, 405) << "this is the path of the list";
}

TEST_F(SchedulesHttpTest, preview_is_no_name) {
  const Answer put = ask("PUT", "/v1/schedules/preview", kShanghai);
  EXPECT_EQ(put.status, 405);
  EXPECT_THAT(put.head, testing::EndsWith("Allow: GET, HEAD"));
  EXPECT_EQ(ask("DELETE", "/v1/schedules/preview").status, 405);
  EXPECT_EQ(ask("POST", "/v1/schedules/preview/run").status, 400);
  EXPECT_EQ(ask("GET", "/v1/schedules/preview").status, 400) << "it has no rule";
  expect_nothing_stored();
}

TEST_F(SchedulesHttpTest, a_preview_shows_both_times_and_stores_nothing) {
  EXPECT_EQ(
      ask("GET", "/v1/schedules/preview?cron=30+2+*+*+*&zone=Europe/Berlin&from=2026-03-28T00:00:00Z&count=2")
          .body,
      R"({"occurrences":[{"at":"2026-03-28T01:30:00.000Z","local":"2026-03-28T02:30:00+01:00"},)"
      R"({"at":"2026-03-29T01:00:00.000Z","local":"2026-03-29T03:00:00+02:00"}]})");
  EXPECT_THAT(
      ask("GET", "/v1/schedules/preview?every=1h&start=2023-11-15T00:00:00Z").body,
      StartsWith(R"({"occurrences":[{"at":"2023-11-15T00:00:00.000Z","local":"2023-11-15T00:00:00+00:00"})"));
  EXPECT_EQ(ask("GET", "/v1/schedules/preview?every=1h&count=1000").status, 200);
  struct Wrong {
    std::string_view query;
    std::string_view field;
  };
  for (const Wrong& wrong :
       {Wrong{"every=1h&count=100000", "count"}, Wrong{"every=1h&count=0", "count"},
        Wrong{"every=1h&count=99999999999999999999", "count"}, Wrong{"every=1s", "every"},
        Wrong{"every=x", "every"}, Wrong{"cron=0+0+30+2+*", "cron"}, Wrong{"cron=", "cron"},
        Wrong{"cron=@daily&zone=", "zone"}, Wrong{"cron=@daily&zone=Mars/Base", "zone"},
        Wrong{"cron=@daily&zone=../../etc/passwd", "zone"}, Wrong{"cron=@daily&every=1h", "every"},
        Wrong{"every=1h&zone=UTC", "zone"}, Wrong{"cron=@daily&from=x", "from"},
        Wrong{"cron=@daily&topic=t", "topic"}, Wrong{"cron=@daily&start=2300-01-01T00:00:00Z", "start"}}) {
    const Answer answer = ask("GET", fmt::format("/v1/schedules/preview?{}", wrong.query));
    EXPECT_EQ(answer.status, 400) << wrong.query;
    EXPECT_EQ(member(answer.body, "field"), wrong.field) << wrong.query << answer.body;
  }
  expect_nothing_stored();
}

TEST_F(SchedulesHttpTest, a_refusal_names_the_field_and_stores_nothing) {
  struct Wrong {
    std::string_view members;
    std::string_view field;
  };
  for (
      const Wrong& wrong : {
          Wrong{R"("every":"1h","topic":"t")", "body"},
          Wrong{R"("every":"1h","body":1)", "topic"},
          Wrong{R"("every":"1h","topic":"a b","body":1)", "topic"},
          Wrong{R"("topic":"t","body":1)", "cron"},
          Wrong{R"("cron":"@daily","every":"1h","topic":"t","body":1)", "every"},
          Wrong{R"("cron":"0 0 30 2 *","topic":"t","body":1)", "cron"},
          Wrong{R"("cron":"61 * * * *","topic":"t","body":1)", "cron"},
          Wrong{R"("cron":7,"topic":"t","body":1)", "cron"},
          Wrong{R"("cron":"","topic":"t","body":1)", "cron"},
          Wrong{R"("cron":"@daily","zone":"Mars/Base","topic":"t","body":1)", "zone"},
          Wrong{R"("every":"1h","zone":"UTC","topic":"t","body":1)", "zone"},
          Wrong{R"("every":"9s","topic":"t","body":1)", "every"},
          Wrong{R"("every":"soon","topic":"t","body":1)", "every"},
          Wrong{
              R"("every":"1h","start":"2030-01-02T00:00:00Z","end":"2030-01-01T00:00:00Z","topic":"t","body":1)",
              "end"},
          Wrong{R"("every":"1h","start":"1950-01-01T00:00:00Z","topic":"t","body":1)", "start"},
          Wrong{R"("every":"1h","end":"2300-01-01T00:00:00Z","topic":"t","body":1)", "end"},
          Wrong{R"("every":"1h","runs":0,"topic":"t","body":1)", "runs"},
          Wrong{R"("every":"1h","runs":-1,"topic":"t","body":1)", "runs"},
          Wrong{R"("every":"1h","jitter":"25h","topic":"t","body":1)", "jitter"},
          Wrong{R"("every":"1h","overlap":"never","topic":"t","body":1)", "overlap"},
          Wrong{R"("every":"1h","missed":"two","topic":"t","body":1)", "missed"},
          Wrong{R"("every":"1h","topic":"t","body":1,"group":"")", "group"},
          Wrong{R"("every":"1h","topic":"t","body":1,"priority":-1)", "priority"},
          Wrong{R"("every":"1h","topic":"t","body":1,"attempts":1000001)", "attempts"},
          Wrong{R"("every":"1h","topic":"t","body":1,"lease":"1ms")", "lease"},
          Wrong{R"("every":"1h","topic":"t","body":1,"callback":"ftp://x")", "callback"},
          Wrong{R"("every":"1h","topic":"t","body":1,"callback_method":"GET")", "callback_method"},
          Wrong{R"("every":"1h","topic":"t","body":1,"callback_format":"x")", "callback_format"},
          Wrong{R"("every":"1h","topic":"t","body":1,"delay":"1s")", "delay"},
          Wrong{R"("every":"1h","topic":"t","body":1,"id":"x")", "id"},
          Wrong{R"("every":"1h","topic":"t","body":1,"crom":"x")", "crom"},
          Wrong{R"("every":"1h","every":"2h","topic":"t","body":1)", "every"},
      }) {
    refused(kNightly, fmt::format("{{{}}}", wrong.members), 400, wrong.field);
  }
  refused(kNightly,
          fmt::format(R"({{"every":"1h","topic":"t","body":"{}"}})", std::string(Limits{}.body_bytes, 'x')),
          413, "body");
  EXPECT_EQ(ask("PUT", kNightly, "[]").status, 400);
  EXPECT_EQ(ask("PUT", kNightly, "").status, 400);
  expect_nothing_stored();
}

// ---- tokens

class SchedulesAccessTest : public SchedulesHttpTest {
 protected:
  SchedulesAccessTest() { allow(only(Scope::kSchedule)); }

  void allow(Scopes scopes) {
    host.front->access.replace({token("shop", kSecretHash, scopes, {"order", "order.*"}),
                                token("boss", kOtherHash, only(Scope::kAdmin), {"*"})});
  }
  Answer shop(std::string_view method, std::string_view target, std::string_view body = {}) {
    return ask_as("secret", method, target, body);
  }
  Answer boss(std::string_view method, std::string_view target, std::string_view body = {}) {
    return ask_as("other", method, target, body);
  }
  static std::string hourly(std::string_view topic) {
    return fmt::format(R"({{"every":"1h","topic":"{}","body":1}})", topic);
  }
};

TEST_F(SchedulesAccessTest, a_token_sees_and_changes_schedules_of_its_topics_alone) {
  ASSERT_EQ(boss("PUT", "/v1/schedules/bills", hourly("bill")).status, 201);
  ASSERT_EQ(shop("PUT", "/v1/schedules/orders", hourly("order")).status, 201);
  const std::string before = boss("GET", "/v1/schedules/bills").body;
  const Answer unknown = shop("GET", "/v1/schedules/none");
  EXPECT_EQ(shop("GET", "/v1/schedules/bills").body, unknown.body) << "it does not learn that there is one";
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(shop("DELETE", "/v1/schedules/bills").status, 404);
  for (const char* verb : {"pause", "resume", "run"})
    EXPECT_EQ(shop("POST", fmt::format("/v1/schedules/bills/{}", verb)).status, 404) << verb;
  EXPECT_THAT(shop("GET", "/v1/schedules").body, AllOf(HasSubstr("orders"), Not(HasSubstr("bill"))));
  EXPECT_EQ(shop("PUT", "/v1/schedules/bills", hourly("bill")).status, 403);
  EXPECT_EQ(shop("PUT", "/v1/schedules/bills", hourly("order")).status, 409) << "the name is taken";
  EXPECT_EQ(shop("PUT", "/v1/schedules/orders", hourly("bill")).status, 403) << "it would move it";
  EXPECT_THAT(shop("GET", "/v1/schedules/orders").body, HasSubstr(R"("topic":"order")"));
  EXPECT_EQ(shop("PUT", "/v1/schedules/orders", hourly("order.paid")).status, 200);
  EXPECT_EQ(boss("GET", "/v1/schedules/bills").body, before);
}

TEST_F(SchedulesAccessTest, a_cursor_names_no_schedule_of_others) {
  for (const char* name : {"a", "b", "x", "z"})
    boss("PUT", fmt::format("/v1/schedules/{}", name), hourly("bill"));
  for (const char* name : {"c", "y"}) shop("PUT", fmt::format("/v1/schedules/{}", name), hourly("order"));
  const Answer first = shop("GET", "/v1/schedules?limit=1");
  EXPECT_THAT(first.body, AllOf(HasSubstr(R"("name":"c")"), HasSubstr(R"("cursor":"c")")));
  const Answer second = shop("GET", "/v1/schedules?limit=1&cursor=c");
  EXPECT_THAT(second.body, AllOf(HasSubstr(R"("name":"y")"), HasSubstr(R"("cursor":"")")));
  EXPECT_EQ(shop("GET", "/v1/schedules?limit=1&cursor=y").body, R"({"schedules":[],"cursor":""})");
}

TEST_F(SchedulesAccessTest, each_scope_allows_its_part) {
  for (const Scope scope : {Scope::kPush, Scope::kConsume, Scope::kRead, Scope::kSchedule, Scope::kAdmin}) {
    allow(only(scope));
    const bool may_set = scope == Scope::kSchedule || scope == Scope::kAdmin;
    const bool may_read = may_set || scope == Scope::kRead;
    const auto name = kScopeNames[static_cast<size_t>(scope)];
    EXPECT_EQ(shop("PUT", "/v1/schedules/s", hourly("order")).status != 403, may_set) << name;
    boss("PUT", "/v1/schedules/s", hourly("order"));
    for (const char* verb : {"pause", "resume", "run"}) {
      EXPECT_EQ(shop("POST", fmt::format("/v1/schedules/s/{}", verb)).status != 403, may_set) << name;
    }
    EXPECT_EQ(shop("GET", "/v1/schedules/s").status, may_read ? 200 : 403) << name;
    EXPECT_EQ(shop("GET", "/v1/schedules").status, may_read ? 200 : 403) << name;
    EXPECT_EQ(shop("GET", "/v1/schedules/preview?every=1h").status, may_read ? 200 : 403) << name;
    EXPECT_EQ(shop("DELETE", "/v1/schedules/s").status, may_set ? 200 : 403) << name;
    pass(Millis{1});  // two runs at the same moment would be the same job
  }
  allow(only(Scope::kSchedule));
  EXPECT_EQ(shop("POST", "/v1/topics/order/jobs", R"({"body":1})").status, 403);
  EXPECT_EQ(shop("POST", "/v1/topics/order/pop").status, 403);
  EXPECT_EQ(ask("GET", "/v1/schedules").status, 401);
}

// ---- figures

TEST_F(SchedulesHttpTest, metrics_and_totals_count_occurrences) {
  ask("PUT", "/v1/schedules/a", R"({"every":"10s","topic":"t","body":1,"overlap":"skip"})");
  pass(Millis{10'000});
  pass(Millis{10'000});
  ask("DELETE", "/v1/topics/t");
  pass(Millis{35'000});
  const std::string metrics = ask("GET", "/metrics").body;
  for (const std::string_view line :
       {"delayq_schedules 1\n", "delayq_schedule_occurrences_total{outcome=\"made\"} 2\n",
        "delayq_schedule_occurrences_total{outcome=\"skipped\"} 1\n",
        "delayq_schedule_occurrences_total{outcome=\"missed\"} 2\n", "delayq_schedule_refusals_total 0\n",
        "delayq_schedule_lateness_seconds_count 2\n"})
    EXPECT_THAT(metrics, HasSubstr(line));
  EXPECT_THAT(
      ask("GET", "/v1/stats").body,
      HasSubstr(
          R"("schedules":1,"occurrences":{"made":2,"skipped":1,"missed":2,"refused":0,"lateness_ms":)"));
}

TEST_F(SchedulesHttpTest, events_tell_of_occurrences) {
  ask("PUT", "/v1/schedules/a", R"({"every":"10s","topic":"t","body":1})");
  say(request("GET", "/v1/events?interval=1s"));
  const auto after = [&](Millis time) {
    pass(time);
    host.events.tick(now);
    settle();
    return say("");
  };
  EXPECT_THAT(after(Millis{0}), HasSubstr(R"("schedules":1,"occurrences":{"made":0)"));
  EXPECT_EQ(after(Millis{1'000}), "");
  EXPECT_THAT(after(Millis{9'000}), HasSubstr(R"("schedules":1,"occurrences":{"made":1)"));
}

TEST_F(SchedulesHttpTest, a_forecast_counts_occurrences_apart_from_jobs) {
  ask("PUT", "/v1/schedules/a", R"({"every":"1h","topic":"t","body":1})");
  ask("POST", "/v1/topics/t/jobs", R"({"body":1,"delay":"30m"})");
  EXPECT_THAT(ask("GET", "/v1/forecast?bins=2&to=2023-11-15T02:13:20Z").body,
              HasSubstr(R"("bins":[1,0],"scheduled":[1,2],"scheduled_complete":true})"));
}

}  // namespace
}  // namespace delayq::http
