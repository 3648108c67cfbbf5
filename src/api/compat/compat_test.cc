// What holds for all three: they share their jobs with everybody, their port with HTTP v1, and its rules.
#include "api/compat/compat.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include <gmock/gmock.h>

#include "tests/support/compat_client.h"
#include "tests/support/tokens.h"

namespace delayq::compat {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Way {
  const char* add;  ///< a path, and what to send there; "ID" stands for the job's id
  const char* added;
  const char* look;  ///< method, path and body
  const char* look_body;
  const char* remove;
  const char* remove_body;
};

class CompatTest : public testing::Test, public CompatClient {
 protected:
  /// Asks for "METHOD path" with ID replaced.
  Answer ask_for(std::string_view what, std::string_view body, std::string_view id) {
    const auto filled = [&](std::string_view text) {
      std::string out(text);
      for (size_t at = out.find("ID"); at != std::string::npos; at = out.find("ID")) out.replace(at, 2, id);
      return out;
    };
    const std::string call = filled(what);
    const size_t space = call.find(' ');
    return ask(call.substr(0, space), call.substr(space + 1), filled(body));
  }
  uint64_t waiting() {
    uint64_t count = 0;
    queue.stats(now, "t", [&](const Result<TopicStats>& stats) {
      count = stats->counts.of(JobState::kDelayed) + stats->counts.of(JobState::kReady);
    });
    settle();
    return count;
  }
};

constexpr Way kWays[] = {
    {"POST /v1/topics/t/jobs", R"({"id":"ID","body":"hello","delay":60})", "GET /v1/topics/t/jobs/ID", "",
     "DELETE /v1/topics/t/jobs/ID", ""},
    {"POST /delay-queue/api/jobs/add", R"({"topic":"t","id":"ID","delay":60,"body":"\"hello\""})",
     "POST /delay-queue/api/jobs/get", R"({"job_id":"ID"})", "POST /delay-queue/api/jobs/remove",
     R"({"job_id":"ID"})"},
    {"POST /job", R"({"topic":"t","id":"ID","delay":60,"callback":"http://127.0.0.1:1/","body":"hello"})",
     "GET /job?topic=t&id=ID", "", "DELETE /job?topic=t&id=ID", ""},
    {"POST /delayq/job/add", R"({"topic":"t","jobid":"ID","exectime":1700000060,"data":"\"hello\""})",
     "POST /delayq/job/info", R"({"jobid":"ID"})", "POST /delayq/job/remove", R"({"jobid":"ID"})"},
};

TEST_F(CompatTest, a_job_of_one_api_is_seen_counted_and_cancelled_by_all_others) {
  int number = 0;
  for (const Way& from : kWays) {
    for (const Way& to : kWays) {
      const std::string id = fmt::format("job-{}", ++number);
      SCOPED_TRACE(fmt::format("{} then {}", from.add, to.remove));
      ask_for(from.add, from.added, id);
      EXPECT_EQ(waiting(), 1u);
      EXPECT_THAT(ask_for(to.look, to.look_body, id).body, AllOf(HasSubstr(id), HasSubstr("hello")));
      EXPECT_EQ(ask_for(to.remove, to.remove_body, id).status, 200);
      EXPECT_EQ(waiting(), 0u);
      EXPECT_THAT(ask_for(to.look, to.look_body, id).body, Not(HasSubstr("hello")));
    }
  }
}

const http::Dialect* const kAll[] = {&go_delay_queue(), &callback(), &delayq()};

/// The start of a refusal in the form of the API that the path belongs to.
std::string form_of(const http::Dialect& dialect, int status) {
  if (&dialect == &go_delay_queue()) return fmt::format(R"({{"code":{},"message":")", status);
  if (&dialect == &callback()) return R"({"success":0,"message":")";
  return R"({"code":"1","info":")";
}

