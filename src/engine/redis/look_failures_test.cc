// What happens to verbs that read or change many jobs if Redis is not reachable, becomes unreachable in the
// middle, or returns a malformed reply: each replies with one error, and nothing crashes.
#include <gmock/gmock.h>

#include "engine/redis/redis_engine.h"
#include "tests/support/scripted_client.h"

namespace delayq {
namespace {

using support::ScriptedClient;
using Type = resp::Value::Type;

class Deaf final : public EngineListener {
 public:
  void on_ready(std::string_view, Outlet) override {}
  void on_expired(std::vector<LeaseInfo>) override {}
  void on_schedules_due(std::vector<StoredSchedule>) override {}
};

class LookFailures : public testing::Test {
 protected:
  /// The error code of each verb, in the order of their names; kInvalid means no error.
  std::vector<ErrorCode> codes() {
    std::vector<ErrorCode> codes;
    ask<std::vector<PushAnswer>>(codes, [&](auto reply) {
      RestoreRequest request;
      request.job.topic = "t";
      request.job.id = "a";
      engine_.restore(kNow, {&request, 1}, std::move(reply));
    });
    ask<uint64_t>(codes, [&](auto reply) {
      const std::string_view id = "a";
      engine_.redrive(kNow, "t", {&id, 1}, std::move(reply));
    });
    ask<uint64_t>(codes, [&](auto reply) { engine_.redrive_oldest(kNow, "t", 10, std::move(reply)); });
    ask<uint64_t>(codes,
                  [&](auto reply) { engine_.purge(kNow, "t", JobState::kDead, 10, std::move(reply)); });
    ask<GroupCancelAnswer>(
        codes, [&](auto reply) { engine_.cancel_group(kNow, {.group = "g", .max = 10}, std::move(reply)); });
    ask<std::vector<std::string>>(
        codes, [&](auto reply) { engine_.locate(kNow, "a", Among::kLive, std::move(reply)); });
    ask<JobPage>(codes, [&](auto reply) {
      ListRequest request;
      request.topic = "t";
      engine_.list(kNow, request, std::move(reply));
    });
    ask<TopicCounts>(codes, [&](auto reply) { engine_.counts(kNow, "t", std::move(reply)); });
    ask<TopicCounts>(codes, [&](auto reply) { engine_.counts(kNow, "", std::move(reply)); });
    ask<TopicPage>(codes, [&](auto reply) { engine_.topics(kNow, "", 10, std::move(reply)); });
    ask<Forecast>(codes, [&](auto reply) {
      ForecastRequest request;
      request.from = kNow;
      request.to = kNow + Millis{10};
      engine_.forecast(kNow, request, std::move(reply));
    });
    ask<std::vector<TopicSettings>>(codes, [&](auto reply) { engine_.load_settings(std::move(reply)); });
    ask<bool>(codes, [&](auto reply) { engine_.flush(std::move(reply)); });
    return codes;
  }

  template <class T, class Verb>
  void ask(std::vector<ErrorCode>& codes, Verb verb) {
    int answers = 0;
    verb(Reply<T>([&](const Result<T>& result) {
      ++answers;
      codes.push_back(result.ok() ? ErrorCode::kInvalid : result.error().code);
    }));
    for (int polls = 0; polls < 20; ++polls) engine_.poll(listener_);
    EXPECT_EQ(answers, 1);
  }

