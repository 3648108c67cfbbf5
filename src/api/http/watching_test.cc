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
