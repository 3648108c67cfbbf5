// The scripts by which servers share a deployment and process what is due, each one alone on a real Redis.
#include "tests/support/redis_life_scripts.h"

namespace delayq::redis {
namespace {

using support::text_of;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class DrivingScripts : public LifeScriptTest {
 protected:
  resp::Value head(std::string_view who, int64_t now = kNow, std::string_view hold = "60000",
                   std::string_view most = "10") {
    const std::string moment = std::to_string(now);
    const std::vector<std::string_view> arguments{moment, who, hold, most};
    const std::string next = key(Key::kNext);
    return run(scripts::kHead, {driver_key_, next, alarm_}, arguments);
  }
  resp::Value resign(std::string_view who) {
    return run(scripts::kResign, std::vector<std::string_view>{driver_key_}, std::vector{who});
  }
  resp::Value meta(std::string_view version, std::string_view shards, std::string_view tags = {}) {
    const std::string meta = keys_.shared("meta");
    const std::vector<std::string_view> arguments{version, shards, tags};
    return run(scripts::kMeta, std::vector<std::string_view>{meta}, arguments);
  }

  /// A server renews its claims of three groups of partitions; it has stopped to read the groups `stopped`.
  std::string read_groups(std::string_view who, std::vector<std::string_view> stopped = {},
                          int64_t now = kNow, bool goes = false, std::string_view hold = "60000") {
    const std::string readers = keys_.shared("readers");
    const std::string moment = std::to_string(now);
    std::vector<std::string_view> arguments{moment, who, hold, goes ? "1" : "0"};
    arguments.insert(arguments.end(), stopped.begin(), stopped.end());
    return text_of(run(scripts::kReaders, {readers, claims_.at(0), claims_.at(1), claims_.at(2)}, arguments));
  }

  const std::vector<std::string> claims_{keys_.shared("claim1"), keys_.shared("claim2"),
                                         keys_.shared("claim3")};
  const std::string driver_key_ = keys_.in_shard(0, "driver");
  const std::string alarm_ = keys_.in_shard(0, "alarm");
};

// ---- head and resign

TEST_F(DrivingScripts, HeadGivesAFreeShardToWhoAsksFirst) {
  EXPECT_EQ(text_of(head("a")), "[1 60000  ]");
  EXPECT_EQ(command({"GET", driver_key_}), "a");
  const resp::Value other = head("b");
  EXPECT_EQ(other.items.at(0).integer, 0);
  EXPECT_GT(other.items.at(1).integer, 0) << "how long to wait";
  EXPECT_LE(other.items.at(1).integer, 60'000);
  EXPECT_EQ(command({"GET", driver_key_}), "a");
}

TEST_F(DrivingScripts, HeadRenewsItsOwnHold) {
  head("a", kNow, "1000");
  head("a", kNow, "90000");
  EXPECT_GT(server().command({"PTTL", driver_key_}).integer, 80'000);
  head("b", kNow, "900000");
  EXPECT_LE(server().command({"PTTL", driver_key_}).integer, 90'000) << "another cannot";
}

TEST_F(DrivingScripts, HeadTakesOverWhenAHoldHasEnded) {
  head("a", kNow, "1");
  support::wait_until("the end of a's hold", [&] { return head("b").items.at(0).integer == 1; });
  EXPECT_EQ(command({"GET", driver_key_}), "b");
  EXPECT_EQ(head("a").items.at(0).integer, 0);
}

TEST_F(DrivingScripts, HeadTellsTheDriverWhatIsDue) {
  for (const char* topic : {"c", "a", "b", "d"}) {
    JobSpec each = spec("x", kNow + (*topic - 'a'));
    each.topic = topic;
    push({each}, kNow - 1);
  }
  EXPECT_EQ(text_of(head("me", kNow - 1)), "[1 60000 1700000000000 ]") << "none yet";
  EXPECT_EQ(text_of(head("me", kNow + 2)), "[1 60000 1700000000000  da db dc]");
  EXPECT_EQ(text_of(head("me", kNow + 2, "60000", "2")), "[1 60000 1700000000000  da db]") << "bounded";
  EXPECT_EQ(head("other", kNow + 2).items.size(), 4U) << "no business of another";
}

TEST_F(DrivingScripts, HeadTellsTheDriverWhenAScheduleIsDue) {
  server().command({"ZADD", alarm_, std::to_string(kNow + 7), "nightly"});
  EXPECT_EQ(text_of(head("me")), "[1 60000  1700000000007]");
  server().command({"DEL", alarm_});
  server().command({"SET", alarm_, "mine"});
  EXPECT_EQ(text_of(head("me")), "[1 60000  ]") << "jobs are looked after whatever that is";
}

TEST_F(DrivingScripts, ResignIsForTheDriver) {
  EXPECT_EQ(text_of(resign("a")), "0");
  head("a");
  EXPECT_EQ(text_of(resign("b")), "0");
  EXPECT_EQ(command({"GET", driver_key_}), "a");
  EXPECT_EQ(text_of(resign("a")), "1");
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_EQ(head("b").items.at(0).integer, 1) << "at once";
}

// ---- due

TEST_F(DrivingScripts, DueMovesNoMoreThanItMay) {
  for (int i = 0; i < 5; ++i) push({spec(std::to_string(i), kNow + i)}, kNow - 1);
  listen();
  EXPECT_EQ(text_of(run(scripts::kDue, "t", {"2"}, kNow + 3)), "[1700000000002 1]");
  EXPECT_THAT(line(), ElementsAre("0", "1"));
  EXPECT_EQ(members(Key::kDelay), "[2 3 4]");
  EXPECT_EQ(scores(Key::kNext), "[dt 1700000000002]") << "it is due still";
  EXPECT_EQ(text_of(run(scripts::kDue, "t", {"1000"}, kNow + 3)), "[1700000000004 1]");
  EXPECT_THAT(line(), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(news(), ElementsAre("r0@me:0t")) << "told once: the line was empty";
  EXPECT_EQ(text_of(run(scripts::kDue, "t", {"1000"}, kNow + 4)), "[1]") << "nothing is to be looked at";
  EXPECT_EQ(command({"EXISTS", key(Key::kDelay), key(Key::kNext)}), "0");
}

TEST_F(DrivingScripts, DueMovesEachToItsOutlet) {
  push({spec("own"), spec("called").called_back()});
  listen();
  EXPECT_EQ(text_of(run(scripts::kDue, "t", {"10"}, kNow + 500)), "[3]");
  EXPECT_THAT(line(), ElementsAre("own"));
  EXPECT_THAT(line(Key::kReadyCallback), ElementsAre("called"));
  EXPECT_THAT(news(), UnorderedElementsAre("r0@me:0t", "r0@me:1t"));
}

TEST_F(DrivingScripts, DueOfMoreThanAThousand) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 1'200; ++i) jobs.push_back(spec(std::to_string(i), kNow + 1));
  push(jobs);
  run(scripts::kDue, "t", {"1000"}, kNow + 1);
  EXPECT_EQ(command({"ZCARD", key(Key::kReady)}), "1000");
  run(scripts::kDue, "t", {"1000"}, kNow + 1);
  EXPECT_EQ(command({"ZCARD", key(Key::kReady)}), "1200");
}

TEST_F(DrivingScripts, DueOfLargeJobsIsManyCalls) {
  std::vector<JobSpec> jobs;
  for (int i = 10; i < 50; ++i)
    jobs.push_back(spec(std::to_string(i), kNow + 1).with_body(std::string(300'000, 'x')));
  push(jobs);
  const std::string due = std::to_string(kNow + 1);
  EXPECT_EQ(text_of(run(scripts::kDue, "t", {"1000"}, kNow + 1)), "[" + due + " 1]") << "it is due still";
  EXPECT_EQ(command({"ZCARD", key(Key::kReady)}), "14") << "more than 4 MiB are not read at once";
  EXPECT_EQ(command({"ZCARD", key(Key::kDelay)}), "26");
  run(scripts::kDue, "t", {"1000"}, kNow + 1);
  EXPECT_EQ(text_of(run(scripts::kDue, "t", {"1000"}, kNow + 1)), "[1]");
  EXPECT_EQ(command({"ZCARD", key(Key::kReady)}), "40");
}

TEST_F(DrivingScripts, AnIdWithoutARecordIsInNobodysWay) {
  push({spec("a", kNow + 1), spec("b", kNow + 1)});
  lease_of(spec("c", kNow), kNow + 1);
  const std::string d = lease_of(spec("d", kNow), kNow + 1);
  server().command({"HDEL", key(Key::kPool), "a", "c"});
  EXPECT_EQ(run(scripts::kDue, "t", {"10"}, kNow + 1).items.at(1).integer, 1);
  EXPECT_THAT(line(), ElementsAre("b"));
  EXPECT_EQ(said(run(scripts::kEnded, "t", {"10", "5000"}, kNow + 1)), "[" + d + " 1 ]");
  EXPECT_EQ(members(Key::kHeld), "[d]");
}

TEST_F(DrivingScripts, DueOfATopicThatHasNone) {
  server().command({"ZADD", key(Key::kNext), std::to_string(kNow), "dt"});  // a leftover entry
  EXPECT_EQ(text_of(run(scripts::kDue, "t", {"10"})), "[0]");
  EXPECT_THAT(names(), IsEmpty());
}

// ---- ended

TEST_F(DrivingScripts, EndedTellsEachLeaseAndPutsItOff) {
  const std::string a = lease_of(spec("a", kNow).with_options("how"), kNow + 10);
  lease_of(spec("b", kNow), kNow + 20);
  EXPECT_EQ(said(run(scripts::kEnded, "t", {"10", "5000"}, kNow + 9)), "[]");
  EXPECT_EQ(text_of(run(scripts::kEnded, "t", {"10", "5000"}, kNow + 10)),
            "[1700000000020 0 " + a + " 1 how]");
  EXPECT_EQ(scores(Key::kLease), "[b 1700000000020 a 1700000005010]");
  EXPECT_EQ(said(run(scripts::kEnded, "t", {"10", "5000"}, kNow + 11)), "[]") << "not at once again";
  EXPECT_EQ(run(scripts::kEnded, "t", {"10", "5000"}, kNow + 5'010).items.size(), 2U + 2 * 3U)
      << "when nobody resolved it";
  EXPECT_EQ(record_of("a").state, JobState::kReserved) << "what becomes of it others decide";
}

TEST_F(DrivingScripts, EndedKnowsALeaseThatWasExtended) {
  const std::string a = lease_of(spec("a", kNow), kNow + 10);
  server().command(
      {"ZADD", key(Key::kLease), std::to_string(kNow + 1), "a"});  // to be checked before its end
  EXPECT_EQ(text_of(run(scripts::kEnded, "t", {"10", "5000"}, kNow + 5)), "[1700000000010 0]");
  EXPECT_EQ(scores(Key::kLease), "[a 1700000000010]");
}

TEST_F(DrivingScripts, EndedIsBounded) {
  for (int i = 0; i < 5; ++i) lease_of(spec(std::to_string(i), kNow), kNow + i + 1);
  EXPECT_EQ(run(scripts::kEnded, "t", {"2", "5000"}, kNow + 10).items.size(), 2U + 2 * 3U);
  EXPECT_EQ(scores(Key::kNext), "[lt 1700000000003]") << "there are more";
  EXPECT_EQ(text_of(run(scripts::kEnded, "nobody", {"2", "5000"})), "[1700000000003 0]");
}

// ---- expire

TEST_F(DrivingScripts, ExpireForgetsNoMoreThanItMay) {
  for (int i = 0; i < 4; ++i) {
    const std::string id = std::to_string(i);
    Job each = job(id, i % 2 == 0 ? JobState::kDone : JobState::kDead);
    each.until = from_unix_ms(kNow + i + 1);
    store(each);
  }
  EXPECT_EQ(text_of(run(scripts::kExpire, "t", {"2"}, kNow + 3)), "[1700000000003 0]");
  EXPECT_EQ(members(Key::kKept), "[2 3]");
  EXPECT_EQ(members(Key::kDone), "[2]");
  EXPECT_EQ(members(Key::kDead), "[3]");
  EXPECT_EQ(members(Key::kTopics), "[t]");
  EXPECT_EQ(text_of(run(scripts::kExpire, "t", {"10"}, kNow + 3)), "[1700000000004 0]") << "one is not over";
  EXPECT_EQ(text_of(run(scripts::kExpire, "t", {"10"}, kNow + 4)), "[0]");
  EXPECT_THAT(names(), UnorderedElementsAre("seq")) << "the topic went with its last job";
}

// ---- meta

TEST_F(DrivingScripts, MetaHoldsForAllWhoComeLater) {
  EXPECT_EQ(text_of(meta("1", "4")), "[1 4 nil]");
  EXPECT_EQ(text_of(meta("2", "2", "7 9")), "[1 4 nil]");
  EXPECT_EQ(command({"HGETALL", keys_.shared("meta")}), "[version 1 shards 4]");
}

TEST_F(DrivingScripts, MetaHasTheTagsOfNewDeployments) {
  EXPECT_EQ(text_of(meta("2", "2", "7 9")), "[2 2 7 9]");
  EXPECT_EQ(text_of(meta("2", "2", "8 10")), "[2 2 7 9]");
  EXPECT_EQ(text_of(meta("1", "1")), "[2 2 7 9]");
}

// ---- rights

TEST_F(DrivingScripts, RightsLeavesNothingBehindAndMissesNothing) {
  const std::string trial = keys_.shared("trial");
  EXPECT_THAT(
      run(scripts::kRights, std::vector<std::string_view>{trial}, std::vector{std::string_view(channel_)})
          .items,
      IsEmpty());
  EXPECT_EQ(server().command({"EXISTS", trial}).integer, 0);
}

TEST_F(DrivingScripts, RightsTellsWhatTheUserMayNotCall) {
  const std::string all = keys_.shared("*");
  server().command(
      {"ACL", "SETUSER", "poor", "on", ">word", "~" + all, "resetchannels", "+@all", "-hscan", "-time"});
  net::redis::ClientOptions as_poor = options();
  as_poor.user = "poor";
  as_poor.password = "word";
  support::RedisDriver driver(as_poor);
  driver.connect();
  const std::string trial = keys_.shared("trial");
  const auto refused = driver.run(scripts::kRights, {trial}, {channel_});
  ASSERT_TRUE(refused.ok()) << to_string(refused.error());
  EXPECT_EQ(text_of(*refused), "[HSCAN PUBLISH TIME]");
  EXPECT_EQ(server().command({"EXISTS", trial}).integer, 0);
}

TEST_F(DrivingScripts, RightsDoesNotMindAFullMemory) {
  server().command({"CONFIG", "SET", "maxmemory", "1"});
  const std::string trial = keys_.shared("trial");
  const resp::Value refused =
      run(scripts::kRights, std::vector<std::string_view>{trial}, std::vector{std::string_view(channel_)});
  server().command({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_THAT(refused.items, IsEmpty());
}

TEST_F(DrivingScripts, MetaIsReadWhenMemoryIsFull) {
  meta("1", "4");
  server().command({"CONFIG", "SET", "maxmemory", "1"});
  const std::string said = text_of(meta("1", "8"));
  server().command({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(said, "[1 4 nil]");
}

// ---- readers

TEST_F(DrivingScripts, ReadersGivesAllGroupsToTheOnlyServer) {
  EXPECT_EQ(read_groups("a"), "[1 1 1]");
  EXPECT_EQ(read_groups("a"), "[1 1 1]") << "renewed";
  for (const std::string& claim : claims_) EXPECT_EQ(command({"GET", claim}), "a");
}

TEST_F(DrivingScripts, ReadersHandsAGroupOverOnlyWhenItsServerHasStoppedToReadIt) {
  read_groups("a");
  EXPECT_EQ(read_groups("b"), "[0 0 0]") << "all are claimed";
  EXPECT_EQ(read_groups("a"), "[1 1 2]") << "one is more than its share";
  EXPECT_EQ(read_groups("b"), "[0 0 0]") << "it may still be read";
  EXPECT_EQ(read_groups("a", {"3"}), "[1 1 0]");
  EXPECT_EQ(read_groups("b"), "[0 0 1]");
  EXPECT_EQ(read_groups("b", {"1"}), "[0 0 1]") << "only the owner gives a group back";
  EXPECT_EQ(read_groups("a"), "[1 1 0]") << "the shares are as even as they can be";
}

TEST_F(DrivingScripts, ReadersTakesOverFromAServerThatGoes) {
  read_groups("a");
  read_groups("b");
  EXPECT_EQ(read_groups("a", {}, kNow, true), "[0 0 0]");
  EXPECT_EQ(read_groups("b"), "[1 1 1]");
}

TEST_F(DrivingScripts, ReadersTakesOverFromAServerThatDied) {
  read_groups("a", {}, kNow, false, "1");
  support::wait_until("the end of a's claims", [&] { return read_groups("b", {}, kNow + 1) == "[1 1 1]"; });
  EXPECT_EQ(read_groups("a", {}, kNow + 2), "[0 0 0]");
}

}  // namespace
}  // namespace delayq::redis