  static constexpr Moment kNow{Millis{1'800'000'000'000}};
  ScriptedClient client_;
  Deaf listener_;
  RedisEngine engine_{client_, {.prefix = "p", .shards = redis::numbered_shards(3), .server = "s"}};
};

TEST_F(LookFailures, WhileRedisIsAway) {
  client_.reply = [](const std::string&) { return Error{ErrorCode::kUnavailable, "redis", "away"}; };
  EXPECT_THAT(codes(), testing::Each(ErrorCode::kUnavailable));
}

TEST_F(LookFailures, OneShardOfThree) {
  int calls = 0;
  client_.reply = [&calls](const std::string& name) -> Result<resp::Value> {
    // Every third call fails; the others return empty results.
    if (name != "INFO" && ++calls % 3 == 0) return Error{ErrorCode::kUnavailable, "redis", "away"};
    const resp::Value none{.type = Type::kInteger, .text = {}, .items = {}};
    resp::Value counts{.type = Type::kArray, .text = {}, .items = {}};
    counts.items.resize(name == "counts" ? 10 : name == "topics" ? 3 : 4, none);
    if (name == "sizes") counts.items.resize(1);
    return counts;
  };
  std::vector<ErrorCode> codes;
  ask<uint64_t>(codes, [&](auto reply) { engine_.redrive_oldest(kNow, "t", 10, std::move(reply)); });
  ask<uint64_t>(codes, [&](auto reply) { engine_.purge(kNow, "t", JobState::kDead, 10, std::move(reply)); });
  ask<TopicCounts>(codes, [&](auto reply) { engine_.counts(kNow, "t", std::move(reply)); });
  ask<TopicPage>(codes, [&](auto reply) { engine_.topics(kNow, "", 10, std::move(reply)); });
  ask<bool>(codes, [&](auto reply) { engine_.flush(std::move(reply)); });
  EXPECT_THAT(codes, testing::Each(ErrorCode::kUnavailable)) << "two thirds of an answer are none";
}

TEST_F(LookFailures, AnswersThatMakeNoSense) {
  resp::Value two{.type = Type::kArray, .text = {}, .items = {}};
  two.items.resize(2);
  for (const resp::Value& nonsense : {resp::Value{}, two}) {
    client_.reply = [&nonsense](const std::string&) { return nonsense; };
    const std::vector<ErrorCode> all = codes();
    // Two items are a valid reply of locate: one topic.
    EXPECT_GE(std::count(all.begin(), all.end(), ErrorCode::kInternal), 9) << nonsense.items.size();
  }
}

TEST_F(LookFailures, FiguresOfUseOutliveARedisThatIsAway) {
  client_.reply = [](const std::string& name) -> Result<resp::Value> {
    if (name == "INFO")
      return resp::Value{
          .type = Type::kBulk, .text = "# Server\r\nrun_id:abc\r\nused_memory:123\r\n", .items = {}};
    if (name != "sizes") return Error{ErrorCode::kUnavailable, "redis", "not asked"};
    resp::Value sizes{.type = Type::kArray, .text = {}, .items = {}};
    sizes.items.resize(3);
    sizes.items[1].text = "t";
    sizes.items[2].integer = 5;
    return sizes;
  };
  std::vector<ErrorCode> codes;
  ask<bool>(codes, [&](auto reply) { engine_.flush(std::move(reply)); });
  EXPECT_EQ(engine_.usage().jobs, 15U) << "five in each shard";
  EXPECT_EQ(engine_.usage().topics, 1U);
  EXPECT_EQ(engine_.usage().memory_bytes, 123U) << "all shards are on one server";
  client_.reply = [](const std::string&) { return Error{ErrorCode::kUnavailable, "redis", "away"}; };
  ask<bool>(codes, [&](auto reply) { engine_.flush(std::move(reply)); });
  EXPECT_THAT(codes, testing::ElementsAre(ErrorCode::kInvalid, ErrorCode::kUnavailable));
  EXPECT_EQ(engine_.usage().jobs, 15U);
}

TEST_F(LookFailures, FiguresOfVeryManyTopicsAreAskedForLessOften) {
  int pages = 1;
  int told = 0;
  int sizes = 0;
  client_.reply = [&](const std::string& name) -> Result<resp::Value> {
    resp::Value page{.type = Type::kArray, .text = {}, .items = {}};
    if (name != "sizes") return page;
    ++sizes;
    // All three shards report more until the last page.
    const bool is_last = told++ / 3 % pages == pages - 1;
    page.items.push_back({.type = Type::kBulk, .text = is_last ? "" : "t", .items = {}});
    return page;
  };
  const auto asked_in = [&](std::chrono::seconds time, Moment start) {
    sizes = 0;
    for (Millis passed{0}; passed < time; passed += Millis{100}) {
      engine_.tick(start + passed);
      for (int polls = 0; polls < 60; ++polls) engine_.poll(listener_);
    }
    return sizes / 3;
  };
  EXPECT_EQ(asked_in(std::chrono::seconds{20}, kNow), 20) << "once a second";
  pages = 50;
  told = 0;
  const int asked = asked_in(std::chrono::seconds{200}, kNow + std::chrono::minutes{1});
  EXPECT_LE(asked, 250) << "about one call a second, whatever the number of topics";
  EXPECT_GE(asked, 200);
}

TEST_F(LookFailures, AMasterThatHasAnotherLayoutIsNotWrittenTo) {
  std::string shards = "3";
  client_.reply = [&](const std::string& name) -> Result<resp::Value> {
    resp::Value told{.type = Type::kArray, .text = {}, .items = {}};
    told.items.resize(10, {.type = Type::kInteger, .text = {}, .items = {}});
    if (name != "meta") return told;
    told.items = {{.type = Type::kBulk, .text = "1", .items = {}},
                  {.type = Type::kBulk, .text = shards, .items = {}},
                  {.type = Type::kNull, .text = {}, .items = {}}};
    return told;
  };
  const auto code = [this] {
    std::vector<ErrorCode> codes;
    ask<TopicCounts>(codes, [&](auto reply) { engine_.counts(kNow, "t", std::move(reply)); });
    return codes.at(0);
  };
  EXPECT_EQ(code(), ErrorCode::kInvalid);
  // A new master has lost the layout, and another server wrote a different one first.
  shards = "5";
  client_.begin_listening();
  engine_.poll(listener_);
  EXPECT_EQ(code(), ErrorCode::kUnavailable);
  shards = "3";
  client_.begin_listening();
  engine_.poll(listener_);
  EXPECT_EQ(code(), ErrorCode::kInvalid) << "all is well again";
}

TEST_F(LookFailures, PushesThatLookAtAllTopicsAreSentAFewAtATime) {
  size_t pushes = 0;
  client_.reply = [&](const std::string& name) {
    if (name == "push") ++pushes;
    return Error{ErrorCode::kUnavailable, "redis", "away"};
  };
  std::vector<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.push_back(std::to_string(i));
  std::vector<NewJob> jobs(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    jobs[i].topic = "t";
    jobs[i].id = ids[i];
  }
  const auto push = [&] {
    pushes = 0;
    std::vector<ErrorCode> codes;
    ask<std::vector<PushAnswer>>(codes, [&](auto reply) { engine_.push(kNow, jobs, std::move(reply)); });
    return pushes;
  };
  EXPECT_EQ(push(), 3U) << "one for each shard";
  for (NewJob& job : jobs) job.unique_across_topics = true;
  EXPECT_GE(push(), 100U / 8);
}

}  // namespace
}  // namespace delayq