TEST_F(CompatTest, what_is_refused_before_it_is_understood_is_told_in_the_apis_form) {
  for (const http::Dialect* dialect : kAll) {
    const std::string path(dialect->routes.back().path);
    const Answer method = ask("PATCH", path);
    EXPECT_EQ(method.status, 405) << path;
    EXPECT_THAT(method.head, HasSubstr("Allow: "));
    EXPECT_THAT(method.body, StartsWith(form_of(*dialect, 405)));
    const Answer nowhere = ask("POST", std::string(dialect->root) + "/nowhere");
    EXPECT_EQ(nowhere.status, 404);
    EXPECT_THAT(nowhere.body, StartsWith(form_of(*dialect, 404)));
    const Answer escape = ask("GET", path + "?id=%zz");
    EXPECT_EQ(escape.status, 400);
    EXPECT_THAT(escape.body, StartsWith(form_of(*dialect, 400)));
    const Answer page = ask("POST", path, "{}", "text/plain", "Origin: http://evil.example\r\n");
    EXPECT_EQ(page.status, 403);
    EXPECT_THAT(page.body, StartsWith(form_of(*dialect, 403)));
  }
}

TEST_F(CompatTest, a_request_that_is_too_large_or_never_whole_is_told_in_the_apis_form) {
  for (const http::Dialect* dialect : kAll) {
    net::HttpLimits limits;
    limits.body_bytes = 100;
    // What anybody may ask takes no body, so none is too large for it.
    const auto pushes = std::find_if(dialect->routes.begin(), dialect->routes.end(), [](const auto& route) {
      return route.method == "POST" && route.scopes == only(Scope::kPush);
    });
    ASSERT_NE(pushes, dialect->routes.end());
    const std::string path(pushes->path);
    conversation = std::make_shared<http::Conversation>(host, *this, limits);
    const Answer large = ask("POST", path, std::string(200, 'x'));
    EXPECT_EQ(large.status, 413);
    EXPECT_THAT(large.body, StartsWith(form_of(*dialect, 413)));
    conversation = std::make_shared<http::Conversation>(host, *this);
    input.clear();
    say(fmt::format("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12", path));
    conversation->time_out();
    const Answer slow = parse(std::exchange(conversation->output(), {}));
    EXPECT_EQ(slow.status, 408);
    EXPECT_THAT(slow.body, StartsWith(form_of(*dialect, 408)));
  }
  conversation = std::make_shared<http::Conversation>(host, *this);
}

TEST_F(CompatTest, an_api_that_is_switched_off_is_not_there) {
  host.dialects = {&callback()};
  EXPECT_EQ(ask("GET", "/delayq/ping").status, 404);
  EXPECT_THAT(ask("POST", "/delay-queue/api/jobs/get").head, HasSubstr("application/problem+json"));
  EXPECT_THAT(ask("GET", "/job?topic=t&id=a").body, StartsWith(R"({"success":0)"));
  EXPECT_EQ(ask("GET", "/jobs").status, 404);
  EXPECT_THAT(ask("GET", "/jobs").head, HasSubstr("application/problem+json")) << "/job is not /jobs";
}

TEST_F(CompatTest, an_answer_is_given_again_to_who_asks_again) {
  const std::string add = R"({"topic":"t","delay":5})";
  const std::string key = "Idempotency-Key: k\r\n";
  const Answer first = ask("POST", "/delay-queue/api/jobs/add", add, "application/json", key);
  EXPECT_EQ(ask("POST", "/delay-queue/api/jobs/add", add, "application/json", key).body, first.body);
  EXPECT_EQ(waiting(), 1u);
  const std::string bad = R"({"topic":"t","delay":0})";
  const std::string other = "Idempotency-Key: l\r\n";
  ask("POST", "/delay-queue/api/jobs/add", bad, "application/json", other);
  EXPECT_THAT(ask("POST", "/delay-queue/api/jobs/add", add, "application/json", other).body,
              HasSubstr(R"("code":0)"))
      << "a refusal is not kept, whatever its status";
}

// ---- who may do what

