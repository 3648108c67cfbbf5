// Events and metrics.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_client.h"

namespace delayq::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Answer = HttpClient::Answer;

class WatchingTest : public testing::Test, public HttpClient {
 protected:
  std::string after(Millis time) {
    pass(time);
    host.events.tick(now);
    settle();
    return say("");
  }
};

TEST_F(WatchingTest, what_has_changed_is_told_and_only_that) {
  const std::string head = say(request("GET", "/v1/events?interval=1s"));
  EXPECT_THAT(head,
              AllOf(HasSubstr("200 OK"), HasSubstr("text/event-stream"), Not(HasSubstr("Content-Length"))));
  EXPECT_THAT(after(Millis{0}), HasSubstr("event: stats\ndata: {\"counts\":"));
  EXPECT_THAT(after(Millis{1'000}), IsEmpty());
  const auto other = std::make_shared<Conversation>(host, *this);
  other->read(request("POST", "/v1/topics/t/jobs", R"({"body":1})"));
  settle();
  EXPECT_THAT(after(Millis{500}), IsEmpty()) << "it is not time yet";
  EXPECT_THAT(after(Millis{500}),
              AllOf(HasSubstr("event: stats"), HasSubstr("event: topic\ndata: {\"topic\":\"t\"")));
  unsent_bytes = 1 << 20;
  other->read(request("POST", "/v1/topics/t/jobs", R"({"body":1})"));
  EXPECT_THAT(after(Millis{1'000}), IsEmpty()) << "it reads too slowly";
  unsent_bytes = 0;
  EXPECT_THAT(after(Millis{1'000}), HasSubstr("event: topic"));
  other->hang_up();
  std::string later;
  for (int i = 0; i < 20; ++i) later += after(Millis{1'000});
  EXPECT_THAT(later, HasSubstr(": still here\n\n"));
}

TEST_F(WatchingTest, one_topic_alone) {
  ask("POST", "/v1/topics/a/jobs", R"({"body":1})");
  ask("POST", "/v1/topics/b/jobs", R"({"body":1})");
  say(request("GET", "/v1/events?topic=b"));
  EXPECT_THAT(after(Millis{0}), AllOf(HasSubstr("\"topic\":\"b\""), Not(HasSubstr("\"topic\":\"a\""))));
}

TEST_F(WatchingTest, a_topic_that_is_watched_alone_is_told_to_be_gone) {
  ask("POST", "/v1/topics/b/jobs", R"({"body":1})");
  ask("POST", "/v1/topics/c/jobs", R"({"body":1})");
  say(request("GET", "/v1/events?topic=b"));
  EXPECT_THAT(after(Millis{0}), HasSubstr("event: topic"));
  const auto other = std::make_shared<Conversation>(host, *this);
  other->read(request("DELETE", "/v1/topics/b"));
  settle();
  EXPECT_EQ(after(Millis{1'000}), "event: gone\ndata: {\"topic\":\"b\"}\n\n");
  EXPECT_THAT(after(Millis{1'000}), IsEmpty()) << "once";
  other->read(request("POST", "/v1/topics/b/jobs", R"({"body":1})"));
  settle();
  EXPECT_THAT(after(Millis{1'000}), HasSubstr("event: topic\ndata: {\"topic\":\"b\""));
  other->hang_up();
}

TEST_F(WatchingTest, a_topic_that_moved_off_the_page_is_not_told_to_be_gone) {
  const auto other = std::make_shared<Conversation>(host, *this);
  for (uint32_t i = 0; i < Limits::kPageJobs; ++i)
    other->read(request("POST", fmt::format("/v1/topics/m{:05}/jobs", i), R"({"body":1})"));
  settle();
  say(request("GET", "/v1/events"));
  EXPECT_THAT(after(Millis{0}), HasSubstr("event: topic"));
  other->read(request("POST", "/v1/topics/a/jobs", R"({"body":1})"));
  settle();
  EXPECT_THAT(after(Millis{1'000}), AllOf(HasSubstr("\"topic\":\"a\""), Not(HasSubstr("event: gone"))));
  other->hang_up();
}

TEST_F(WatchingTest, who_is_gone_is_told_nothing) {
  say(request("GET", "/v1/events"));
  EXPECT_EQ(host.events.size(), 1u);
  conversation->hang_up();
  EXPECT_EQ(host.events.tick(now), kNever);
  EXPECT_EQ(host.events.size(), 0u);
  conversation = std::make_shared<Conversation>(host, *this);
  EXPECT_EQ(ask("GET", "/v1/events?interval=1ms").status, 400);
}

TEST_F(WatchingTest, news_of_single_jobs) {
  const std::string head = say(request("GET", "/v1/events?news=pushed,done&topic=t"));
  EXPECT_THAT(head, AllOf(HasSubstr("200 OK"), HasSubstr("text/event-stream")));
  const std::string hello = after(Millis{0});
  EXPECT_THAT(hello, testing::MatchesRegex("id: [0-9a-f]+\\.0\\.0\n: still here\n\n"))
      << "a cursor from the start on";
  const auto other = std::make_shared<Conversation>(host, *this);
  other->read(request("POST", "/v1/topics/t/jobs", R"({"id":"7","group":"g","body":1,"delay":"1h"})"));
  other->read(request("POST", "/v1/topics/u/jobs", R"({"id":"8","body":1})"));
  settle();
  const std::string told = after(Millis{100});
  EXPECT_THAT(
      told,
      AllOf(HasSubstr("event: job\ndata: {\"news\":\"pushed\",\"at\":\""),
            HasSubstr("\"topic\":\"t\",\"id\":\"7\",\"group\":\"g\",\"state\":\"delayed\",\"due_at\":\""),
            Not(HasSubstr("\"id\":\"8\"")), HasSubstr("\nid: "), Not(HasSubstr("still here"))));
  EXPECT_THAT(after(Millis{100}), IsEmpty());
  // It reads too slowly, and gets all of it later.
  unsent_bytes = 1 << 20;
  other->read(request("POST", "/v1/topics/t/jobs", R"({"id":"9","body":1})"));
  EXPECT_THAT(after(Millis{100}), IsEmpty());
  unsent_bytes = 0;
  EXPECT_THAT(after(Millis{100}), HasSubstr("\"id\":\"9\""));
  // It comes back with its cursor.
  const size_t at = told.rfind("id: ") + 4;
  const std::string cursor = told.substr(at, told.find('\n', at) - at);
  conversation->hang_up();
  conversation = std::make_shared<Conversation>(host, *this);
  say(request("GET", "/v1/events?news=pushed,done&topic=t", "", "",
              fmt::format("Last-Event-ID: {}\r\n", cursor)));
  EXPECT_THAT(after(Millis{0}), AllOf(HasSubstr("\"id\":\"9\""), Not(HasSubstr("missed"))));
  conversation->hang_up();
  conversation = std::make_shared<Conversation>(host, *this);
  say(request("GET", fmt::format("/v1/events?news=all&after={}", cursor)));
  EXPECT_THAT(after(Millis{0}), HasSubstr("event: missed\ndata: {}\n"));
  other->hang_up();
}

TEST_F(WatchingTest, news_are_refused_with_the_name_of_the_field) {
  EXPECT_THAT(ask("GET", "/v1/events?news=what").body, HasSubstr("news: \\\"what\\\" is not known"));
  EXPECT_EQ(ask("GET", "/v1/events?news=all&state=what").status, 400);
  EXPECT_EQ(ask("GET", "/v1/events?state=ready").status, 400);
  EXPECT_EQ(ask("GET", "/v1/events?after=1.1").status, 400);
  EXPECT_EQ(ask("GET", "/v1/events?news=all&after=what").status, 400);
  EXPECT_EQ(ask("GET", "/v1/events?news=all&topic=a%20b").status, 400);
  EXPECT_EQ(ask("GET", "/v1/events?news=all&interval=1ms").status, 400);
}

TEST_F(WatchingTest, a_token_gets_news_of_its_topics_until_it_is_revoked) {
  Token token;
  token.name = "some";
  token.sha256 = api::hash_secret("some");
  token.scopes = only(Scope::kRead);
  token.topics = {"t*"};
  host.front->set_tokens({token});
  const std::string as = "Authorization: Bearer some\r\n";
  EXPECT_EQ(ask("GET", "/v1/events?news=all&topic=u", "", "", as).status, 403);
  EXPECT_EQ(ask("GET", "/v1/events", "", "", as).status, 403);
  EXPECT_THAT(say(request("GET", "/v1/events?news=all", "", "", as)), HasSubstr("200 OK"));
  after(Millis{0});
  const PushRequest jobs[] = {{.topic = "t1", .id = "mine"}, {.topic = "u", .id = "other"}};
  queue.push(now, jobs, [](const Result<PushReport>&) {});
  EXPECT_THAT(after(Millis{100}), AllOf(HasSubstr("mine"), Not(HasSubstr("other"))));
  token.topics = {"u"};
  host.front->set_tokens({token});
  const PushRequest more[] = {{.topic = "t1", .id = "gone"}, {.topic = "u", .id = "seen"}};
  queue.push(now, more, [](const Result<PushReport>&) {});
  EXPECT_THAT(after(Millis{100}), AllOf(HasSubstr("seen"), Not(HasSubstr("gone"))));
  host.front->set_tokens({});
  Token another = token;
  another.name = "another";
  another.sha256 = api::hash_secret("another");
  host.front->set_tokens({another});
  EXPECT_TRUE(conversation->is_over());
}

TEST_F(WatchingTest, there_are_only_so_many) {
  std::vector<std::shared_ptr<Conversation>> all;
  for (size_t i = 0; i < Events::kMostStreams; ++i) {
    all.push_back(std::make_shared<Conversation>(host, *this));
    all.back()->read(request("GET", "/v1/events"));
  }
  EXPECT_EQ(ask("GET", "/v1/events").status, 429);
  for (const auto& each : all) each->hang_up();
}

TEST_F(WatchingTest, metrics_of_everything) {
  ask("POST", "/v1/topics/a/jobs", R"({"body":1})");
  ask("POST", "/v1/topics/b/jobs", R"({"body":1,"delay":"1h"})");
  ask("POST", "/v1/topics/c/jobs", R"({"body":1,"delay":"1h"})");
  ask("POST", "/v1/topics/b%20c/jobs");
  host.metrics_topics = 2;
  pass(Millis{1'500});
  const Answer answer = ask("GET", "/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.head, HasSubstr("text/plain; version=0.0.4"));
  for (const std::string_view line :
       {"delayq_jobs{state=\"delayed\"} 2\n", "delayq_topic_jobs{topic=\"a\",state=\"ready\"} 1\n",
        "delayq_topic_jobs{topic=\"(others)\",state=\"delayed\"} 1\n",
        "delayq_events_total{event=\"pushed\"} 3\n",
        "delayq_topic_events_total{topic=\"(others)\",event=\"pushed\"} 1\n",
        "delayq_topic_oldest_ready_seconds{topic=\"a\"} 1.5\n",
        "delayq_topic_oldest_lease_seconds{topic=\"a\"} 0\n",
        "delayq_lateness_seconds_bucket{le=\"+Inf\"} 0\n", "delayq_info{version=\"9.9.9\"} 1\n",
        "delayq_commit_seconds_count 0\n"}) {
    EXPECT_THAT(answer.body, HasSubstr(line));
  }
  EXPECT_THAT(answer.body, Not(HasSubstr("topic=\"c\"")));
  host.metrics_topics = 0;
  EXPECT_THAT(ask("GET", "/metrics").body,
              AllOf(HasSubstr("delayq_jobs{state=\"delayed\"} 2\n"), Not(HasSubstr("topic=\"a\"")),
                    HasSubstr("delayq_topic_jobs{topic=\"(others)\",state=\"delayed\"} 2\n")));
}

}  // namespace
}  // namespace delayq::http
