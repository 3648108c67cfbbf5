#include "queue/janitor.h"

#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using support::kStart;
using support::Taken;

/// The tallies of a topic restart at zero when it was forgotten; the tests recognize it by that.
class JanitorTest : public testing::Test {
 protected:
  void pass_minutes(int minutes) {
    for (int step = 0; step < minutes * 12; ++step) queue_.run_to(queue_.now() + std::chrono::seconds{5});
  }
  bool is_known(std::string_view topic) { return queue_.stats(topic).tallies.of(Tally::kPushed) > 0; }
  void push_and_cancel(std::string_view topic) {
    const std::string id = queue_.push({.topic = topic});
    queue_.cancel(topic, id);
  }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_};
};

TEST_F(JanitorTest, ForgetsATopicThatIsEmptyForAWhile) {
  push_and_cancel("t");
  pass_minutes(4);
  EXPECT_TRUE(is_known("t"));
  pass_minutes(2);
  EXPECT_FALSE(is_known("t"));
  EXPECT_EQ(queue_.totals().tallies.of(Tally::kPushed), 1U) << "the totals stay";
  EXPECT_EQ(queue_.run(), kNever) << "and nothing is left to wake up for";
}

TEST_F(JanitorTest, KeepsATopicThatHasJobsSettingsOrConsumers) {
  queue_.push({.topic = "jobs", .delay = std::chrono::hours{5}});
  push_and_cancel("settings");
  queue_.set("settings", {.lease = Millis{500}});
  push_and_cancel("consumers");
  const support::PendingPop waiting = queue_.begin_pop("consumers", std::chrono::hours{1});
  push_and_cancel("used");
  for (int i = 0; i < 10; ++i) {
    pass_minutes(1);
    push_and_cancel("used");
  }
  for (const char* topic : {"jobs", "settings", "consumers", "used"}) EXPECT_TRUE(is_known(topic)) << topic;
  queue_.queue().drop_waiter(queue_.now(), waiting.waiter());
  queue_.set("settings", {});
  pass_minutes(6);
  EXPECT_FALSE(is_known("consumers"));
  EXPECT_FALSE(is_known("settings"));
}

TEST_F(JanitorTest, KeepsATopicWhoseRateIsNotUsedUp) {
  queue_.set("*", {.rate = Rate{2, std::chrono::hours{1}}});
  for (int i = 0; i < 3; ++i) queue_.push({.topic = "t"});
  EXPECT_EQ(queue_.pop("t", 3).size(), 2U);
  queue_.must<uint64_t>("purge",
                        [&](auto reply) { queue_.queue().purge(queue_.now(), "t", {}, std::move(reply)); });
  pass_minutes(10);
  EXPECT_TRUE(is_known("t")) << "forgetting it would be a way around the limit";
  pass_minutes(60);
  EXPECT_FALSE(is_known("t"));
}

TEST_F(JanitorTest, AThousandTopicsGoInOneRound) {
  for (int i = 0; i < 1'000; ++i) push_and_cancel("topic" + std::to_string(i));
  pass_minutes(11);
  EXPECT_EQ(queue_.run(), kNever);
}

TEST_F(JanitorTest, WakesUpSeldom) {
  queue_.push({.topic = "t", .delay = std::chrono::hours{5}});
  EXPECT_GE(queue_.run() - queue_.now(), std::chrono::seconds{1});
}

TEST_F(JanitorTest, AClockThatGoesBackIsNoHindrance) {
  push_and_cancel("t");
  queue_.run_to(kStart - std::chrono::hours{24});
  pass_minutes(11);
  EXPECT_FALSE(is_known("t"));
}

TEST_F(JanitorTest, ALeaseOutlivesTheMemoryOfItsTopic) {
  queue_.push({.topic = "t", .id = "a"});
  const std::string_view topic = "t";
  const std::vector<Taken> taken =
      queue_.pop(PopRequest{.topics = {&topic, 1}, .lease = std::chrono::hours{1}});
  pass_minutes(11);
  EXPECT_TRUE(queue_.ack(taken.at(0).lease).ok());
  EXPECT_EQ(queue_.totals().tallies.of(Tally::kAcked), 1U);
}

}  // namespace
}  // namespace delayq