class CompatAccessTest : public CompatTest {
 protected:
  void allow(Scopes scopes) {
    host.front->access.replace({support::token("shop", support::kSecretHash, scopes, {"t"})});
  }
};

TEST_F(CompatAccessTest, without_a_token_there_is_only_ping) {
  allow(Scope::kPush | Scope::kConsume | Scope::kRead);
  for (const http::Dialect* dialect : kAll) {
    for (const http::Dialect::Route& route : dialect->routes) {
      const Answer answer = ask(route.method, route.path, "{}");
      if (route.scopes == 0) {
        EXPECT_EQ(answer.status, 200) << route.path;
        continue;
      }
      EXPECT_EQ(answer.status, 401) << route.path;
      EXPECT_THAT(answer.head, HasSubstr("WWW-Authenticate: Bearer"));
      EXPECT_THAT(answer.body, StartsWith(form_of(*dialect, 401)));
      EXPECT_EQ(ask_as("secret", route.method, route.path, "{}").status, 200) << route.path;
    }
  }
}

TEST_F(CompatAccessTest, each_call_needs_one_of_its_scopes) {
  for (const Scope scope : {Scope::kPush, Scope::kConsume, Scope::kRead}) {
    allow(only(scope));
    for (const http::Dialect* dialect : kAll) {
      for (const http::Dialect::Route& route : dialect->routes) {
        const bool is_allowed = route.scopes == 0 || (route.scopes & only(scope)) != 0;
        const Answer answer = ask_as("secret", route.method, route.path, "{}");
        EXPECT_EQ(answer.status, is_allowed ? 200 : 403) << route.path;
        if (is_allowed) continue;
        EXPECT_THAT(answer.body, StartsWith(form_of(*dialect, 403)));
      }
    }
  }
}

