#include <gmock/gmock.h>

#include "engine/redis/driving.h"
#include "engine/redis/redis_engine.h"
#include "tests/support/scripted_client.h"

namespace delayq {
namespace {

using redis::Doubt;
using testing::ElementsAre;
using testing::IsEmpty;
using Type = resp::Value::Type;

constexpr Moment kNow{Millis{1'800'000'000'000}};

TEST(Doubt, BeginsWithALossAndEndsAWhileAfterTheLook) {
  Doubt doubt;
  EXPECT_FALSE(doubt.wants_look(kNow, true));
  EXPECT_FALSE(doubt.is_listening());
  doubt.note_lost();
  EXPECT_TRUE(doubt.is_listening()) << "at once: the news may be on their way";
  EXPECT_FALSE(doubt.wants_look(kNow, false)) << "nobody is there to be looked at";
  EXPECT_TRUE(doubt.wants_look(kNow, true));
  EXPECT_FALSE(doubt.wants_look(kNow, true)) << "once";
  EXPECT_FALSE(doubt.wants_look(kNow + Doubt::kListen - Millis{1}, true));
  EXPECT_TRUE(doubt.is_listening());
  EXPECT_FALSE(doubt.wants_look(kNow + Doubt::kListen, true));
  EXPECT_FALSE(doubt.is_listening());
}

TEST(Doubt, LooksSeldomWhileMuchIsLost) {
  Doubt doubt;
  int looks = 0;
  for (Millis passed{0}; passed < 10 * Doubt::kLookPeriod; passed += Millis{10}) {
    doubt.note_lost();
    looks += doubt.wants_look(kNow + passed, true) ? 1 : 0;
  }
  EXPECT_EQ(looks, 10);
  EXPECT_TRUE(doubt.wants_look(kNow + 10 * Doubt::kLookPeriod, true)) << "and once after the last loss";
}

TEST(Doubt, DoesNotLastLongerWhenTheClockIsSetBack) {
  Doubt doubt;
  doubt.note_lost();
  EXPECT_TRUE(doubt.wants_look(kNow, true));
  doubt.note_lost();
  EXPECT_TRUE(doubt.wants_look(kNow - std::chrono::hours{1}, true));
  EXPECT_FALSE(doubt.wants_look(kNow - std::chrono::hours{2}, true));
  EXPECT_FALSE(doubt.is_listening());
}

class Ready final : public EngineListener {
 public:
  void on_ready(std::string_view topic, Outlet) override { topics.emplace_back(topic); }
  void on_expired(std::vector<LeaseInfo>) override {}
  void on_schedules_due(std::vector<StoredSchedule>) override {}
  std::vector<std::string> topics;
};

/// A server, and the topics that it reports to its listener.
class OwnNews : public testing::Test {
 protected:
  OwnNews() {
    client_.reply = [this](const std::string& name) { return reply(name); };
    run(kNow);
  }

  Result<resp::Value> reply(const std::string& name) const {
    if (is_away_ && name == "push") return Error{ErrorCode::kUnavailable, "redis", "no reply"};
    if (name == "meta") return Error{ErrorCode::kInvalid, "redis", "of no interest here"};
    resp::Value nothing{.type = Type::kArray, .text = {}, .items = {}};
    nothing.items.resize(name == "head" ? 3 : 2);
    if (name == "head") nothing.items[0] = {.type = Type::kInteger, .integer = 1, .text = {}, .items = {}};
    return nothing;
  }

  void take() {
    TakeRequest request;
    request.topic = "t";
    request.count = 1;
    engine_.take(kNow, request, [](const Result<TakeAnswer>&) {});
    run(kNow);
  }

  void push() {
    NewJob job;
    job.topic = "t";
    job.id = "a";
    engine_.push(kNow, {&job, 1}, [](const Result<std::vector<PushAnswer>>&) {});
  }

  /// Returns the topics that were reported as ready.
  std::vector<std::string> run(Moment now) {
    listener_.topics.clear();
    for (int turns = 0; turns < 5; ++turns) {
      engine_.tick(now);
      engine_.poll(listener_);
    }
    return listener_.topics;
  }

  bool is_away_ = false;
  support::ScriptedClient client_;
  Ready listener_;
  RedisEngine engine_{client_, {.prefix = "p", .server = "s"}};
};

TEST_F(OwnNews, AreKnownFromTheAnswers) {
  client_.hear("r0@s:0t");
  EXPECT_THAT(run(kNow), IsEmpty());
  client_.hear("r0@another:0t");
  EXPECT_THAT(run(kNow), ElementsAre("t"));
}

TEST_F(OwnNews, AreAllThatIsHeardOfACallWhoseAnswerIsLost) {
  take();
  is_away_ = true;
  push();
  run(kNow);
  client_.hear("r0@s:0t");
  EXPECT_THAT(run(kNow), ElementsAre("t"));
  is_away_ = false;
  run(kNow + Doubt::kListen);
  client_.hear("r0@s:0t");
  EXPECT_THAT(run(kNow + Doubt::kListen), IsEmpty()) << "answers come again";
}

TEST_F(OwnNews, MayComeBeforeTheAnswerIsLost) {
  is_away_ = true;
  push();
  client_.hear("r0@s:0t");
  EXPECT_THAT(run(kNow), testing::Contains("t")) << "whoever waits for the topic would never hear of the job";
}

}  // namespace
}  // namespace delayq
