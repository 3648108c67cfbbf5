// What the kafka engine does when a step between Redis and the cold store fails, or is done twice. Each job
// must be handed over once, with its body, not early and not at an old time.
#include <gmock/gmock.h>

#include "tests/contract/redis_server.h"
#include "tests/support/engine_driver.h"
#include "tests/support/fake_cold_store.h"

namespace delayq::contract {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using support::ids_of;
using support::JobSpec;
using support::kStart;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Moment kDue = kStart + days{1};

class KafkaFaults : public testing::Test {
 protected:
  static support::RedisProcess& redis() {
    static support::RedisProcess process;
    return process;
  }
  static RedisEngineOptions options(redis::ColdStore& store, const std::string& prefix, std::string server) {
    RedisEngineOptions options;
    options.prefix = prefix;
    options.server = std::move(server);
    // The clock of these tests jumps, Redis's does not.
    options.hold = days{36'525};
    options.cold_store = &store;
    return options;
  }
  static std::string new_prefix() {
    static int tests = 0;
    return "cold" + std::to_string(++tests);
  }
  static support::ColdShelf shelf_with_horizon() {
    support::ColdShelf shelf;
    shelf.steps = {minutes{5}, minutes{30}, hours{1}, hours{6}, days{1}};
    shelf.horizon = minutes{5};
    return shelf;
  }

  KafkaFaults() { engine_.tick(); }

  void push(const std::string& id, Moment due = kDue, const std::string& body = "the body") {
    engine_.push(JobSpec("t", id).due_at(due).with_body(body));
    engine_.tick();
  }
  void go(Moment moment) {
    engine_.go_to(moment);
    engine_.tick();
  }
  /// Goes through all moments at which records come back.
  void travel(Moment moment) {
    for (Moment now = engine_.now(); now < moment; now += minutes{7}) go(now);
    go(moment);
  }
  std::vector<std::string> take() {
    const auto taken = engine_.take("t", 100);
    for (const auto& each : taken) EXPECT_EQ(each.job.body, "the body");
    return ids_of(taken);
  }
  std::string record(const std::string& id) { return redis().command({"HGET", pool(), id}).text; }
  void set_record(const std::string& id, const std::string& bytes) {
    redis().command({"HSET", pool(), id, bytes});
  }
  bool is_cold(const std::string& id) { return redis::read_record(record(id))->cold.has_value(); }
  std::string pool() const { return prefix_ + ":{0}:job:t"; }
  const redis::ColdFigures& figures() { return server_.engine().cold_tier()->figures(); }

  std::string prefix_ = new_prefix();
  support::ColdShelf shelf_ = shelf_with_horizon();
  support::FakeColdStore store_{shelf_};
  RedisServer server_{redis().port(), options(store_, prefix_, "a")};
  support::EngineDriver engine_{server_.engine(),
                                [this] { return server_.pump() || store_.outstanding() > 0; }};
};

TEST_F(KafkaFaults, ABodyGoesDownTheLadderAndIsBackBeforeItsTime) {
  push("a");
  ASSERT_TRUE(is_cold("a"));
  travel(kDue - minutes{6});
  EXPECT_GT(figures().moved, 5U);
  go(kDue - minutes{4});
  EXPECT_FALSE(is_cold("a"));
  go(kDue - Millis{1});
  EXPECT_THAT(take(), IsEmpty()) << "never early";
  go(kDue);
  EXPECT_THAT(take(), ElementsAre("a"));
  EXPECT_EQ(figures().fetched, 0U);
}

TEST_F(KafkaFaults, LookUpsReadTheBodyWhereItIs) {
  push("a");
  EXPECT_EQ(engine_.get("t", "a")->body, "the body");
  ListRequest request{.topic = "t", .with_bodies = true};
  EXPECT_THAT(engine_.list_all(request), ElementsAre(testing::Field(&support::SeenJob::body, "the body")));
  store_.is_away = true;
  const auto refused = engine_.ask<std::optional<FoundJob>>("get", [&](auto reply) {
    server_.engine().get(engine_.now(), {"t", "a"}, std::move(reply));
  });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(engine_.ids_in("t", JobState::kDelayed), ElementsAre("a")) << "without bodies it is listed";
}

TEST_F(KafkaFaults, AConfirmationThatIsLostLeavesTheBodyInRedis) {
  store_.loses_confirmations = true;
  push("a");
  EXPECT_FALSE(is_cold("a"));
  EXPECT_EQ(shelf_.size(), 1U);
  store_.loses_confirmations = false;
  push("b");  // the next round
  EXPECT_TRUE(is_cold("a"));
  travel(kDue);
  EXPECT_THAT(take(), SizeIs(2));
  EXPECT_GE(figures().stale, 1U);
}

TEST_F(KafkaFaults, TheStoreIsAwayForAWhile) {
  push("before");
  store_.is_away = true;
  push("far");
  push("near", kStart + minutes{1});
  EXPECT_FALSE(is_cold("far"));
  go(kStart + minutes{1});
  EXPECT_THAT(take(), ElementsAre("near"));
  store_.is_away = false;
  push("after");
  EXPECT_TRUE(is_cold("far"));
  travel(kDue);
  EXPECT_THAT(take(), testing::UnorderedElementsAre("before", "far", "after"));
}

TEST_F(KafkaFaults, AJobThatIsDueWithoutItsBodyHoldsUpNoOther) {
  push("cold");
  store_.is_away = true;
  engine_.push(JobSpec("t", "hot").due_at(kDue + Millis{1}).with_body("the body"));
  go(kDue + Millis{1});
  EXPECT_THAT(take(), ElementsAre("hot"));
  EXPECT_EQ(engine_.count("t", JobState::kDelayed), 1U);
  store_.is_away = false;
  go(kDue + minutes{1});
  EXPECT_THAT(take(), ElementsAre("cold"));
}

TEST_F(KafkaFaults, OffsetsThatAreLostChangeNothing) {
  push("a");
  travel(kStart + hours{20});
  store_.forget_positions();
  for (auto& [step, log] : shelf_.logs) log.committed = 0;
  travel(kDue);
  EXPECT_THAT(take(), ElementsAre("a"));
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_GT(figures().stale, 3U);
}

TEST_F(KafkaFaults, CancelledReplacedAndRescheduledJobsDoNotComeAtTheOldTime) {
  push("cancelled");
  push("replaced");
  push("later");
  push("now");
  engine_.cancel("t", "cancelled");
  engine_.push(JobSpec("t", "replaced").due_at(kDue + days{1}).with_body("the body").or_replace());
  engine_.reschedule("t", "later", kDue + days{2});
  engine_.reschedule("t", "now", kStart);
  engine_.tick();
  EXPECT_THAT(take(), ElementsAre("now"));
  travel(kDue + hours{1});
  EXPECT_THAT(take(), IsEmpty());
  travel(kDue + days{1});
  EXPECT_THAT(take(), ElementsAre("replaced"));
  travel(kDue + days{2});
  EXPECT_THAT(take(), ElementsAre("later"));
}

TEST_F(KafkaFaults, RedisLosesThatABodyWasMoved) {
  store_.holds_replies = true;
  engine_.push(JobSpec("t", "a").due_at(kDue).with_body("the body"));
  const std::string hot = record("a");
  store_.holds_replies = false;
  engine_.tick();
  ASSERT_TRUE(is_cold("a"));
  set_record("a", hot);
  redis().command({"ZADD", prefix_ + ":{0}:cool", std::to_string(to_unix_ms(kDue)), "t/a"});
  push("b");
  EXPECT_TRUE(is_cold("a")) << "moved again";
  travel(kDue);
  EXPECT_THAT(take(), SizeIs(2));
}

TEST_F(KafkaFaults, RedisLosesWhereABodyIsNow) {
  push("a");
  const std::string first = record("a");
  travel(kStart + hours{13});
  ASSERT_NE(record("a"), first);
  set_record("a", first);
  shelf_.logs[3].entries[0].is_gone = true;  // its retention is over
  travel(kDue);
  EXPECT_THAT(take(), ElementsAre("a"));
}

TEST_F(KafkaFaults, RedisLosesThatABodyCameBack) {
  push("a");
  travel(kDue - minutes{6});
  const std::string cold = record("a");
  go(kDue - minutes{4});
  ASSERT_FALSE(is_cold("a"));
  set_record("a", cold);
  go(kDue);
  EXPECT_THAT(take(), ElementsAre("a")) << "read at its place";
  EXPECT_EQ(figures().fetched, 1U);
}

TEST_F(KafkaFaults, ABodyThatIsLostIsNamedAndHoldsUpNobody) {
  push("lost");
  push("other");
  const uint32_t step = redis::read_record(record("lost"))->cold->place.step;
  const auto offset = static_cast<size_t>(redis::read_record(record("lost"))->cold->place.offset);
  store_.keeps_arrivals_back = true;
  shelf_.logs[step].entries[offset].is_gone = true;
  go(kDue);
  EXPECT_THAT(take(), ElementsAre("other"));
  EXPECT_THAT(std::string(server_.engine().cold_tier()->problem()), testing::HasSubstr("the body of t/lost"));
  EXPECT_EQ(engine_.cancel("t", "lost"), CancelOutcome::kCancelled);
}

TEST_F(KafkaFaults, ABodyThatIsTooLargeStaysInRedis) {
  store_.largest = 10;
  push("a");
  EXPECT_FALSE(is_cold("a"));
  EXPECT_EQ(redis().command({"EXISTS", prefix_ + ":{0}:cool"}).integer, 0);
  travel(kDue);
  EXPECT_THAT(take(), ElementsAre("a"));
}

TEST_F(KafkaFaults, TwoServersThatReadTheSameRecordsHandOverOnce) {
  support::FakeColdStore other_store(shelf_);
  RedisServer other(redis().port(), options(other_store, prefix_, "b"));
  support::EngineDriver other_engine(other.engine(),
                                     [&] { return other.pump() || other_store.outstanding() > 0; });
  for (int i = 0; i < 10; ++i) push(std::to_string(i));
  for (Moment now = kStart; now < kDue; now += minutes{7}) {
    engine_.go_to(now);
    other_engine.go_to(now);
    other_engine.tick();
    engine_.tick();
  }
  go(kDue);
  other_engine.go_to(kDue);
  other_engine.tick();
  EXPECT_THAT(take(), SizeIs(10));
  EXPECT_THAT(other_engine.take("t", 100), IsEmpty());
}

}  // namespace
}  // namespace delayq::contract
