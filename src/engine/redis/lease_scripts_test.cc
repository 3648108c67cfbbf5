// The scripts about leases, each one alone on a real Redis.
#include "tests/support/redis_life_scripts.h"

namespace delayq::redis {
namespace {

using support::text_of;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class LeaseScripts : public LifeScriptTest {
 protected:
  static std::string ms(int64_t after) { return std::to_string(kNow + after); }
  /// An empty `retry_at`: the job becomes dead.
  resp::Value nack(const std::string& lease, const std::string& retry_at, const std::string& keep_until = "0",
                   const std::string& keep_count = "0", const std::string& reason = "why", int flags = 0,
                   int64_t now = kNow) {
    return run(scripts::kNack, "t",
               words_of(lease, {retry_at, keep_until, keep_count, reason, std::to_string(flags)}), now);
  }
  static constexpr int kExpired = 1;
  static constexpr int kUncounted = 2;
};

TEST_F(LeaseScripts, AckForgetsAndLeavesNothing) {
  const std::string a = lease_of(spec("a", kNow).in_group("g"));
  const std::string b = lease_of(spec("b", kNow));
  EXPECT_EQ(said(ack({a, "999", a, b})), "[0 1 1 0]") << "one lease twice in a batch counts once";
  run(scripts::kEnded, "t", {"10", "5000"}, kNow + 60'000);
  EXPECT_THAT(names(), UnorderedElementsAre("seq"));
  EXPECT_EQ(said(ack({a})), "[1]") << "stale";
}

TEST_F(LeaseScripts, HeldFindsTheJobsOfLeasesAndChangesNothing) {
  const auto held = [this](const std::string& with_bodies, const std::vector<std::string>& leases) {
    std::vector<std::string> own{with_bodies};
    for (const std::string& lease : leases) {
      for (std::string& word : words_of(lease)) own.push_back(std::move(word));
    }
    return run(scripts::kHeld, "t", own);
  };
  const std::string a = lease_of(spec("a", kNow).in_group("g"), kNow + 60'000, 7);
  const std::string b = lease_of(spec("b", kNow));
  const std::string before = scores(Key::kHeld);
  EXPECT_EQ(said(held("0", {b, "999", a})), "[[b ] [] [a g]]");
  EXPECT_EQ(said(held("0", {a.substr(0, a.find('.')) + ".8"})), "[[]]") << "another nonce";
  const resp::Value whole = held("1", {a});
  ASSERT_THAT(whole.items.at(2).items, testing::SizeIs(2));
  const Record record = read_record(whole.items[2].items[1].text).value();
  EXPECT_EQ(record.body, kBody);
  EXPECT_EQ(record.state, JobState::kReserved);
  EXPECT_EQ(scores(Key::kHeld), before);
  EXPECT_EQ(said(ack({a, b})), "[0 0]");
  EXPECT_EQ(said(held("0", {a})), "[[]]");
}

TEST_F(LeaseScripts, AnotherNonceIsAnotherLease) {
  // Two masters that take in the same millisecond may give the same number to two jobs.
  constexpr uint64_t kNonce = 123'456'789'012'345;
  const std::string a = lease_of(spec("a", kNow).in_group("g"), kNow + 60'000, kNonce);
  const std::string number = a.substr(0, a.find('.'));
  ASSERT_EQ(a, number + ".123456789012345");
  const std::string theirs = number + ".7";
  EXPECT_EQ(said(ack({theirs, number})), "[1 1]");
  EXPECT_EQ(said(nack(theirs, ms(30))), "[3]");
  EXPECT_EQ(said(nack(theirs, ms(30), "0", "0", "why", kExpired)), "[3]");
  EXPECT_EQ(said(run(scripts::kExtend, "t", words_of(theirs, {ms(90'000), "0"}))), "[0]");
  EXPECT_EQ(said(run(scripts::kCancel, "t", {"a"})), "[1]");
  EXPECT_TRUE(record_of("a").cancel_requested);
  EXPECT_EQ(record_of("a").nonce, kNonce) << "a cancel does not change the lease";
  EXPECT_EQ(said(ack({a})), "[0]");
}

TEST_F(LeaseScripts, ALeaseThatEndedIsToldWithItsNonce) {
  const std::string a = lease_of(spec("a", kNow), kNow + 10, 7);
  EXPECT_EQ(said(run(scripts::kEnded, "t", {"10", "5000"}, kNow + 10)), "[" + a + " 1 ]");
  EXPECT_EQ(said(nack(a, ms(30), "0", "0", "why", kExpired, kNow + 10)), "[0]");
  EXPECT_EQ(record_of("a").nonce, 0U);
}

TEST_F(LeaseScripts, AckAtTheDeadlineIsTooLate) {
  const std::string a = lease_of(spec("a", kNow), kNow + 10);
  EXPECT_EQ(said(ack({a}, "0", "0", "", kNow + 10)), "[1]");
  EXPECT_EQ(members(Key::kHeld), "[a]") << "until it is nacked";
  EXPECT_EQ(said(ack({a}, "0", "0", "", kNow + 9)), "[0]");
}

TEST_F(LeaseScripts, AckKeepsNoMoreThanItMay) {
  std::vector<std::string> leases;
  for (const char* id : {"1", "2", "3"}) leases.push_back(lease_of(spec(id, kNow).in_group("g")));
  listen();
  EXPECT_EQ(text_of(ack(leases, ms(70), "2", "result")), "[1700000000070 0 0 0 0]");
  EXPECT_EQ(members(Key::kDone), "[2 3]") << "in the order in which they were done";
  EXPECT_EQ(scores(Key::kKept), "[2 1700000000070 3 1700000000070]");
  EXPECT_EQ(command({"HLEN", key(Key::kPool)}), "2");
  const Record record = record_of("3");
  EXPECT_EQ(record.state, JobState::kDone);
  EXPECT_EQ(record.outcome, "result");
  EXPECT_EQ(record.lease, static_cast<uint64_t>(kNow)) << "a finished job has its end in this place";
  EXPECT_EQ(record.body, kBody);
  EXPECT_EQ(command({"EXISTS", group("g"), key(Key::kHeld), key(Key::kLease)}), "0");
  EXPECT_THAT(news(), ElementsAre("e0@me:1700000000070")) << "the end of a retention is the next wake-up";
}

TEST_F(LeaseScripts, TrimKeepsFewerAndForAShorterTimeFromTheirEnds) {
  const auto trim = [&](const std::string& count, const std::string& time, const std::string& after,
                        const std::string& most, int64_t now) {
    return said(run(scripts::kTrim, "t", {"3", count, time, after, most, "100000"}, now));
  };
  for (int i = 0; i < 4; ++i) ack({lease_of(spec(std::to_string(i), kNow))}, ms(1'000), "10", "", kNow + i);
  ASSERT_EQ(members(Key::kDone), "[0 1 2 3]");
  EXPECT_EQ(trim("3", "5000", "0", "10", kNow + 5), "[1 ]") << "the oldest is one too many";
  EXPECT_EQ(members(Key::kDone), "[1 2 3]");
  EXPECT_EQ(scores(Key::kKept), "[1 1700000001000 2 1700000001000 3 1700000001000]")
      << "a longer time lengthens nothing";
  listen();
  EXPECT_EQ(trim("3", "4", "0", "10", kNow + 5), "[1 ]") << "that of 1 is over";
  EXPECT_EQ(scores(Key::kKept), "[2 1700000000006 3 1700000000007]");
  EXPECT_EQ(record_of("2").until, Moment{Millis{kNow + 6}});
  EXPECT_THAT(news(), ElementsAre("e0@me:1700000000006")) << "there is something to do earlier than before";
  const std::string first = trim("3", "0", "0", "1", kNow + 5);
  EXPECT_EQ(first.substr(0, 3), "[1 ") << "one in a call, and where to go on";
  EXPECT_NE(first, "[1 ]");
  EXPECT_EQ(members(Key::kDone), "[3]");
}

TEST_F(LeaseScripts, AckDropsWhatIsPastItsRetention) {
  ack({lease_of(spec("old", kNow))}, ms(5), "10");
  const std::string lease = lease_of(spec("new", kNow));
  ack({lease}, ms(50), "10", "", kNow + 5);
  EXPECT_EQ(members(Key::kDone), "[new]");
  EXPECT_EQ(scores(Key::kKept), "[new 1700000000050]");
  EXPECT_EQ(command({"HLEN", key(Key::kPool)}), "1");
}

TEST_F(LeaseScripts, NackWaitsForItsRetry) {
  const std::string a = lease_of(spec("a", kNow).in_group("g"));
  listen();
  EXPECT_EQ(text_of(nack(a, ms(30))), "[1700000000030 0 0]");
  const Record record = record_of("a");
  EXPECT_EQ(record.attempts, 1U);
  EXPECT_EQ(record.outcome, "why");
  EXPECT_EQ(record.lease, 0U);
  EXPECT_EQ(scores(Key::kDelay), "[a 1700000000030]");
  EXPECT_EQ(command({"EXISTS", key(Key::kHeld), key(Key::kLease)}), "0");
  EXPECT_EQ(command({"SMEMBERS", group("g")}), "[t/a]");
  EXPECT_THAT(news(), ElementsAre("e0@me:1700000000030"));
  EXPECT_EQ(said(nack(a, ms(30))), "[3]") << "stale";
}

TEST_F(LeaseScripts, NackThatIsDueAtOnceIsReady) {
  const std::string a = lease_of(spec("a", kNow));
  listen();
  EXPECT_EQ(nack(a, ms(0)).items[1].integer, 1);
  EXPECT_THAT(line(), ElementsAre("a"));
  EXPECT_THAT(news(), ElementsAre("r0@me:0t"));
}

TEST_F(LeaseScripts, NackWithoutARetryIsDead) {
  const std::string a = lease_of(spec("a", kNow).in_group("g"));
  const std::string b = lease_of(spec("b", kNow));
  const std::string c = lease_of(spec("c", kNow));
  EXPECT_EQ(said(nack(a, "", ms(90), "1")), "[1]");
  EXPECT_EQ(said(nack(b, "", ms(80), "1", "")), "[1]");
  EXPECT_EQ(members(Key::kDead), "[b]") << "the oldest makes room";
  EXPECT_EQ(scores(Key::kKept), "[b 1700000000080]");
  EXPECT_EQ(record_of("b").state, JobState::kDead);
  EXPECT_EQ(command({"EXISTS", group("g")}), "0");
  EXPECT_EQ(said(nack(c, "")), "[1]") << "and is not kept";
  EXPECT_EQ(command({"HLEN", key(Key::kPool)}), "1");
}

TEST_F(LeaseScripts, NackThatDoesNotCount) {
  const std::string a = lease_of(spec("a", kNow));
  EXPECT_EQ(said(nack(a, ms(0), "0", "0", "nobody was there", kUncounted)), "[0]");
  EXPECT_EQ(record_of("a").attempts, 0U);
  EXPECT_EQ(record_of("a").outcome, "") << "it says nothing of the job";
  EXPECT_THAT(line(), ElementsAre("a"));
}

TEST_F(LeaseScripts, NackAfterTheDeadlineIsForWhoSaysSo) {
  const std::string a = lease_of(spec("a", kNow), kNow + 10);
  EXPECT_EQ(said(nack(a, ms(30), "0", "0", "why", 0, kNow + 10)), "[3]");
  EXPECT_EQ(said(nack(a, ms(30), "0", "0", "why", kExpired, kNow + 10)), "[0]");
  EXPECT_EQ(said(nack(a, ms(30), "0", "0", "why", kExpired, kNow + 10)), "[3]") << "once";
}

TEST_F(LeaseScripts, NackOfALeaseThatRanOutIsStaleWhenItWasExtended) {
  const std::string a = lease_of(spec("a", kNow), kNow + 10);
  EXPECT_EQ(said(run(scripts::kExtend, "t", words_of(a, {ms(500), "0"}), kNow + 9)), "[1700000000500]");
  EXPECT_EQ(said(nack(a, ms(30), "0", "0", "why", kExpired, kNow + 10)), "[3]") << "it runs";
  EXPECT_EQ(members(Key::kHeld), "[a]");
  EXPECT_EQ(said(nack(a, ms(30), "0", "0", "why", kExpired, kNow + 500)), "[0]");
}

TEST_F(LeaseScripts, NackOfALeaseThatRanOutCountsThoughTheClockWasSetBack) {
  const std::string a = lease_of(spec("a", kNow), kNow + 10);
  run(scripts::kEnded, "t", {"10", "5000"}, kNow + 10);
  EXPECT_EQ(said(nack(a, ms(30), "0", "0", "why", kExpired, kNow)), "[0]");
}

TEST_F(LeaseScripts, NacksOfOneLeaseTwiceInABatch) {
  const std::string a = lease_of(spec("a", kNow));
  const std::vector<std::string> twice{a, "0", ms(30), "0", "0", "one", "0",
                                       a, "0", "",     "0", "0", "two", "0"};
  EXPECT_EQ(said(run(scripts::kNack, "t", twice)), "[0 3]");
  EXPECT_EQ(record_of("a").outcome, "one");
}

TEST_F(LeaseScripts, WhateverEndsALeaseSaysThatThereIsRoom) {
  const std::vector<std::string> leases{lease_of(spec("a", kNow)), lease_of(spec("b", kNow)),
                                        lease_of(spec("c", kNow))};
  push({spec("d", kNow), spec("called", kNow).called_back()});
  const auto be_full = [&] {
    Wish limited;
    limited.limit = 1;
    EXPECT_THAT(ids(take(limited)), IsEmpty());
    EXPECT_EQ(command({"EXISTS", key(Key::kFull)}), "1");
  };
  listen();
  be_full();
  EXPECT_EQ(ack({leases[0]}).items[1].integer, 3) << "both lines have jobs that waited";
  EXPECT_THAT(news(), ElementsAre("r0@me:0t", "r0@me:1t"));
  be_full();
  nack(leases[1], "");
  EXPECT_THAT(news(), ElementsAre("r0@me:0t", "r0@me:1t"));
  be_full();
  run(scripts::kPurge, "t", {"2", "1", "1000"});
  EXPECT_THAT(news(), ElementsAre("r0@me:0t", "r0@me:1t"));
}

TEST_F(LeaseScripts, ExtendMovesTheDeadlineBothWays) {
  const std::string a = lease_of(spec("a", kNow), kNow + 100);
  listen();
  EXPECT_EQ(said(run(scripts::kExtend, "t", {a, "0", ms(300), "0", "999", "0", ms(300), "0"})),
            "[1700000000300 0]");
  EXPECT_EQ(record_of("a").until, from_unix_ms(kNow + 300));
  EXPECT_EQ(scores(Key::kLease), "[a 1700000000300]");
  EXPECT_THAT(news(), IsEmpty()) << "later: the look that is due sees that there is nothing";
  EXPECT_EQ(text_of(run(scripts::kExtend, "t", words_of(a, {ms(20), "0"}))),
            "[1700000000020 0 1700000000020]");
  EXPECT_THAT(news(), ElementsAre("e0@me:1700000000020"));
  EXPECT_EQ(said(run(scripts::kExtend, "t", words_of(a, {ms(15), "1"}))), "[1700000000020]") << "not sooner";
  EXPECT_EQ(said(run(scripts::kExtend, "t", words_of(a, {ms(400), "0"}), kNow + 20)), "[0]")
      << "it has run out";
  EXPECT_EQ(record_of("a").until, from_unix_ms(kNow + 20));
}

// ---- how much one call reads

class LargeLeases : public LeaseScripts {
 protected:
  /// The leases of six jobs of 1 MiB each.
  std::vector<std::string> leases() {
    push_large("abcdef");
    std::vector<std::string> leases;
    const resp::Value taken = take({});
    for (size_t i = 3; i < taken.items.size(); i += 2)
      leases.push_back(std::to_string(read_record(taken.items[i].text)->lease));
    EXPECT_EQ(leases.size(), 6U);
    return leases;
  }
  /// Each lease followed by these words.
  static std::vector<std::string> with(const std::vector<std::string>& leases,
                                       const std::vector<std::string>& words) {
    std::vector<std::string> all;
    for (const std::string& lease : leases) {
      const std::vector<std::string> each = words_of(lease, words);
      all.insert(all.end(), each.begin(), each.end());
    }
    return all;
  }
  static std::vector<std::string> rest(const std::vector<std::string>& leases) {
    return {leases.begin() + 4, leases.end()};
  }
};

TEST_F(LargeLeases, AckDoesTheFirstFew) {
  std::vector<std::string> all = leases();
  all.insert(all.begin(), "999");
  all.push_back("998");
  EXPECT_EQ(said(ack(all, ms(70), "10")), "[1 0 0 0 0]") << "4 MiB were read";
  EXPECT_EQ(members(Key::kHeld), "[e f]");
  EXPECT_EQ(members(Key::kDone), "[a b c d]");
  EXPECT_EQ(said(ack({all.end() - 3, all.end()})), "[0 0 1]");
  EXPECT_EQ(command({"HLEN", key(Key::kPool)}), "4");
}

TEST_F(LargeLeases, NackDoesTheFirstFew) {
  const std::vector<std::string> all = leases();
  const std::vector<std::string> retry{ms(30), "0", "0", "why", "0"};
  EXPECT_EQ(said(run(scripts::kNack, "t", with(all, retry))), "[0 0 0 0]");
  EXPECT_EQ(members(Key::kDelay), "[a b c d]");
  EXPECT_EQ(said(run(scripts::kNack, "t", with(rest(all), retry))), "[0 0]");
}

TEST_F(LargeLeases, ExtendDoesTheFirstFew) {
  const std::vector<std::string> all = leases();
  EXPECT_EQ(said(run(scripts::kExtend, "t", with(all, {ms(300), "0"}))),
            "[1700000000300 1700000000300 1700000000300 1700000000300]");
  EXPECT_EQ(record_of("d").until, from_unix_ms(kNow + 300));
  EXPECT_EQ(record_of("e").until, from_unix_ms(kNow + 60'000));
}

TEST_F(LargeLeases, ALeaseWhoseRecordIsGoneIsStale) {
  const std::string a = lease_of(spec("a", kNow));
  command({"HDEL", key(Key::kPool), "a"});
  EXPECT_EQ(said(ack({a})), "[1]");
}

}  // namespace
}  // namespace delayq::redis
