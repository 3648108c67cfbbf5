// The scripts that move bodies between Redis and the cold store, each one alone on a real Redis.
#include "tests/support/redis_life_scripts.h"

namespace delayq::redis {
namespace {

using support::text_of;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kDay = 86'400'000;

class ColdScripts : public LifeScriptTest {
 protected:
  ColdScripts() { sender_ = "0@me 600000"; }

  std::string cool_key() const { return keys_.in_shard(0, "cool"); }
  std::string warm_key() const { return keys_.in_shard(0, "warm"); }

  resp::Value cooling(int64_t now = kNow, const std::string& most = "10",
                      const std::string& bytes = "100000") {
    return run(scripts::kCooling, "", {most, bytes}, now);
  }
  /// Moves the body of a job. Returns 0 if that was done.
  int64_t cool(const std::string& id, const std::string& version = "7", const std::string& offset = "40",
               const std::string& hops = "0", const std::string& step = "3") {
    const Record record = record_of(id);
    return cool_as(id, std::to_string(record.sequence), version, offset, hops, step);
  }
  int64_t cool_as(const std::string& id, const std::string& sequence, const std::string& version,
                  const std::string& offset, const std::string& hops, const std::string& step = "3",
                  int64_t pushed = kNow) {
    return run(scripts::kCool, "",
               {"t", id, sequence, std::to_string(pushed), version, hops, step, "1", offset, "14"})
        .items.at(2)
        .integer;
  }
  int64_t warm(const std::string& id, const std::string& version = "7", int64_t now = kNow,
               const std::string& body = std::string(kBody)) {
    const resp::Value answer = run(scripts::kWarm, "", {"t", id, version, body}, now);
    told_ = text_of(answer.items.at(1));
    return answer.items.at(2).integer;
  }
  std::string peek(const std::string& id, const std::string& version, const std::string& hops,
                   const std::string& offset = "40") {
    return run(scripts::kPeek, "", {"t", id, version, hops, "3", "1", offset}).items.at(2).text;
  }
  resp::Value wishes(int64_t now = kNow, const std::string& most = "10",
                     const std::string& bytes = "100000") {
    return run(scripts::kWishes, "", {most, "5000", bytes}, now);
  }
  std::string wished() { return command({"ZRANGE", warm_key(), "0", "-1", "WITHSCORES"}); }
  std::string to_cool() { return command({"ZRANGE", cool_key(), "0", "-1"}); }
  void reschedule(const std::string& id, int64_t due, int64_t now = kNow) {
    EXPECT_EQ(said(run(scripts::kReschedule, "t", {id, std::to_string(due)}, now)), "[0]");
  }
  void push_cold(const std::string& id, int64_t due = kNow + kDay) {
    push({spec(id, due)});
    ASSERT_EQ(cool(id), 0);
  }

