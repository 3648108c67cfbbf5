// Records that are lost without the engine's knowledge (evicted, deleted by hand), and how each script
// handles the traces that are left. On a real Redis.
#include "tests/support/redis_life_scripts.h"

namespace delayq::redis {
namespace {

using support::text_of;
using testing::ElementsAre;
using testing::IsEmpty;

/// Jobs "a" and "b" in a state; then the record of "a" is removed, or both records.
class Traces : public LifeScriptTest, public testing::WithParamInterface<int> {
 protected:
  static constexpr int kDelayed = 0;
  static constexpr int kReady = 1;
  static constexpr int kReserved = 2;
  static constexpr int kDone = 3;
  static constexpr int kDead = 4;

  void make(int state, const std::vector<std::string>& ids = {"a", "b"}) {
    for (const std::string& id : ids) {
      const JobSpec job = spec(id, state == kDelayed ? kNow + 500 : kNow).in_group("g");
      if (state < kReserved) {
        push({job});
        continue;
      }
      const std::string lease = lease_of(job, kNow + 1'000);
      leases_.push_back(lease);
      const std::string until = std::to_string(kNow + 2'000);
      if (state == kDone) ack({lease}, until, "10");
      if (state == kDead) run(scripts::kNack, "t", words_of(lease, {"", until, "10", "why", "0"}));
    }
  }
  void lose_a() { command({"HDEL", key(Key::kPool), "a"}); }
  void lose_all() { command({"DEL", key(Key::kPool)}); }

  std::vector<std::string> list(int state) {
    const resp::Value page =
        run(scripts::kList, "t", {std::to_string(state), "10", "1", "", "", "100", "100000", "", "", ""});
    std::vector<std::string> ids;
    for (size_t i = 3; i + 1 < page.items.size(); i += 2) ids.push_back(page.items[i].text);
    return ids;
  }
  resp::Value purge(int state, const std::string& most = "10") {
    return run(scripts::kPurge, "t", {std::to_string(state), most, "100000"});
  }
  /// All keys of the topic that are left.
  std::vector<std::string> of_topic() {
    std::vector<std::string> found;
    for (const std::string& name : names()) {
      if (name.ends_with(":t")) found.push_back(name);
    }
    return found;
  }

  std::vector<std::string> leases_;
};

TEST_P(Traces, AListPassesOverThem) {
  make(GetParam());
  lose_a();
  EXPECT_THAT(list(GetParam()), ElementsAre("b"));
  const std::string all = text_of(run(scripts::kCounts, "t", {"100"}));
  EXPECT_EQ(run(scripts::kCounts, "t", {"100"}).items.at(2 + static_cast<size_t>(GetParam())).integer, 1)
      << "and removes them: " << all;
  lose_all();
  EXPECT_THAT(list(GetParam()), IsEmpty());
  EXPECT_THAT(of_topic(), IsEmpty());
  EXPECT_EQ(members(Key::kTopics), "[]");
}

TEST_P(Traces, APurgePassesOverThem) {
  make(GetParam());
  lose_a();
  EXPECT_EQ(said(purge(GetParam())), "[1 0]");
  EXPECT_THAT(of_topic(), IsEmpty());
  make(GetParam());
  lose_all();
  EXPECT_EQ(said(purge(GetParam())), "[0 0]");
  EXPECT_THAT(of_topic(), IsEmpty());
}

TEST_P(Traces, APurgeGoesOnBehindThem) {
  make(GetParam());
  lose_a();
  const resp::Value first = purge(GetParam(), "1");
  const resp::Value second = purge(GetParam(), "1");
  EXPECT_EQ(first.items.at(2).integer + second.items.at(2).integer, 1);
  EXPECT_EQ(first.items.at(3).integer, 1) << "there may be more";
  EXPECT_THAT(of_topic(), IsEmpty());
}

TEST_P(Traces, OfAllJobsAreGoneWithTheNextLook) {
  make(GetParam());
  lose_all();
  EXPECT_EQ(said(run(scripts::kCounts, "t", {"100"})), "[0 0 0 0 0 -1 0 0]");
  EXPECT_THAT(of_topic(), IsEmpty());
  make(GetParam());
  lose_all();
  EXPECT_EQ(run_over(scripts::kTopics, {"", "10", "100"}).items.at(1).items.size(), 0U);
  EXPECT_THAT(of_topic(), IsEmpty());
}

TEST_P(Traces, OfAllJobsAreInNobodysWayWhoPushesTheSameId) {
  make(GetParam());
  lose_all();
  EXPECT_EQ(said(push({spec("a", kNow)})), "[]") << "created";
  EXPECT_EQ(said(run(scripts::kCounts, "t", {"100"})).substr(0, 10), "[0 1 0 0 0");
  const resp::Value taken = take({});
  EXPECT_THAT(ids(taken), ElementsAre("a")) << "once";
  // The new job has neither the lease deadline nor the retention of the old one.
  EXPECT_EQ(said(run(scripts::kEnded, "t", {"10", "5000"}, kNow + 2'000)), "[]");
  run(scripts::kExpire, "t", {"10"}, kNow + 3'000);
  EXPECT_EQ(record_of("a").state, JobState::kReserved);
  for (const std::string& lease : leases_) EXPECT_EQ(said(ack({lease})), "[1]");
}

TEST_P(Traces, OfAllJobsAreInNobodysWayWhoRestoresTheSameId) {
  make(GetParam());
  lose_all();
  EXPECT_EQ(said(store(job("a", JobState::kDead))).substr(0, 4), "[0 4");
  EXPECT_EQ(said(run(scripts::kCounts, "t", {"100"})).substr(0, 10), "[0 0 0 0 1");
}

TEST_P(Traces, TimePassesOverThem) {
  make(GetParam());
  lose_a();
  run(scripts::kDue, "t", {"10"}, kNow + 500);
  run(scripts::kEnded, "t", {"10", "5000"}, kNow + 1'000);
  run(scripts::kExpire, "t", {"10"}, kNow + 2'000);
  EXPECT_EQ(command({"ZSCORE", key(Key::kDelay), "a"}), command({"GET", "none"}));
  EXPECT_EQ(command({"ZSCORE", key(Key::kLease), "a"}), command({"GET", "none"}));
  EXPECT_EQ(command({"ZSCORE", key(Key::kHeld), "a"}), command({"GET", "none"}));
  EXPECT_EQ(command({"ZSCORE", key(Key::kKept), "a"}), command({"GET", "none"}));
}

TEST_P(Traces, OtherVerbsSayThatThereIsNoSuchJob) {
  make(GetParam());
  lose_a();
  EXPECT_EQ(said(run(scripts::kCancel, "t", {"a"})), "[4]");
  EXPECT_EQ(said(run(scripts::kReschedule, "t", {"a", "5"})), "[3]");
  EXPECT_EQ(said(run(scripts::kRedrive, "t", {"a"})), "[0]");
  EXPECT_THAT(run(scripts::kGet, "t", {"a"}).items, IsEmpty());
  if (GetParam() == kReserved) {
    EXPECT_EQ(said(ack({leases_[0]})), "[1]");
  }
  const resp::Value cancelled = run_over(scripts::kCancelGroup, {"g", "10", "100000", "0", "*"});
  EXPECT_EQ(cancelled_by(cancelled), GetParam() < kReserved ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(States, Traces, testing::Range(0, 5));

TEST_F(Traces, ATakeGoesOnBehindThem) {
  make(kReady, {"a", "b", "c"});
  lose_a();
  Wish one;
  one.count = 1;
  const resp::Value first = take(one);
  EXPECT_THAT(ids(first), IsEmpty());
  EXPECT_TRUE(is_cut(first)) << "it is to ask again";
  EXPECT_THAT(ids(take(one)), ElementsAre("b"));
  EXPECT_THAT(ids(take({})), ElementsAre("c"));
}

TEST_F(Traces, ARedriveGoesOnBehindThem) {
  make(kDead, {"a", "b", "c"});
  lose_a();
  EXPECT_EQ(said(run(scripts::kRedriveOldest, "t", {"2", "100000"})), "[1 1]");
  EXPECT_EQ(said(run(scripts::kRedriveOldest, "t", {"2", "100000"})), "[1 0]");
  EXPECT_THAT(line(), ElementsAre("b", "c"));
  purge(kReady);
  make(kDead, {"d"});
  lose_all();
  EXPECT_EQ(said(run(scripts::kRedriveOldest, "t", {"2", "100000"})), "[0 0]");
  EXPECT_THAT(of_topic(), IsEmpty());
}

TEST_F(Traces, InLineIsNotTheJobThatHasTheIdNow) {
  make(kReady, {"a"});
  lose_a();
  push({spec("b", kNow)});  // so that the pool exists
  push({spec("a", kNow)});
  EXPECT_THAT(ids(take({})), testing::UnorderedElementsAre("b", "a")) << "not twice";
  EXPECT_EQ(command({"EXISTS", key(Key::kReady)}), "0");
}

TEST_F(Traces, OfADelayedJobDoesNotMakeAReservedOneReady) {
  make(kDelayed, {"a", "b"});
  lose_a();
  push({spec("a", kNow)});
  EXPECT_THAT(ids(take({})), ElementsAre("a"));
  command({"ZADD", key(Key::kDelay), std::to_string(kNow), "a"});
  run(scripts::kDue, "t", {"10"}, kNow + 1);
  EXPECT_THAT(line(), IsEmpty());
}

TEST_F(Traces, AKeptJobThatIsLostDoesNotEndTheOneThatHasItsIdNow) {
  for (const int state : {kDone, kDead}) {
    for (const bool alone : {true, false}) {
      make(state);
      lose_a();
      if (alone) {
        push({spec("a", kNow + 90'000)});
      } else {
        push({spec("a", kNow + 90'000), spec("b", kNow + 90'000)});
      }
      run(scripts::kExpire, "t", {"100"}, kNow + 3'000);
      EXPECT_EQ(record_of("a").due, from_unix_ms(kNow + 90'000)) << state << alone;
      EXPECT_EQ(members(state == kDone ? Key::kDone : Key::kDead), "[]");
      EXPECT_EQ(members(Key::kKept), "[]");
      for (const char* live : {"a", "b"}) run(scripts::kCancel, "t", {live});
    }
  }
}

TEST_F(Traces, AGroupDoesNotTakeTheJobThatHasTheIdNow) {
  make(kDelayed);
  lose_a();
  push({spec("a")});  // in no group
  EXPECT_EQ(cancelled_by(run_over(scripts::kCancelGroup, {"g", "10", "100000", "0", "*"})), 1);
  EXPECT_EQ(record_of("a").group, "");
}

TEST_F(Traces, LeasesEndThoughTheirNumbersAreLost) {
  make(kReserved, {"a"});
  command({"DEL", key(Key::kHeld)});
  EXPECT_EQ(said(ack({leases_[0]})), "[1]") << "nobody knows whose it is";
  EXPECT_EQ(said(run(scripts::kEnded, "t", {"10", "5000"}, kNow + 1'000)), "[" + leases_[0] + " 1 ]");
  EXPECT_EQ(said(run(scripts::kNack, "t", words_of(leases_[0], {std::to_string(kNow), "0", "0", "", "1"}),
                     kNow + 1'000)),
            "[0]");
  EXPECT_THAT(line(), ElementsAre("a"));
}

TEST_F(Traces, KeysOfAnotherProgramAreNoTraces) {
  for (const Key which : {Key::kDelay, Key::kReady, Key::kDone, Key::kLease}) {
    command({"SET", key(which), "mine"});
    EXPECT_THROW(push({spec("a")}), std::runtime_error);
    EXPECT_THROW(run(scripts::kCounts, "t", {"100"}), std::runtime_error);
    EXPECT_EQ(command({"GET", key(which)}), "mine");
    command({"DEL", key(which)});
  }
}

// ---- changes that were not published

TEST_F(Traces, MissedTellsWhichTopicsHaveReadyJobs) {
  for (const char* topic : {"a", "b", "c", "d"}) {
    JobSpec job = spec("x", *topic == 'b' ? kNow + 500 : kNow);
    job.topic = topic;
    if (*topic != 'a') job.outlet = Outlet::kCallback;
    push({job});
  }
  listen();
  EXPECT_EQ(text_of(run_over(scripts::kMissed, {"", "3"})), "[nil [a 1 c 2] c []]");
  EXPECT_EQ(text_of(run_over(scripts::kMissed, {"c", "3"})), "[nil [d 2]  []]");
  EXPECT_THAT(news(), IsEmpty());
}

TEST_F(Traces, MissedFindsWhatIsToBeLookedAt) {
  make(kDelayed, {"a"});
  make(kReserved, {"b"});
  make(kDead, {"c"});
  const std::string before = scores(Key::kNext);
  command({"DEL", key(Key::kNext)});
  EXPECT_EQ(run_over(scripts::kMissed, {"", "3"}).items.at(0).text, std::to_string(kNow + 500));
  EXPECT_EQ(scores(Key::kNext), before);
}

}  // namespace
}  // namespace delayq::redis
