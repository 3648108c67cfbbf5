// Keys that are lost or overwritten by another program without the engine's knowledge. A script that fails
// leaves no job without a place, and mend.lua puts back jobs that have none. On a real Redis.
#include "tests/support/redis_life_scripts.h"

namespace delayq::redis {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Damage : public LifeScriptTest {
 protected:
  void overwrite(Key which) {
    command({"DEL", key(which)});
    command({"SET", key(which), "mine"});
  }
  void restore(Key which) { command({"DEL", key(which)}); }
  void lose(Key which) { command({"DEL", key(which)}); }

  /// Topics with jobs that have no place.
  std::vector<std::string> damaged() {
    const resp::Value answer = run_over(scripts::kMissed, {"", "10"});
    std::vector<std::string> topics;
    for (const resp::Value& topic : answer.items.at(3).items) topics.push_back(topic.text);
    return topics;
  }
  /// Returns how many jobs were put back.
  int64_t mend(int64_t now = kNow) {
    int64_t count = 0;
    std::string from = "0";
    do {
      const resp::Value answer = run(scripts::kMend, "t", {from, "2", "100000"}, now);
      from = answer.items.at(2).text;
      count += answer.items.at(3).integer;
    } while (from != "0");
    return count;
  }
  std::string dead_job(const std::string& id) {
    const std::string lease = lease_of(spec(id, kNow));
    run(scripts::kNack, "t", words_of(lease, {"", std::to_string(kNow + 2'000), "10", "why", "0"}));
    return id;
  }
};

class DamageToATake : public Damage, public testing::WithParamInterface<std::tuple<Key, int>> {};

TEST_P(DamageToATake, LeavesTheJobsInLine) {
  const auto [which, count] = GetParam();
  push({spec("a", kNow), spec("b", kNow + 500)});
  overwrite(which);
  Wish wish;
  wish.count = static_cast<uint32_t>(count);
  EXPECT_THROW(take(wish, kNow + 500), std::runtime_error);
  restore(which);
  EXPECT_THAT(damaged(), IsEmpty());
  EXPECT_THAT(ids(take({}, kNow + 500)), ElementsAre("a", "b"));
  EXPECT_EQ(record_of("a").attempts, 1U);
}

INSTANTIATE_TEST_SUITE_P(Keys, DamageToATake,
                         testing::Combine(testing::Values(Key::kSequence, Key::kHeld, Key::kLease),
                                          testing::Values(1, 10, 100)));

class DamageToAPush : public Damage, public testing::WithParamInterface<Key> {};

TEST_P(DamageToAPush, StoresNothing) {
  overwrite(GetParam());
  const auto both = {spec("a", kNow).in_group("g"), spec("b", kNow + 500)};
  EXPECT_THROW(push(both), std::runtime_error);
  EXPECT_THROW(push({spec("a", GetParam() == Key::kReady ? kNow : kNow + 500).nowhere_else()}),
               std::runtime_error);
  EXPECT_THAT(run(scripts::kGet, "t", {"a"}).items, IsEmpty());
  restore(GetParam());
  EXPECT_EQ(said(push(both)), "[]") << "both are created";
  EXPECT_THAT(ids(take({}, kNow + 500)), ElementsAre("a", "b")) << "once";
}

INSTANTIATE_TEST_SUITE_P(Keys, DamageToAPush,
                         testing::Values(Key::kReady, Key::kDelay, Key::kNext, Key::kSequence, Key::kTopics));

TEST_F(Damage, OfTheLineLeavesDueJobsDelayed) {
  push({spec("a")});
  overwrite(Key::kReady);
  EXPECT_THROW(run(scripts::kDue, "t", {"10"}, kNow + 500), std::runtime_error);
  restore(Key::kReady);
  EXPECT_THAT(ids(take({}, kNow + 500)), ElementsAre("a"));
}

TEST_F(Damage, IsNotSeenWhereThereIsNone) {
  dead_job("dead");
  ack({lease_of(spec("done", kNow))}, std::to_string(kNow + 2'000), "10");
  lease_of(spec("reserved", kNow));
  push({spec("delayed"), spec("ready", kNow)});
  EXPECT_THAT(damaged(), IsEmpty());
  EXPECT_EQ(mend(), 0);
}

TEST_F(Damage, OfTheDelayIsMended) {
  push({spec("a", kNow + 500), spec("b", kNow + 600), spec("c", kNow + 700)});
  lose(Key::kDelay);
  command({"DEL", key(Key::kNext)});
  EXPECT_THAT(damaged(), ElementsAre("t"));
  EXPECT_EQ(mend(kNow + 500), 3);
  EXPECT_THAT(line(), ElementsAre("a")) << "it is due meanwhile";
  EXPECT_EQ(scores(Key::kDelay), "[b 1700000000600 c 1700000000700]");
  EXPECT_EQ(scores(Key::kNext), "[dt 1700000000600]");
  EXPECT_THAT(damaged(), IsEmpty());
}

TEST_F(Damage, OfTheLineIsMended) {
  push({spec("a", kNow), spec("b", kNow - 1)});
  lose(Key::kReady);
  EXPECT_THAT(damaged(), ElementsAre("t"));
  EXPECT_EQ(mend(), 2);
  EXPECT_THAT(line(), ElementsAre("b", "a"));
  EXPECT_THAT(damaged(), IsEmpty());
}

TEST_F(Damage, OfLeasesIsMended) {
  for (const auto& lost :
       {std::vector{Key::kHeld}, std::vector{Key::kLease}, std::vector{Key::kHeld, Key::kLease}}) {
    const std::string lease = lease_of(spec("a", kNow), kNow + 1'000);
    for (const Key which : lost) lose(which);
    EXPECT_THAT(damaged(), ElementsAre("t"));
    EXPECT_EQ(mend(), 1);
    EXPECT_THAT(damaged(), IsEmpty());
    EXPECT_EQ(scores(Key::kLease), "[a 1700000001000]");
    EXPECT_EQ(scores(Key::kNext), "[lt 1700000001000]");
    EXPECT_EQ(said(ack({lease})), "[0]");
  }
}

TEST_F(Damage, OfKeptJobsIsMended) {
  for (const Key lost : {Key::kDead, Key::kKept}) {
    dead_job("a");
    lose(lost);
    EXPECT_THAT(damaged(), ElementsAre("t"));
    EXPECT_EQ(mend(), 1);
    EXPECT_THAT(damaged(), IsEmpty());
    EXPECT_EQ(members(Key::kDead), "[a]");
    run(scripts::kExpire, "t", {"10"}, kNow + 2'000);
    EXPECT_THAT(run(scripts::kGet, "t", {"a"}).items, IsEmpty());
  }
}

TEST_F(Damage, OfOneTopicIsNotInTheWayOfOthers) {
  push({spec("a")});
  overwrite(Key::kHeld);
  push({JobSpec("u", "b").due_at(from_unix_ms(kNow))});
  const resp::Value answer = run_over(scripts::kMissed, {"", "10"});
  EXPECT_EQ(support::text_of(answer.items.at(1)), "[u 1]");
}

}  // namespace
}  // namespace delayq::redis