  std::string told_;
};

// ---- what is to be cooled

TEST_F(ColdScripts, APushNotesJobsThatAreDueMuchLater) {
  push({spec("near", kNow + 599'999), spec("far", kNow + 600'000), spec("now", kNow)});
  EXPECT_EQ(to_cool(), "[t/far]");
  push({spec("single", kNow + kDay).or_replace()});
  EXPECT_EQ(to_cool(), "[t/far t/single]");
}

TEST_F(ColdScripts, AServerWithoutAColdStoreNotesNothing) {
  sender_ = "0@me";
  push({spec("far", kNow + kDay)});
  EXPECT_EQ(command({"EXISTS", cool_key()}), "0");
}

TEST_F(ColdScripts, ARetryThatIsFarAwayIsNoted) {
  const std::string lease = lease_of(spec("a", kNow));
  run(scripts::kNack, "t", words_of(lease, {std::to_string(kNow + kDay), "0", "0", "", "0"}));
  EXPECT_EQ(to_cool(), "[t/a]");
}

TEST_F(ColdScripts, CoolingReturnsRecordsThoseThatAreDueLastFirst) {
  push({spec("a", kNow + kDay), spec("b", kNow + 2 * kDay), spec("c", kNow + 700'000)});
  const resp::Value all = cooling();
  ASSERT_EQ(all.items.size(), 12U);
  EXPECT_EQ(all.items[2].integer, 0) << "no more";
  EXPECT_EQ(all.items[3].text + "/" + all.items[4].text, "t/b");
  EXPECT_EQ(read_record(all.items[5].text)->body, kBody);
  EXPECT_EQ(all.items[7].text, "a");
  EXPECT_EQ(all.items[10].text, "c");
  EXPECT_EQ(cooling(kNow, "2").items.at(2).integer, 1) << "more";
  EXPECT_EQ(cooling(kNow, "10", "1").items.size(), 6U) << "bounded by bytes";
}

TEST_F(ColdScripts, CoolingForgetsWhatNeedNotBeMoved) {
  push({spec("gone", kNow + kDay), spec("soon", kNow + 600'001), spec("taken", kNow + kDay),
        spec("cold", kNow + kDay)});
  run(scripts::kCancel, "t", {"gone"});
  reschedule("taken", kNow);
  take({});
  ASSERT_EQ(cool("cold"), 0);
  server().command({"ZADD", cool_key(), std::to_string(kNow + kDay), "t/cold"});
  EXPECT_EQ(cooling(kNow + 10).items.size(), 3U);
  EXPECT_EQ(command({"EXISTS", cool_key()}), "0");
}

// ---- cool

TEST_F(ColdScripts, CoolReplacesTheBodyByItsPlace) {
  push({spec("a", kNow + kDay).in_group("g")});
  const Record before = record_of("a");
  EXPECT_EQ(cool("a"), 0);
  const Record record = record_of("a");
  ASSERT_TRUE(record.cold.has_value());
  EXPECT_EQ(*record.cold, (ColdBody{7, 0, {3, 1, 40}, 14}));
  EXPECT_EQ(record.body, "");
  EXPECT_EQ(record.group, "g");
  EXPECT_EQ(record.options, before.options);
  EXPECT_EQ(record.due, before.due);
  EXPECT_EQ(record.sequence, before.sequence);
  EXPECT_EQ(to_cool(), "[]");
  EXPECT_EQ(members(Key::kDelay), "[a]") << "it still waits";
}

TEST_F(ColdScripts, CoolTwiceChangesNothing) {
  push_cold("a");
  EXPECT_EQ(cool("a", "8", "41"), 1) << "produced again by another server";
  EXPECT_EQ(record_of("a").cold->version, 7U);
}

TEST_F(ColdScripts, CoolLeavesAJobThatWasReplacedMeanwhile) {
  push({spec("a", kNow + kDay)});
  const std::string sequence = std::to_string(record_of("a").sequence);
  push({spec("a", kNow + kDay).with_body("new").or_replace()});
  EXPECT_EQ(cool_as("a", sequence, "7", "40", "0"), 1);
  EXPECT_EQ(record_of("a").body, "new");
  EXPECT_EQ(to_cool(), "[t/a]") << "the new body is moved the next time";
}

TEST_F(ColdScripts, CoolTellsBodiesApartByTheTimeOfThePush) {
  // After a failover the same push order may be given out again.
  push({spec("a", kNow + kDay)});
  EXPECT_EQ(cool_as("a", std::to_string(record_of("a").sequence), "7", "40", "0", "3", kNow - 1), 1);
  EXPECT_FALSE(record_of("a").cold);
}

TEST_F(ColdScripts, CoolLeavesJobsThatDoNotWait) {
  push({spec("gone", kNow + kDay), spec("ready", kNow + kDay), spec("taken", kNow + kDay)});
  const std::string gone = std::to_string(record_of("gone").sequence);
  run(scripts::kCancel, "t", {"gone"});
  reschedule("taken", kNow);
  take({});
  reschedule("ready", kNow);
  EXPECT_EQ(cool_as("gone", gone, "7", "40", "0"), 1);
  EXPECT_EQ(cool("taken"), 1);
  EXPECT_EQ(cool("ready"), 1);
  EXPECT_EQ(record_of("ready").body, kBody);
  EXPECT_EQ(to_cool(), "[]");
}

TEST_F(ColdScripts, ABodyThatTheStoreRefusesStaysInRedisAndIsNotTriedAgain) {
  push({spec("a", kNow + kDay)});
  EXPECT_EQ(cool("a", "7", "0", "0", "-1"), 1);
  EXPECT_EQ(record_of("a").body, kBody);
  EXPECT_EQ(to_cool(), "[]");
}

TEST_F(ColdScripts, AMoveWithinTheStoreIsNotedByVersionAndHops) {
  push_cold("a");
  EXPECT_EQ(cool_as("a", "0", "8", "50", "1"), 1) << "another body";
  EXPECT_EQ(cool_as("a", "0", "7", "50", "1"), 0);
  EXPECT_EQ(record_of("a").cold->place.offset, 50);
  EXPECT_EQ(cool_as("a", "0", "7", "51", "1"), 1) << "moved twice";
  EXPECT_EQ(record_of("a").cold->place.offset, 50);
  ASSERT_EQ(warm("a"), 0);
  EXPECT_EQ(cool_as("a", "0", "7", "52", "2"), 1) << "the body is back by now";
  EXPECT_EQ(record_of("a").body, kBody);
}

// ---- peek

TEST_F(ColdScripts, PeekSaysWhenTheJobIsDue) {
  push_cold("a");
  EXPECT_EQ(peek("a", "7", "0"), std::to_string(kNow + kDay));
  reschedule("a", kNow + 2 * kDay);
  EXPECT_EQ(peek("a", "7", "0"), std::to_string(kNow + 2 * kDay));
}

TEST_F(ColdScripts, PeekKnowsRecordsThatAreNotNeeded) {
  push_cold("a");
  EXPECT_EQ(peek("a", "8", "0"), "") << "another version";
  EXPECT_EQ(peek("a", "7", "0", "41"), "") << "the same record twice";
  ASSERT_EQ(cool_as("a", "0", "7", "50", "1"), 0);
  EXPECT_EQ(peek("a", "7", "0"), "") << "moved on";
  EXPECT_NE(peek("a", "7", "1", "50"), "");
  EXPECT_NE(peek("a", "7", "2", "60"), "") << "Redis has lost the last move";
  ASSERT_EQ(warm("a"), 0);
  EXPECT_EQ(peek("a", "7", "1", "50"), "") << "the body is back";
  EXPECT_EQ(peek("unknown", "7", "0"), "");
}

// ---- warm

TEST_F(ColdScripts, WarmPutsTheBodyBack) {
  push_cold("a");
  EXPECT_EQ(warm("a", "7", kNow + kDay - 1'000), 0);
  const Record record = record_of("a");
  EXPECT_EQ(record.body, kBody);
  EXPECT_FALSE(record.cold);
  EXPECT_EQ(told_, "[]");
  EXPECT_EQ(scores(Key::kDelay), "[a " + std::to_string(kNow + kDay) + "]") << "it still waits";
  EXPECT_EQ(warm("a", "7", kNow + kDay - 1'000), 1) << "twice";
}

TEST_F(ColdScripts, WarmLeavesAJobWithAnotherBody) {
  push_cold("a");
  EXPECT_EQ(warm("a", "8"), 1);
  push({spec("a", kNow + kDay).with_body("new").or_replace()});
  EXPECT_EQ(warm("a", "7"), 1);
  EXPECT_EQ(record_of("a").body, "new");
  EXPECT_EQ(warm("unknown"), 1);
}

TEST_F(ColdScripts, WarmWritesBodiesOfEverySize) {
  for (const size_t size : {0UL, 31UL, 32UL, 255UL, 256UL, 65'535UL, 65'536UL, 300'000UL}) {
    const std::string id = std::to_string(size);
    push_cold(id);
    EXPECT_EQ(warm(id, "7", kNow, std::string(size, 'x')), 0);
    EXPECT_EQ(record_of(id).body, std::string(size, 'x')) << size;
  }
}

TEST_F(ColdScripts, ABodyThatIsBackEarlyIsMovedAgain) {
  push_cold("a");
  reschedule("a", kNow + kDay / 2);
  EXPECT_EQ(warm("a"), 0);
  EXPECT_EQ(to_cool(), "[t/a]");
}

// ---- due without a body

TEST_F(ColdScripts, ADueJobWithoutItsBodyIsNotHandedOverAndHoldsUpNoOther) {
  push_cold("cold", kNow + kDay);
  push({spec("hot", kNow + kDay)}, kNow);
  EXPECT_THAT(ids(take({}, kNow + kDay)), ElementsAre("hot"));
  EXPECT_EQ(wished(), "[t/cold " + std::to_string(kNow + kDay) + "]");
  EXPECT_EQ(scores(Key::kDelay), "[cold " + std::to_string(kNow + kDay + 1'000) + "]") << "tried again later";
  EXPECT_EQ(warm("cold", "7", kNow + kDay + 1), 0);
  EXPECT_EQ(told_, "[t 1]") << "servers hear that it is ready";
  EXPECT_EQ(wished(), "[]");
  EXPECT_EQ(members(Key::kDelay), "[]");
  EXPECT_THAT(ids(take({}, kNow + kDay + 1)), ElementsAre("cold"));
}

TEST_F(ColdScripts, TheDriverHearsOfABodyThatIsMissing) {
  push_cold("a", kNow + kDay);
  listen();
  const resp::Value due = run(scripts::kDue, "t", {"100"}, kNow + kDay);
  EXPECT_EQ(due.items.at(0).text, std::to_string(kNow + kDay)) << "the next visit is now";
  EXPECT_THAT(news(), ElementsAre("e0@me 600000:" + std::to_string(kNow + kDay)));
  const resp::Value later = run(scripts::kDue, "t", {"100"}, kNow + kDay + 1'000);
  EXPECT_NE(later.items.at(0).text, std::to_string(kNow + kDay + 1'000)) << "once is enough";
}

TEST_F(ColdScripts, ACountOfADueJobWithoutItsBodyIsThatOfADelayedOne) {
  push_cold("a", kNow + kDay);
  EXPECT_EQ(said(run(scripts::kCounts, "t", {"100"}, kNow + kDay)), "[1 0 0 0 0 -1 0 0]");
}

TEST_F(ColdScripts, AColdJobInLineIsNotHandedOver) {
  // Another program has tampered with the keys.
  push_cold("a", kNow + kDay);
  push({spec("b", kNow)});
  const std::string member = server().command({"ZRANGE", key(Key::kReady), "0", "0"}).items.at(0).text;
  server().command({"ZADD", key(Key::kReady), "0", member.substr(0, 20) + "a"});
  EXPECT_THAT(ids(take({})), ElementsAre("b"));
}

// ---- rescheduled

TEST_F(ColdScripts, RescheduledEarlierTheBodyIsWishedForAtOnce) {
  push_cold("a");
  reschedule("a", kNow + 2 * kDay);
  EXPECT_EQ(wished(), "[]") << "later: its record comes back early enough";
  EXPECT_TRUE(record_of("a").cold.has_value());
  reschedule("a", kNow + 60'000);
  EXPECT_EQ(wished(), "[t/a " + std::to_string(kNow) + "]");
  EXPECT_TRUE(record_of("a").cold.has_value());
}

TEST_F(ColdScripts, RescheduledToNowItWaitsForItsBody) {
  push_cold("a");
  reschedule("a", kNow);
  EXPECT_THAT(ids(take({})), IsEmpty());
  EXPECT_EQ(warm("a"), 0);
  EXPECT_THAT(ids(take({})), ElementsAre("a"));
}

// ---- wishes

TEST_F(ColdScripts, WishesNameThePlacesOfBodies) {
  push_cold("a");
  reschedule("a", kNow + 1);
  EXPECT_EQ(text_of(wishes()), "[nil [] 0 t a 7 0 3 1 40]");
  EXPECT_EQ(wishes().items.size(), 3U) << "put off";
  EXPECT_EQ(wishes(kNow + 5'000).items.size(), 10U) << "not fulfilled";
  run(scripts::kCancel, "t", {"a"});
  EXPECT_EQ(wishes(kNow + 10'000).items.size(), 3U);
  EXPECT_EQ(command({"EXISTS", warm_key()}), "0");
}

TEST_F(ColdScripts, WishesAreBounded) {
  for (const char* id : {"a", "b", "c"}) {
    push_cold(id);
    reschedule(id, kNow + 1);
  }
  EXPECT_EQ(wishes(kNow, "2").items.at(2).integer, 1) << "more";
  EXPECT_EQ(wishes(kNow, "2").items.size(), 10U);
  EXPECT_EQ(wishes(kNow + 5'000, "10", "1").items.size(), 10U) << "by bytes";
}

TEST_F(ColdScripts, TheHeadOfTheShardTellsWhatTheColdStoreNeeds) {
  const std::string driver = keys_.in_shard(0, "driver");
  const std::string alarm = keys_.in_shard(0, "alarm");
  const std::string next = key(Key::kNext);
  const std::string cool = cool_key();
  const std::string warm = warm_key();
  const std::string now = std::to_string(kNow);
  const std::vector<std::string_view> arguments{now, "me", "60000", "10"};
  const auto head = [&] { return run(scripts::kHead, {driver, next, alarm, cool, warm}, arguments); };
  EXPECT_EQ(head().items.size(), 4U);
  push({spec("a", kNow + kDay)});
  EXPECT_EQ(head().items.at(4).text, "c");
  ASSERT_EQ(this->cool("a"), 0);
  EXPECT_EQ(head().items.size(), 4U);
  reschedule("a", kNow + kDay / 2);
  EXPECT_EQ(head().items.at(4).text, "c");
  EXPECT_EQ(head().items.at(5).text, "w");
  server().command({"DEL", cool});
  server().command({"SET", cool, "mine"});
  EXPECT_EQ(head().items.at(4).text, "w") << "whatever another program does there";
}

// ---- the other verbs do not see a difference

TEST_F(ColdScripts, ACancelLeavesNothing) {
  push_cold("a");
  EXPECT_EQ(said(run(scripts::kCancel, "t", {"a"})), "[0]");
  EXPECT_EQ(command({"EXISTS", key(Key::kPool), key(Key::kDelay)}), "0");
}

TEST_F(ColdScripts, AListingWithBodiesIsBoundedByTheirSize) {
  push({spec("a", kNow + kDay), spec("b", kNow + kDay)});
  const auto list = [&](const std::string& with_bodies) {
    return run(scripts::kList, "t", {"0", "10", with_bodies, "", "", "1000", "1000000", "", "", ""});
  };
  ASSERT_EQ(list("1").items.size(), 7U);
  const Record record = record_of("a");
  ASSERT_EQ(run(scripts::kCool, "",
                {"t", "a", std::to_string(record.sequence), std::to_string(kNow), "7", "0", "3", "1", "40",
                 "5000000"})
                .items.at(2)
                .integer,
            0);
  EXPECT_EQ(list("1").items.size(), 5U) << "a page ends with the large body";
  EXPECT_EQ(list("0").items.size(), 7U);
}

TEST_F(ColdScripts, AJobThatHasLostItsPlaceIsPutBack) {
  push_cold("a", kNow + kDay);
  server().command({"DEL", key(Key::kDelay)});
  const resp::Value mended = run(scripts::kMend, "t", {"0", "100", "100000"}, kNow + 2 * kDay);
  EXPECT_EQ(mended.items.at(3).integer, 1);
  EXPECT_EQ(members(Key::kDelay), "[a]") << "not ready without its body, although due";
}

// ---- how many there are

TEST_F(ColdScripts, BodiesInTheStoreAreCountedWhateverBecomesOfTheirJobs) {
  const auto count = [this] { return command({"GET", keys_.in_shard(0, "cold")}); };
  EXPECT_EQ(count(), "nil") << "without a cold store nothing is counted";
  for (const char* id : {"cancelled", "replaced", "kept", "warmed", "purged"}) push_cold(id);
  EXPECT_EQ(count(), "5");
  run(scripts::kCancel, "t", {"cancelled"});
  EXPECT_EQ(count(), "4");
  push({spec("replaced", kNow + kDay).or_replace()});
  EXPECT_EQ(count(), "3");
  reschedule("kept", kNow + 2 * kDay);
  EXPECT_EQ(cool("kept", "7", "41", "1"), 0) << "moved within the store";
  EXPECT_EQ(count(), "3");
  EXPECT_EQ(warm("warmed"), 0);
  EXPECT_EQ(warm("warmed"), 1) << "again";
  EXPECT_EQ(count(), "2");
  reschedule("kept", kNow);
  EXPECT_EQ(count(), "2") << "its body is not back yet";
  EXPECT_EQ(warm("kept"), 0);
  EXPECT_EQ(count(), "1");
  EXPECT_EQ(store(job("purged", JobState::kDelayed), OnConflict::kReplace).items.at(2).integer, 1);
  EXPECT_EQ(count(), "0");
}

}  // namespace
}  // namespace delayq::redis