TEST_F(CompatAccessTest, topics_of_others_are_closed) {
  const PushRequest job{.topic = "secret", .id = "a", .body = "hello", .delay = Millis{60'000}};
  queue.push(now, {&job, 1}, [](const Result<PushReport>&) {});
  settle();
  allow(Scope::kPush | Scope::kConsume | Scope::kRead);
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"POST", "/delay-queue/api/jobs/add", R"({"topic":"secret","delay":1})"},
      {"POST", "/job", R"({"topic":"secret","id":"b","delay":1,"callback":"http://127.0.0.1/"})"},
      {"GET", "/job?topic=secret&id=a", ""},
      {"DELETE", "/job?topic=secret&id=a", ""},
      {"POST", "/delayq/job/add", R"({"topic":"secret","jobid":"b"})"},
      {"POST", "/delayq/job/pop", R"({"topic":"secret"})"},
      {"POST", "/delayq/job/bpop", R"({"topic":"secret"})"},
      {"POST", "/delayq/job/list", R"({"topic":"secret","state":0})"},
  };
  for (const auto& [method, path, body] : cases) {
    const Answer answer = ask_as("secret", method, path, body);
    EXPECT_EQ(answer.status, 403) << path;
    EXPECT_THAT(answer.body, Not(HasSubstr("hello")));
  }
  EXPECT_EQ(engine.usage().jobs, 1u) << "it is still there, and nothing else is";
}

TEST_F(CompatAccessTest, an_id_in_a_topic_of_others_is_not_there) {
  for (const char* topic : {"secret", "hidden"}) {
    const std::vector<PushRequest> jobs{
        {.topic = topic, .id = topic, .body = "hello", .delay = Millis{60'000}},
        {.topic = topic, .id = "both", .body = "hello", .delay = Millis{60'000}},
    };
    queue.push(now, jobs, [](const Result<PushReport>&) {});
  }
  settle();
  allow(Scope::kPush | Scope::kConsume | Scope::kRead);
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"/delay-queue/api/jobs/get", R"({{"job_id":"{}"}})"},
      {"/delay-queue/api/jobs/remove", R"({{"job_id":"{}"}})"},
      {"/delayq/job/info", R"({{"jobid":"{}"}})"},
      {"/delayq/job/finish", R"({{"jobid":"{}"}})"},
      {"/delayq/job/remove", R"({{"jobid":"{}"}})"},
  };
  for (const auto& [path, body] : cases) {
    const Answer missing = ask_as("secret", "POST", path, fmt::format(fmt::runtime(body), "none"));
    for (const std::string_view id : {"secret", "both"}) {
      const Answer answer = ask_as("secret", "POST", path, fmt::format(fmt::runtime(body), id));
      EXPECT_EQ(answer.status, missing.status) << path << id;
      EXPECT_EQ(answer.body, missing.body) << path << id;
    }
  }
  EXPECT_EQ(engine.usage().jobs, 4u) << "they are still there";
}

TEST_F(CompatAccessTest, an_id_in_a_topic_of_others_is_in_nobodys_way) {
  const PushRequest job{.topic = "hidden", .id = "a", .body = "hello", .delay = Millis{60'000}};
  queue.push(now, {&job, 1}, [](const Result<PushReport>&) {});
  settle();
  allow(Scope::kPush | Scope::kConsume | Scope::kRead);
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"/delay-queue/api/jobs/add", R"({"topic":"t","id":"a","delay":60,"body":"mine"})",
       "/delay-queue/api/jobs/get"},
      {"/delayq/job/add", R"({"topic":"t","jobid":"a","data":"mine"})", "/delayq/job/info"},
  };
  for (const auto& [add, body, get] : cases) {
    EXPECT_THAT(ask_as("secret", "POST", add, body).body, HasSubstr(R"("code":)"));
    EXPECT_THAT(ask_as("secret", "POST", get, R"({"job_id":"a","jobid":"a"})").body, HasSubstr("mine"))
        << get;
    const JobRef mine{"t", "a"};
    queue.cancel(now, {&mine, 1}, [](const Result<std::vector<Result<CancelOutcome>>>&) {});
    settle();
  }
  EXPECT_EQ(engine.usage().jobs, 1u) << "that of the others";
}

TEST_F(CompatAccessTest, too_much_is_told_with_when_to_come_back) {
  Token token = support::token("shop", support::kSecretHash, only(Scope::kPush));
  token.requests_per_second = 1;
  host.front->access.replace({token});
  ask_as("secret", "GET", "/job?topic=t&id=a");
  const Answer refused = ask_as("secret", "POST", "/delay-queue/api/jobs/add", R"({"topic":"t","delay":1})");
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.head, HasSubstr("Retry-After: "));
  EXPECT_THAT(refused.body, StartsWith(R"({"code":429,)"));
}

// ---- the reference page

using Calls = std::map<std::string, std::string>;

/// The rows "| `POST /path` | scopes | ... |" of the page.
Calls described_calls() {
  std::ifstream page(std::string(DELAYQ_SOURCE_FOLDER) + "/docs/reference/compat.md");
  Calls calls;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `") || line.find(" /") == std::string::npos) continue;
    const size_t end = line.find("` | ");
    const size_t scopes = end + 4;
    calls[line.substr(3, end - 3)] = line.substr(scopes, line.find(" |", scopes) - scopes);
  }
  return calls;
}

TEST(CompatReference, has_every_call_with_its_scopes_and_no_other) {
  Calls routes;
  for (const http::Dialect* dialect : kAll) {
    for (const http::Dialect::Route& route : dialect->routes) {
      std::string scopes;
      for (size_t i = 0; i < kScopeNames.size(); ++i) {
        if ((route.scopes & only(static_cast<Scope>(i))) == 0 || kScopeNames[i] == "admin") continue;
        scopes += fmt::format("{}{}", scopes.empty() ? "" : ", ", kScopeNames[i]);
      }
      routes[fmt::format("{} {}", route.method, route.path)] = scopes.empty() ? "none" : scopes;
    }
  }
  EXPECT_EQ(described_calls(), routes);
}

}  // namespace
}  // namespace delayq::compat
