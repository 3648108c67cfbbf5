// What becomes of the verbs about schedules when Redis is away, or answers what no script says.
#include <gmock/gmock.h>

#include "engine/redis/redis_engine.h"
#include "tests/support/scripted_client.h"

namespace delayq {
namespace {

class Unheard final : public EngineListener {
 public:
  void on_ready(std::string_view, Outlet) override {}
  void on_expired(std::vector<LeaseInfo>) override {}
  void on_schedules_due(std::vector<StoredSchedule> due) override { reported += due.size(); }

  size_t reported = 0;
};

class SchedulesOfRedis : public testing::Test {
 protected:
  /// The code of the error that each verb replies with, once; kInvalid stands for none.
  std::vector<ErrorCode> codes() {
    std::vector<ErrorCode> codes;
    const auto note = [&codes](const auto& result) {
      codes.push_back(result.ok() ? ErrorCode::kInvalid : result.error().code);
    };
    const TurnRequest request{.name = "s", .revision = 1, .definition = "rule"};
    engine_.turn(kAt, {&request, 1}, [note](const Result<std::vector<TurnAnswer>>& r) { note(r); });
    engine_.get_schedule(kAt, "s", [note](const Result<std::optional<StoredSchedule>>& r) { note(r); });
    engine_.list_schedules(kAt, {}, [note](const Result<SchedulePage>& r) { note(r); });
    EXPECT_THAT(codes, testing::IsEmpty()) << "replies come from poll()";
    for (int polls = 0; polls < 20; ++polls) engine_.poll(listener_);
    EXPECT_EQ(codes.size(), 3U);
    return codes;
  }
  static resp::Value array_of(std::vector<resp::Value> items) {
    return {.type = resp::Value::Type::kArray, .text = {}, .items = std::move(items)};
  }
  static resp::Value bulk(std::string text) {
    return {.type = resp::Value::Type::kBulk, .text = std::move(text), .items = {}};
  }

  static constexpr Moment kAt{Millis{1'800'000'000'000}};
  support::ScriptedClient client_;
  Unheard listener_;
  RedisEngine engine_{client_, {.prefix = "p", .shards = redis::new_shards("p", 3), .server = "s"}};
};

TEST_F(SchedulesOfRedis, AreUnavailableWhileRedisIsAway) {
  client_.reply = [](const std::string&) { return Error{ErrorCode::kUnavailable, "redis", "away"}; };
  EXPECT_THAT(codes(), testing::Each(ErrorCode::kUnavailable));
}

TEST_F(SchedulesOfRedis, SayThatAnAnswerMakesNoSense) {
  for (const resp::Value& odd :
       {resp::Value{}, bulk("odd"), array_of({bulk("a")}), array_of({bulk(""), bulk("s"), bulk("?")}),
        array_of({bulk(""), bulk("s"), bulk("?"), bulk("rule")})}) {
    client_.reply = [&odd](const std::string& name) -> Result<resp::Value> {
      if (name == "meta") return Error{ErrorCode::kUnavailable, "redis", "away"};
      return odd;
    };
    const std::vector<ErrorCode> said = codes();
    EXPECT_EQ(said[0], ErrorCode::kInternal) << "turn";
    for (const ErrorCode code : said)
      EXPECT_THAT(code, testing::AnyOf(ErrorCode::kInternal, ErrorCode::kCorrupt, ErrorCode::kInvalid));
    engine_.tick(kAt);
    for (int polls = 0; polls < 5; ++polls) engine_.poll(listener_);
  }
  EXPECT_EQ(listener_.reported, 0U);
}

}  // namespace
}  // namespace delayq
