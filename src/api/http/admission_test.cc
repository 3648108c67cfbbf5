// Who may ask what over HTTP, and how often.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/http/v1.h"
#include "tests/support/http_client.h"
#include "tests/support/tokens.h"

namespace delayq::http {
namespace {

using support::kOtherHash;
using support::kSecretHash;
using support::token;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

using Answer = HttpClient::Answer;

class AdmissionTest : public testing::Test, public HttpClient {
 protected:
  AdmissionTest() {
    host.front->access.replace(
        {token("shop", kSecretHash, Scope::kPush | Scope::kConsume, {"order", "order.*"}),
         token("boss", kOtherHash, only(Scope::kAdmin), {"*"})});
    host.front->turned_away = [this](const Served& served) {
      turned_away.push_back(
          fmt::format("{} {} {} {}", served.token, served.verb, served.target, served.code));
    };
  }

  std::vector<std::string> turned_away;
};

TEST_F(AdmissionTest, without_a_token_there_is_only_health) {
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  EXPECT_EQ(ask("GET", "/readyz").status, 200);
  for (const Dialect::Route& route : v1().routes) {
    if (route.path == "/healthz" || route.path == "/readyz") continue;
    std::string path(route.path);
    for (size_t open = path.find('{'); open != std::string::npos; open = path.find('{'))
      path.replace(open, path.find('}') - open + 1, "x");
    const Answer none = ask(route.method, path, "{}");
    EXPECT_EQ(none.status, 401) << route.method << path;
    EXPECT_THAT(none.head, HasSubstr("WWW-Authenticate: Bearer"));
    const Answer wrong = ask_as("wrong", route.method, path, "{}");
    EXPECT_EQ(wrong.head, none.head) << "there is nothing to learn from it";
    EXPECT_EQ(wrong.body, none.body);
  }
  const Answer nowhere = ask("GET", "/nowhere");
  EXPECT_EQ(nowhere.status, 401) << "what there is not is not told either";
  EXPECT_EQ(ask_as("secret", "GET", "/nowhere").status, 404);
  EXPECT_EQ(ask("GET", "/v1/topics", "", "text/plain", "Authorization: Basic secret\r\n").status, 401);
  EXPECT_EQ(ask("GET", "/v1/topics", "", "text/plain", "Authorization: bEARER secret\r\n").status, 200);
  EXPECT_GT(host.front->traffic[ProtocolKind::kHttp].refusals[static_cast<size_t>(ErrorCode::kUnauthorized)],
            50u);
}

TEST_F(AdmissionTest, a_token_is_good_for_its_topics) {
  EXPECT_EQ(ask_as("secret", "POST", "/v1/topics/order/jobs", R"({"id":"a","body":1})").status, 201);
  EXPECT_EQ(ask_as("secret", "POST", "/v1/topics/order.paid/jobs", R"({"body":1})").status, 201);
  EXPECT_EQ(ask_as("secret", "POST", "/v1/topics/bill/jobs", R"({"body":1})").status, 403);
  EXPECT_EQ(ask_as("secret", "POST", "/v1/pop", R"({"topics":["order","bill"]})").status, 403);
  EXPECT_EQ(ask_as("secret", "POST", "/v1/ack", R"({"leases":["bill/1"]})").status, 403);
  EXPECT_EQ(ask_as("secret", "POST", "/v1/topics/order/pause").status, 403) << "that is for admins";
  EXPECT_EQ(ask_as("secret", "GET", "/v1/forecast").status, 403);
  ask_as("other", "POST", "/v1/topics/bill/jobs", R"({"body":1})");
  EXPECT_THAT(ask_as("secret", "GET", "/v1/topics").body,
              AllOf(HasSubstr("order.paid"), Not(HasSubstr("bill"))));
  EXPECT_THAT(ask_as("other", "GET", "/v1/topics").body, HasSubstr("bill"));
  const Answer batch = ask_as("secret", "POST", "/v1/jobs",
                              R"([{"topic":"order","id":"b","body":1},{"topic":"bill","id":"c","body":1}])");
  EXPECT_THAT(batch.body, AllOf(HasSubstr(R"("pushed":1,"failed":1)"), HasSubstr(R"("code":"forbidden")")));
  EXPECT_EQ(ask_as("other", "GET", "/v1/topics/bill/jobs/c").status, 404);
  EXPECT_THAT(ask_as("secret", "POST", "/v1/topics/order/pop").body, HasSubstr(R"("id":"a")"));
  EXPECT_THAT(turned_away, testing::Contains("shop POST /v1/topics/bill/jobs forbidden"));
}

TEST_F(AdmissionTest, notices_of_deaths_go_only_where_the_token_may_push) {
  host.front->set_tokens({token("shop", kSecretHash, only(Scope::kAdmin), {"order", "order.*"}),
                          token("boss", kOtherHash, only(Scope::kAdmin), {"*"})});
  const auto set = [&](std::string_view secret, std::string_view to) {
    return ask_as(secret, "PATCH", "/v1/topics/order", fmt::format(R"({{"on_dead":"{}"}})", to)).status;
  };
  EXPECT_EQ(set("secret", "bill"), 403);
  EXPECT_EQ(set("secret", "order.dead"), 200);
  EXPECT_EQ(set("secret", "https://shop.example/dead"), 200);
  EXPECT_EQ(set("secret", ""), 200);
  EXPECT_EQ(set("other", "bill"), 200);
  EXPECT_EQ(ask_as("secret", "PATCH", "/v1/topics/order", R"({"attempts":3})").status, 200)
      << "what another has set may stay";
}

TEST_F(AdmissionTest, a_group_is_cancelled_in_the_topics_of_the_token) {
  for (const char* topic : {"bill", "order", "order.paid"})
    ask_as("other", "POST", fmt::format("/v1/topics/{}/jobs", topic),
           R"({"body":1,"delay":"1h","group":"g"})");
  EXPECT_EQ(ask_as("secret", "DELETE", "/v1/groups/g").body, R"({"cancelled":2,"reserved":0})");
  EXPECT_EQ(ask_as("other", "DELETE", "/v1/groups/g").body, R"({"cancelled":1,"reserved":0})");
}

TEST_F(AdmissionTest, unique_is_for_tokens_that_see_all_topics) {
  ask_as("other", "POST", "/v1/topics/bill/jobs", R"({"body":1,"id":"a"})");
  const char* unique = R"({"body":1,"id":"a","unique":true})";
  EXPECT_EQ(ask_as("other", "POST", "/v1/topics/order/jobs", unique).status, 409);
  EXPECT_EQ(ask_as("secret", "POST", "/v1/topics/order/jobs", unique).status, 403);
  EXPECT_THAT(
      ask_as("secret", "POST", "/v1/jobs", R"([{"topic":"order","body":1,"id":"a","unique":true}])").body,
      HasSubstr(R"("code":"forbidden")"));
  EXPECT_EQ(ask_as("secret", "POST", "/v1/topics/order/jobs", R"({"body":1,"id":"a"})").status, 201);
}

TEST_F(AdmissionTest, a_token_that_is_taken_away_counts_at_once) {
  EXPECT_EQ(ask_as("secret", "GET", "/v1/topics").status, 200);
  host.front->access.replace({token("boss", kOtherHash, only(Scope::kAdmin), {"*"})});
  EXPECT_EQ(ask_as("secret", "GET", "/v1/topics").status, 401);
}

TEST_F(AdmissionTest, what_lingers_ends_with_its_token) {
  const Token boss = token("boss", kOtherHash, only(Scope::kAdmin), {"*"});
  EXPECT_EQ(say(request("POST", "/v1/topics/order/pop", R"({"wait":"10s"})", "application/json",
                        "Authorization: Bearer secret\r\n")),
            "");
  const auto stream = std::make_shared<Conversation>(host, *this);
  stream->read(request("GET", "/v1/events", "", "text/plain", "Authorization: Bearer other\r\n"));
  settle();
  stream->output().clear();
  host.front->set_tokens({boss});
  settle();
  EXPECT_EQ(parse(say("")).status, 401) << "the pop";
  EXPECT_FALSE(stream->is_over()) << "the token of the stream is still there";
  Token less = boss;
  less.topics = {"order"};
  host.front->set_tokens({less});
  EXPECT_TRUE(stream->is_over());
  pass(Millis{2'000});
  EXPECT_EQ(host.events.tick(now), kNever);
  settle();
  EXPECT_EQ(stream->output(), "");
  stream->hang_up();
  EXPECT_TRUE(host.front->lingering.empty());
}

TEST_F(AdmissionTest, a_cursor_names_no_topic_of_others) {
  for (const char* topic : {"a", "bill", "order", "order.paid", "z"})
    ask_as("other", "POST", fmt::format("/v1/topics/{}/jobs", topic), R"({"body":1})");
  std::string seen;
  std::string cursor;
  for (int i = 0; i < 5; ++i) {
    const Answer page = ask_as("secret", "GET", fmt::format("/v1/topics?limit=1&cursor={}", cursor));
    seen += page.body;
    cursor = member(page.body, "cursor");
    if (cursor.empty()) break;
  }
  EXPECT_THAT(seen, AllOf(HasSubstr(R"("topic":"order")"), HasSubstr(R"("topic":"order.paid")"),
                          Not(HasSubstr("bill")), Not(HasSubstr(R"("a")")), Not(HasSubstr(R"("z")"))));
}

TEST_F(AdmissionTest, who_is_refused_need_not_be_read) {
  const std::string large =
      "POST /v1/topics/order/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" +
      std::string(1000, 'x');
  const Answer refused = parse(say(large));
  EXPECT_EQ(refused.status, 401);
  EXPECT_THAT(refused.head, HasSubstr("Connection: close"));
  EXPECT_TRUE(conversation->is_over());
}

TEST_F(AdmissionTest, a_small_body_of_a_refused_request_is_passed_over) {
  const std::string both =
      request("POST", "/v1/topics/order/jobs", R"({"body":1})") + request("GET", "/healthz");
  EXPECT_THAT(say(both), AllOf(HasSubstr("HTTP/1.1 401"), HasSubstr("HTTP/1.1 200")));
  EXPECT_FALSE(conversation->is_over());
}

TEST_F(AdmissionTest, tokens_have_rates_and_a_number_of_waiters) {
  Token limited = token("shop", kSecretHash, only(Scope::kConsume), {"*"});
  limited.requests_per_second = 2;
  limited.waiters = 1;
  host.front->access.replace({limited});
  EXPECT_EQ(ask_as("secret", "GET", "/v1/topics").status, 200);
  EXPECT_EQ(ask_as("secret", "GET", "/v1/topics").status, 200);
  const Answer refused = ask_as("secret", "GET", "/v1/topics");
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.head, HasSubstr("Retry-After: 1"));
  pass(Millis{1'000});
  EXPECT_EQ(say(request("POST", "/v1/topics/t/pop", R"({"wait":"10s"})", "application/json",
                        "Authorization: Bearer secret\r\n")),
            "")
      << "it waits";
  const auto second = std::make_shared<Conversation>(host, *this);
  second->read(request("POST", "/v1/topics/t/pop", R"({"wait":"10s"})", "application/json",
                       "Authorization: Bearer secret\r\n"));
  settle();
  EXPECT_EQ(parse(second->output()).status, 429);
  second->hang_up();
}

TEST_F(AdmissionTest, what_is_served_is_told_without_secrets_and_bodies) {
  std::vector<std::string> told;
  host.front->served = [&](const Served& served) {
    told.push_back(fmt::format("{} {} {} {} {} {}", served.peer, served.token, served.verb, served.target,
                               served.status, served.bytes_in));
  };
  ask_as("secret", "POST", "/v1/topics/order/jobs?x=hidden", R"({"body":1})");
  ask_as("secret", "POST", "/v1/topics/order/jobs", R"({"body":"hidden"})");
  EXPECT_THAT(told, ElementsAre("127.0.0.1:40312 shop POST /v1/topics/order/jobs 400 10",
                                "127.0.0.1:40312 shop POST /v1/topics/order/jobs 201 17"));
}

}  // namespace
}  // namespace delayq::http
