#include "queue/leases.h"

#include <set>

#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using support::at;
using support::Taken;
using testing::HasSubstr;

class LeasesTest : public testing::Test {
 protected:
  Taken reserve(std::string_view id, const JobOptions& options = {}) {
    queue_.push({.topic = "t", .id = id, .options = options});
    return queue_.pop_one("t");
  }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_};
};

// ---- ack

TEST_F(LeasesTest, AckMakesAJobDone) {
  const Taken taken = reserve("a");
  EXPECT_TRUE(queue_.ack(taken.lease).ok());
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kDone);
  EXPECT_EQ(queue_.get("t", "a")->until, at(3'600'000)) << "kept for an hour by default";
  const Status again = queue_.ack(taken.lease);
  EXPECT_EQ(again.error().code, ErrorCode::kStaleLease);
  EXPECT_EQ(again.error().op, "ack");
}

TEST_F(LeasesTest, ABatchOfAcksAnswersForEach) {
  const Taken a = reserve("a");
  const Taken b = reserve("b");
  queue_.push({.topic = "u", .id = "c"});
  const Taken c = queue_.pop_one("u");
  const std::string too_long(2'000, 'x');
  const AckItem items[] = {{.lease = a.lease},     {.lease = "nonsense"},
                           {.lease = a.lease},     {.lease = c.lease},
                           {.lease = "u/m999"},    {.lease = b.lease, .outcome = too_long},
                           {.lease = "v/unknown"}, {.lease = b.lease, .outcome = "200 ok"}};
  const auto results = queue_.must<std::vector<Status>>(
      "ack", [&](auto reply) { queue_.queue().ack(queue_.now(), items, std::move(reply)); });
  ASSERT_EQ(results.size(), 8U);
  EXPECT_TRUE(results[0].ok());
  EXPECT_EQ(results[1].error().code, ErrorCode::kInvalid);
  EXPECT_EQ(results[2].error().code, ErrorCode::kStaleLease) << "the same lease twice";
  EXPECT_TRUE(results[3].ok());
  EXPECT_EQ(results[4].error().code, ErrorCode::kStaleLease);
  EXPECT_THAT(results[5].error().detail, HasSubstr("2000 bytes"));
  EXPECT_EQ(results[6].error().code, ErrorCode::kStaleLease);
  EXPECT_TRUE(results[7].ok());
  EXPECT_EQ(queue_.get("t", "b")->outcome, "200 ok");
  EXPECT_EQ(queue_.stats("t").tallies.of(Tally::kAcked), 2U);
  EXPECT_EQ(queue_.stats("u").tallies.of(Tally::kAcked), 1U);
  EXPECT_EQ(queue_.totals().tallies.of(Tally::kAcked), 3U);
}

TEST_F(LeasesTest, ALeaseOfAnotherTopicIsStale) {
  const Taken taken = reserve("a");
  EXPECT_EQ(queue_.ack("u" + taken.lease.substr(1)).error().code, ErrorCode::kStaleLease);
  EXPECT_TRUE(queue_.ack(taken.lease).ok());
}

TEST_F(LeasesTest, TheTopicSaysHowLongDoneJobsAreKept) {
  queue_.set("t", {.keep_done = Retention{Millis{0}, 0}});
  EXPECT_TRUE(queue_.ack(reserve("a").lease).ok());
  EXPECT_EQ(queue_.get("t", "a"), std::nullopt);

  queue_.set("t", {.keep_done = Retention{Millis{5'000}, 2}});
  for (const char* id : {"b", "c", "d"}) EXPECT_TRUE(queue_.ack(reserve(id).lease).ok());
  EXPECT_EQ(queue_.get("t", "b"), std::nullopt) << "two are kept";
  EXPECT_EQ(queue_.state_of("t", "d"), JobState::kDone);
  queue_.run_to(at(5'000));
  EXPECT_EQ(queue_.get("t", "d"), std::nullopt) << "for five seconds";
}

// ---- nack

TEST_F(LeasesTest, NackRetriesByTheTopicsBackoff) {
  queue_.set("t", {.attempts = 3, .backoff = StepBackoff{{Millis{10}, Millis{20}}}});
  Taken taken = reserve("a");
  Result<NackReceipt> receipt = queue_.nack({.lease = taken.lease, .reason = "boom"});
  EXPECT_EQ(receipt->outcome, NackOutcome::kRetried);
  EXPECT_EQ(receipt->retry_at, at(10));
  EXPECT_EQ(queue_.get("t", "a")->outcome, "boom");
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kDelayed);

  queue_.run_to(at(10));
  receipt = queue_.nack({.lease = queue_.pop_one("t").lease});
  EXPECT_EQ(receipt->retry_at, at(30));
  queue_.run_to(at(30));
  taken = queue_.pop_one("t");
  EXPECT_EQ(taken.job.attempts, 3U);
  receipt = queue_.nack({.lease = taken.lease, .reason = "boom again"});
  EXPECT_EQ(receipt->outcome, NackOutcome::kDead);
  EXPECT_EQ(receipt->retry_at, std::nullopt);
  const support::SeenJob dead = queue_.get("t", "a").value();
  EXPECT_EQ(dead.state, JobState::kDead);
  EXPECT_EQ(dead.outcome, "boom again");
  EXPECT_EQ(dead.until, at(30) + std::chrono::days{30}) << "the dead are kept for thirty days by default";
  const Tallies tallies = queue_.stats("t").tallies;
  EXPECT_EQ(tallies.of(Tally::kNacked), 3U);
  EXPECT_EQ(tallies.of(Tally::kDied), 1U);
  EXPECT_EQ(tallies.of(Tally::kPopped), 3U);
}

TEST_F(LeasesTest, TheJobsOwnPolicyGoesBeforeTheTopics) {
  queue_.set("t", {.attempts = 1});
  const Taken taken = reserve("a", {.attempts = 2, .backoff = StepBackoff{{Millis{77}}}});
  EXPECT_EQ(queue_.nack({.lease = taken.lease})->retry_at, at(77));
  EXPECT_EQ(queue_.nack({.lease = reserve("b").lease})->outcome, NackOutcome::kDead);
}

TEST_F(LeasesTest, NackMayGiveItsOwnDelayOrGiveUp) {
  EXPECT_EQ(queue_.nack({.lease = reserve("a").lease, .delay = Millis{5}})->retry_at, at(5));
  EXPECT_EQ(queue_.nack({.lease = reserve("b").lease, .delay = Millis{0}})->retry_at, at(0));
  EXPECT_EQ(queue_.state_of("t", "b"), JobState::kReady);
  EXPECT_EQ(queue_.cancel("t", "b"), CancelOutcome::kCancelled);
  EXPECT_EQ(queue_.nack({.lease = reserve("c").lease, .dead = true})->outcome, NackOutcome::kDead);
}

TEST_F(LeasesTest, ABatchOfNacksAnswersForEach) {
  const Taken a = reserve("a");
  const Taken b = reserve("b");
  const Taken c = reserve("c");
  EXPECT_TRUE(queue_.ack(b.lease).ok());
  EXPECT_EQ(queue_.cancel("t", "c"), CancelOutcome::kReserved);
  const NackItem items[] = {{.lease = b.lease},
                            {.lease = a.lease, .delay = Millis{5}},
                            {.lease = "nonsense"},
                            {.lease = a.lease},
                            {.lease = c.lease, .delay = Millis{-5}},
                            {.lease = c.lease},
                            {.lease = a.lease, .reason = "a\x01z"}};
  const auto results = queue_.must<std::vector<Result<NackReceipt>>>(
      "nack", [&](auto reply) { queue_.queue().nack(queue_.now(), items, std::move(reply)); });
  EXPECT_EQ(results[0].error().code, ErrorCode::kStaleLease);
  EXPECT_EQ(results[1]->retry_at, at(5));
  EXPECT_EQ(results[2].error().code, ErrorCode::kInvalid);
  EXPECT_EQ(results[3].error().code, ErrorCode::kStaleLease) << "the same lease twice";
  EXPECT_THAT(results[4].error().detail, HasSubstr("delay"));
  EXPECT_EQ(results[5]->outcome, NackOutcome::kCancelled) << "it was taken back, so it is not retried";
  EXPECT_THAT(results[6].error().detail, HasSubstr("reason"));
  EXPECT_EQ(queue_.get("t", "c"), std::nullopt);
  EXPECT_EQ(queue_.stats("t").tallies.of(Tally::kCancelled), 1U);
}

// ---- extend

TEST_F(LeasesTest, ExtendMovesTheDeadline) {
  const Taken taken = reserve("a");
  queue_.run_to(at(50'000));
  EXPECT_EQ(*queue_.extend({.lease = taken.lease}), at(110'000)) << "by the topic's lease, from now";
  queue_.run_to(at(100'000));
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kReserved);
  EXPECT_EQ(*queue_.extend({.lease = taken.lease, .duration = std::chrono::minutes{30}}), at(1'900'000));
  EXPECT_EQ(*queue_.extend({.lease = taken.lease}), at(1'900'000)) << "without a duration it never shortens";
  EXPECT_EQ(*queue_.extend({.lease = taken.lease, .duration = Millis{500}}), at(100'500));
  queue_.run_to(at(100'500));
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kDelayed);
  EXPECT_EQ(queue_.extend({.lease = taken.lease}).error().code, ErrorCode::kStaleLease);
  EXPECT_EQ(queue_.extend({.lease = taken.lease, .duration = Millis{1}}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(queue_.extend({.lease = "nonsense"}).error().code, ErrorCode::kInvalid);
}

// ---- leases that run out

TEST_F(LeasesTest, ALeaseThatRunsOutIsAFailureLikeAnyOther) {
  queue_.set("t", {.attempts = 2, .backoff = StepBackoff{{Millis{250}}}, .lease = Millis{1'000}});
  const Taken taken = reserve("a");
  EXPECT_LE(queue_.run_to(at(999)), at(1'000));
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kReserved);
  EXPECT_EQ(queue_.run_to(at(1'000)), at(1'250));
  const support::SeenJob job = queue_.get("t", "a").value();
  EXPECT_EQ(job.state, JobState::kDelayed);
  EXPECT_EQ(job.outcome, "lease ran out");
  EXPECT_EQ(queue_.ack(taken.lease).error().code, ErrorCode::kStaleLease);

  queue_.run_to(at(1'250));
  queue_.pop_one("t");
  queue_.run_to(at(2'250));
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kDead);
  const Tallies tallies = queue_.stats("t").tallies;
  EXPECT_EQ(tallies.of(Tally::kExpired), 2U);
  EXPECT_EQ(tallies.of(Tally::kDied), 1U);
  EXPECT_EQ(tallies.of(Tally::kNacked), 0U);
}

TEST_F(LeasesTest, ACancelledJobWhoseLeaseRunsOutIsGone) {
  reserve("a");
  EXPECT_EQ(queue_.cancel("t", "a"), CancelOutcome::kReserved);
  queue_.run_to(at(60'000));
  EXPECT_EQ(queue_.get("t", "a"), std::nullopt);
  EXPECT_EQ(queue_.stats("t").tallies.of(Tally::kCancelled), 1U);
}

TEST_F(LeasesTest, JitterSpreadsJobsThatFailedTogether) {
  queue_.set("t", {.backoff = ExponentialBackoff{Millis{100'000}, 2, Millis{1'000'000}, 0.5}});
  std::set<Moment> retries;
  for (int i = 0; i < 20; ++i) {
    const Taken taken = reserve("job " + std::to_string(i));
    const Moment retry_at = queue_.nack({.lease = taken.lease})->retry_at.value();
    EXPECT_GE(retry_at, at(50'000));
    EXPECT_LE(retry_at, at(100'000));
    retries.insert(retry_at);
  }
  EXPECT_GT(retries.size(), 10U);
}

// ---- the text of a lease

TEST(LeaseText, IsReadBackAsItWasWritten) {
  Arena storage;
  const Attempt attempts[] = {{.number = 1},
                              {.number = UINT32_MAX, .limit = UINT32_MAX, .delay = Limits::kMaxDelay},
                              {.number = 3, .limit = 0},
                              {.number = 3, .delay = Millis{0}}};
  for (const Attempt& attempt : attempts) {
    const std::string_view text = lease_text({"t", "m1"}, attempt, storage);
    const HeldLease lease = parse_lease(text).value();
    EXPECT_EQ(lease.ref.topic, "t");
    EXPECT_EQ(lease.ref.lease, "m1");
    EXPECT_EQ(lease.attempt, attempt) << text;
  }
  EXPECT_EQ(lease_text({"t", "m1"}, {.number = 2}, storage), "t/m1/2");
  EXPECT_EQ(lease_text({"t", "m1"}, attempts[1], storage), "t/m1/4294967295a4294967295d3155760000000");
}

TEST(LeaseText, OfAnEarlierVersionIsAFirstAttempt) {
  const HeldLease lease = parse_lease("t/m1").value();
  EXPECT_EQ(lease.ref.lease, "m1");
  EXPECT_EQ(lease.attempt, Attempt{});
}

TEST(LeaseText, SaysSoWhenItIsNoLease) {
  for (const std::string_view bad :
       {"", "/", "//", "t", "t/", "t//1", "/m1", "/m1/1", "t/m1/", "t/m1/x", "t/m1/-1", "t/m1/1a", "t/m1/1d",
        "t/m1/1d-5", "t/m1/1d3155760000001", "t/m1/1d1a1", "t/m1/4294967296", "t/m1/1/1", "t/m1/1 "}) {
    const Result<HeldLease> lease = parse_lease(bad);
    ASSERT_FALSE(lease.ok()) << bad;
    EXPECT_THAT(lease.error().detail, testing::StartsWith("lease"));
  }
}

}  // namespace
}  // namespace delayq
