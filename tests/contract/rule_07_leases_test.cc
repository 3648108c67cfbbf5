// Rule 7: a job is handed out under a lease with a deadline. Only the current lease can ack, nack or extend.
// When the deadline passes, this is reported, and the job counts as failed once.
#include <map>
#include <set>

#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

class Rule07Leases : public EngineContract {
 protected:
  NackOutcome resolve_expired(const LeaseInfo& lease, Moment retry_at) {
    NackRequest request;
    request.lease = {lease.topic, lease.lease};
    request.retry_at = retry_at;
    request.reason = "lease ran out";
    request.expired = true;
    return engine_.nack_all({request}).at(0);
  }

  /// No verb accepts the lease.
  void expect_stale(const Taken& taken) {
    EXPECT_FALSE(engine_.extend(taken, engine_.now() + Millis{1'000}));
    EXPECT_EQ(engine_.retry(taken, engine_.now()), NackOutcome::kStale);
    EXPECT_EQ(engine_.bury(taken), NackOutcome::kStale);
    EXPECT_EQ(engine_.ack(taken), AckOutcome::kStale);
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule07Leases);

TEST_P(Rule07Leases, TokensAreUniqueAndPrintable) {
  std::set<std::string> tokens;
  for (int i = 0; i < 500; ++i) engine_.push(JobSpec("t", std::to_string(i)));
  for (const Taken& taken : engine_.take("t", 500)) {
    EXPECT_TRUE(tokens.insert(taken.lease).second) << "twice: " << taken.lease;
    EXPECT_FALSE(taken.lease.empty());
    EXPECT_LE(taken.lease.size(), 64U);
    for (const char byte : taken.lease) EXPECT_TRUE(byte > ' ' && byte < 0x7f && byte != '/') << taken.lease;
  }
  EXPECT_THAT(tokens, SizeIs(500));
}

TEST_P(Rule07Leases, AJobIsHandedToOneOnly) {
  engine_.push(JobSpec("t", "a"));
  EXPECT_THAT(engine_.take("t", 9), SizeIs(1));
  EXPECT_THAT(engine_.take("t", 9), IsEmpty());
  EXPECT_EQ(engine_.state_of("t", "a"), JobState::kReserved);
}

TEST_P(Rule07Leases, CountIsAMaximum) {
  for (int i = 0; i < 5; ++i) engine_.push(JobSpec("t", std::to_string(i)));
  EXPECT_THAT(engine_.take("t", 0), IsEmpty());
  EXPECT_THAT(engine_.take("t", 3), SizeIs(3));
  EXPECT_THAT(engine_.take("t", 3), SizeIs(2));
  EXPECT_THAT(engine_.take("unknown topic", 3), IsEmpty());
}

TEST_P(Rule07Leases, GoodUntilTheMillisecondBeforeItsDeadline) {
  const Taken taken = reserve("a", Millis{100});
  EXPECT_EQ(taken.job.until, at(100));
  engine_.go_to(at(99));
  EXPECT_EQ(engine_.ack(taken), AckOutcome::kAcked);
}

TEST_P(Rule07Leases, StaleAtItsDeadline) {
  const Taken taken = reserve("a", Millis{100});
  engine_.go_to(at(100));
  expect_stale(taken);
  EXPECT_EQ(engine_.state_of("t", "a"), JobState::kReserved)
      << "until the queue has decided what becomes of it";
  EXPECT_THAT(engine_.take("t"), IsEmpty());
}

TEST_P(Rule07Leases, TheDeadlineIsComparedWithTheClockGiven) {
  const Taken taken = reserve("a", Millis{100});
  engine_.go_to(at(5'000));
  EXPECT_EQ(engine_.ack(taken), AckOutcome::kStale);
  engine_.go_to(at(50));
  EXPECT_EQ(engine_.ack(taken), AckOutcome::kAcked) << "the clock was set back";
}

TEST_P(Rule07Leases, AckedOnce) {
  const Taken taken = reserve("a");
  EXPECT_EQ(engine_.ack(taken), AckOutcome::kAcked);
  expect_stale(taken);
  EXPECT_EQ(engine_.state_of("t", "a"), JobState::kDone);
}

TEST_P(Rule07Leases, TheSameLeaseTwiceInABatch) {
  const Taken a = reserve("a");
  const Taken b = reserve("b");
  EXPECT_EQ(engine_.ack_all({{a.ref(), kKeepAll, {}}, {a.ref(), kKeepAll, {}}}),
            (std::vector{AckOutcome::kAcked, AckOutcome::kStale}));
  NackRequest again;
  again.lease = b.ref();
  again.retry_at = at(5);
  EXPECT_EQ(engine_.nack_all({again, again}), (std::vector{NackOutcome::kRetried, NackOutcome::kStale}));
}

TEST_P(Rule07Leases, MixedBatches) {
  const Taken a = reserve("a");
  const Taken b = reserve("b");
  const Taken c = reserve("c");
  engine_.cancel("t", "c");
  NackRequest retried;
  retried.lease = a.ref();
  retried.retry_at = at(10);
  NackRequest dead;
  dead.lease = b.ref();
  dead.keep = kKeepAll;
  NackRequest cancelled;
  cancelled.lease = c.ref();
  cancelled.retry_at = at(10);
  NackRequest nonsense;
  nonsense.lease = {"t", "nonsense"};
  EXPECT_EQ(
      engine_.nack_all({retried, dead, nonsense, cancelled}),
      (std::vector{NackOutcome::kRetried, NackOutcome::kDead, NackOutcome::kStale, NackOutcome::kCancelled}));
}

TEST_P(Rule07Leases, ALaterLeaseFencesTheEarlierOne) {
  const Taken first = reserve("a");
  engine_.retry(first, at(0));
  const Taken second = engine_.take_one("t");
  EXPECT_NE(first.lease, second.lease);
  expect_stale(first);
  EXPECT_EQ(engine_.ack(second), AckOutcome::kAcked);
}

TEST_P(Rule07Leases, NoLeaseOutlivesItsJob) {
  const Taken acked = reserve("acked");
  engine_.ack(acked, kKeepNone);
  const Taken purged = reserve("purged");
  engine_.purge("t", JobState::kReserved);
  const Taken dead = reserve("dead");
  engine_.bury(dead);
  engine_.redrive("t", {"dead"});
  for (const Taken* taken : {&acked, &purged, &dead}) {
    SCOPED_TRACE(taken->job.id);
    expect_stale(*taken);
  }
}

TEST_P(Rule07Leases, OfAnotherTopicIsStale) {
  Taken taken = reserve("a");
  engine_.push(JobSpec("u", "a"));
  engine_.take_one("u");
  taken.job.topic = "u";
  expect_stale(taken);
  taken.job.topic = "unheard of";
  expect_stale(taken);
  taken.job.topic = "t";
  EXPECT_EQ(engine_.ack(taken), AckOutcome::kAcked);
}

TEST_P(Rule07Leases, NonsenseIsStale) {
  const Taken real = reserve("a");
  Taken fake = real;
  for (const std::string& lease :
       {std::string{}, std::string{"0"}, std::string{"-1"}, real.lease + "0", real.lease + " ",
        " " + real.lease, real.lease.substr(0, real.lease.size() - 1), std::string(64, 'f'),
        std::string(5'000, '9'), std::string("\0\xff", 2)}) {
    SCOPED_TRACE(support::brief(lease));
    fake.lease = lease;
    expect_stale(fake);
  }
  EXPECT_EQ(engine_.ack(real), AckOutcome::kAcked);
}

TEST_P(Rule07Leases, ExtendMovesTheDeadlineBothWays) {
  const Taken taken = reserve("a", Millis{100});
  EXPECT_TRUE(engine_.extend(taken, at(1'000)));
  EXPECT_EQ(engine_.get("t", "a")->until, at(1'000));
  engine_.go_to(at(500));
  engine_.tick();
  EXPECT_THAT(engine_.expired_news(), IsEmpty());
  EXPECT_TRUE(engine_.extend(taken, at(600)));
  EXPECT_LE(engine_.tick(), at(600));
  engine_.go_to(at(600));
  engine_.tick();
  EXPECT_THAT(engine_.expired_news(), SizeIs(1));
  EXPECT_FALSE(engine_.extend(taken, at(2'000))) << "too late";
}

TEST_P(Rule07Leases, ExtendAnswersEachLease) {
  const Taken a = reserve("a");
  const Taken b = reserve("b");
  engine_.ack(a);
  EXPECT_EQ(engine_.extend_all({{a.ref(), at(9'000)}, {b.ref(), at(9'000)}, {{"t", "nonsense"}, at(9'000)}}),
            (std::vector<ExtendAnswer>{{}, at(9'000), {}}));
}

TEST_P(Rule07Leases, ExtendMayLeaveALaterDeadlineAsItIs) {
  const Taken taken = reserve("a", Millis{1'000});
  const auto at_least = [&](int64_t ms) { return engine_.extend_all({{taken.ref(), at(ms), true}}).at(0); };
  EXPECT_EQ(at_least(500), at(1'000));
  EXPECT_EQ(engine_.get("t", "a")->until, at(1'000));
  EXPECT_EQ(at_least(2'000), at(2'000));
  EXPECT_EQ(engine_.get("t", "a")->until, at(2'000));
  engine_.go_to(at(1'500));
  engine_.tick();
  EXPECT_THAT(engine_.expired_news(), IsEmpty());
  EXPECT_EQ(engine_.extend_all({{taken.ref(), at(1'600), false}}).at(0), at(1'600))
      << "who says when may shorten";
  engine_.go_to(at(1'600));
  engine_.tick();
  EXPECT_THAT(engine_.expired_news(), SizeIs(1));
  EXPECT_EQ(at_least(9'000), std::nullopt) << "too late";
}

TEST_P(Rule07Leases, WhatRanOutIsTold) {
  engine_.push(JobSpec("t", "a").with_options("o"));
  const Taken a = engine_.take_one("t", Millis{100});
  const Taken b = reserve("b", Millis{200});
  EXPECT_LE(engine_.tick(), at(100));
  engine_.go_to(at(99));
  engine_.tick();
  EXPECT_THAT(engine_.expired_news(), IsEmpty()) << "too early";
  engine_.go_to(at(100));
  EXPECT_LE(engine_.tick(), at(200));
  const std::vector<LeaseInfo> expired = engine_.expired_news();
  ASSERT_THAT(expired, SizeIs(1));
  EXPECT_EQ(expired[0].topic, "t");
  EXPECT_EQ(expired[0].lease, a.lease);
  EXPECT_EQ(expired[0].options, "o");
  EXPECT_EQ(expired[0].attempts, 1U);
  EXPECT_EQ(resolve_expired(expired[0], at(150)), NackOutcome::kRetried);
  EXPECT_EQ(engine_.get("t", "a")->outcome, "lease ran out");
  engine_.go_to(at(200));
  engine_.tick();
  const std::vector<LeaseInfo> next = engine_.expired_news();
  ASSERT_THAT(next, SizeIs(1));
  EXPECT_EQ(next[0].lease, b.lease);
}

TEST_P(Rule07Leases, ResolvedOnce) {
  reserve("a", Millis{100});
  engine_.go_to(at(100));
  engine_.tick();
  const std::vector<LeaseInfo> expired = engine_.expired_news();
  ASSERT_THAT(expired, SizeIs(1));
  EXPECT_EQ(resolve_expired(expired[0], at(100)), NackOutcome::kRetried);
  EXPECT_EQ(resolve_expired(expired[0], at(100)), NackOutcome::kStale);
  EXPECT_EQ(engine_.take_one("t").job.attempts, 2U) << "it counted as failed once";
  EXPECT_EQ(resolve_expired(expired[0], at(100)), NackOutcome::kStale) << "another one has it now";
  engine_.tick();
  EXPECT_THAT(engine_.expired_news(), IsEmpty());
}

TEST_P(Rule07Leases, AnAckBeforeTheDeadlineIsNotTold) {
  const Taken taken = reserve("a", Millis{100});
  engine_.ack(taken);
  engine_.go_to(at(1'000));
  engine_.tick();
  EXPECT_THAT(engine_.expired_news(), IsEmpty());
}

TEST_P(Rule07Leases, ThousandsRunOutAtOnce) {
  for (int i = 0; i < 3'000; ++i) engine_.push(JobSpec("t", std::to_string(i)));
  TakeRequest request;
  request.topic = "t";
  request.count = 3'000;
  request.lease_until = at(100);
  ASSERT_THAT(engine_.take(request), SizeIs(3'000));
  engine_.go_to(at(100));
  engine_.tick();
  std::set<std::string> told;
  std::vector<NackRequest> requests;
  const std::vector<LeaseInfo> expired = engine_.expired_news();
  for (const LeaseInfo& lease : expired) {
    if (!told.insert(lease.lease).second) continue;
    NackRequest nack;
    nack.lease = {lease.topic, lease.lease};
    nack.retry_at = at(100);
    nack.expired = true;
    requests.push_back(nack);
  }
  EXPECT_THAT(told, SizeIs(3'000));
  EXPECT_THAT(engine_.nack_all(requests), testing::Each(NackOutcome::kRetried));
  EXPECT_EQ(engine_.count("t", JobState::kReady), 3'000U);
}

TEST_P(Rule07Leases, WhatReachedNobodyIsNotCounted) {
  engine_.retry(reserve("a"), at(0), "the last real error");
  NackRequest request;
  const Taken taken = engine_.take_one("t");
  EXPECT_EQ(taken.job.attempts, 2U);
  request.lease = taken.ref();
  request.retry_at = taken.job.due;
  request.reason = "nobody";
  request.uncounted = true;
  EXPECT_EQ(engine_.nack_all({request}), std::vector{NackOutcome::kRetried});
  const std::optional<SeenJob> job = engine_.get("t", "a");
  EXPECT_EQ(job->attempts, 1U);
  EXPECT_EQ(job->outcome, "the last real error");
  EXPECT_EQ(job->state, JobState::kReady);
  EXPECT_EQ(engine_.take_one("t").job.attempts, 2U);
}

TEST_P(Rule07Leases, AutoAckIsAtMostOnce) {
  engine_.push_all({JobSpec("t", "a").with_body("b"), JobSpec("t", "c")});
  TakeRequest request;
  request.topic = "t";
  request.count = 9;
  request.auto_ack = true;
  request.keep_done = {at(500), 1};
  const std::vector<Taken> taken = engine_.take(request);
  ASSERT_THAT(ids_of(taken), ElementsAre("a", "c"));
  EXPECT_EQ(taken[0].lease, "");
  EXPECT_EQ(taken[0].job.body, "b");
  EXPECT_EQ(taken[0].job.attempts, 1U);
  EXPECT_EQ(taken[0].job.state, JobState::kDone);
  EXPECT_EQ(engine_.counts("t").by_state, (std::array<uint64_t, kJobStateCount>{0, 0, 0, 1, 0}));
  EXPECT_EQ(engine_.state_of("t", "c"), JobState::kDone) << "of one kept, the latest";
  engine_.go_to(at(1'000'000));
  engine_.tick();
  EXPECT_THAT(engine_.expired_news(), IsEmpty());
}

TEST_P(Rule07Leases, AutoAckThatKeepsNothingLeavesNothing) {
  engine_.push(JobSpec("t", "a"));
  TakeRequest request;
  request.topic = "t";
  request.auto_ack = true;
  EXPECT_THAT(engine_.take(request), SizeIs(1));
  EXPECT_EQ(engine_.get("t", "a"), std::nullopt);
}

TEST_P(Rule07Leases, MaxReservedBoundsWhatIsOut) {
  for (int i = 0; i < 10; ++i) engine_.push(JobSpec("t", std::to_string(i)));
  TakeRequest request;
  request.topic = "t";
  request.count = 9;
  request.lease_until = at(100);
  request.max_reserved = 3;
  const std::vector<Taken> first = engine_.take(request);
  EXPECT_THAT(first, SizeIs(3));
  EXPECT_THAT(engine_.take(request), IsEmpty());
  engine_.ack(first[0], kKeepNone);
  EXPECT_THAT(engine_.take(request), SizeIs(1));
  request.max_reserved = 2;
  EXPECT_THAT(engine_.take(request), IsEmpty()) << "a limit below what is out";
  request.max_reserved = 5;
  request.count = 1;
  EXPECT_THAT(engine_.take(request), SizeIs(1));
  request.max_reserved = 0;
  request.count = 9;
  EXPECT_THAT(engine_.take(request), SizeIs(5));
}

TEST_P(Rule07Leases, MaxReservedHoldsForAutoAckToo) {
  for (int i = 0; i < 10; ++i) engine_.push(JobSpec("t", std::to_string(i)));
  engine_.take("t", 2);
  TakeRequest request;
  request.topic = "t";
  request.count = 9;
  request.max_reserved = 3;
  request.auto_ack = true;
  EXPECT_THAT(engine_.take(request), SizeIs(1));
  EXPECT_THAT(engine_.take(request), SizeIs(1)) << "it did not stay reserved";
}

// ---- lease lengths of their own

TakeRequest take_with_own_leases() {
  TakeRequest request;
  request.topic = "t";
  request.count = 10;
  request.lease_until = at(60'000);
  request.own_leases = true;
  return request;
}

using Deadlines = std::map<std::string, Moment>;

Deadlines deadlines_of(const std::vector<Taken>& taken) {
  Deadlines deadlines;
  for (const Taken& each : taken) deadlines[each.job.id] = each.job.until;
  return deadlines;
}

TEST_P(Rule07Leases, AJobsOwnLengthReplacesTheDeadline) {
  engine_.push_all({JobSpec("t", "short").with_lease(Millis{5'000}), JobSpec("t", "plain"),
                    JobSpec("t", "long").with_lease(std::chrono::hours{24})});
  const std::vector<Taken> taken = engine_.take(take_with_own_leases());
  EXPECT_EQ(deadlines_of(taken),
            (Deadlines{{"short", at(5'000)}, {"plain", at(60'000)}, {"long", at(86'400'000)}}));
  EXPECT_EQ(engine_.get("t", "short")->until, at(5'000));
}

TEST_P(Rule07Leases, AJobsOwnLengthCountsOnlyIfTheTakeSaysSo) {
  engine_.push(JobSpec("t", "a").with_lease(Millis{5'000}));
  TakeRequest request = take_with_own_leases();
  request.own_leases = false;
  EXPECT_EQ(deadlines_of(engine_.take(request)), (Deadlines{{"a", at(60'000)}}));
}

TEST_P(Rule07Leases, ALeaseOfTheJobsOwnLengthExpires) {
  engine_.push(JobSpec("t", "short").with_lease(Millis{5'000}));
  engine_.push(JobSpec("t", "plain"));
  engine_.take(take_with_own_leases());
  EXPECT_LE(engine_.tick(), at(5'000));
  engine_.go_to(at(4'999));
  engine_.tick();
  EXPECT_THAT(engine_.expired_news(), IsEmpty()) << "too early";
  engine_.go_to(at(5'000));
  engine_.tick();
  const std::vector<LeaseInfo> told = engine_.expired_news();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(resolve_expired(told[0], at(5'000)), NackOutcome::kRetried);
  EXPECT_EQ(engine_.state_of("t", "plain"), JobState::kReserved);
}

TEST_P(Rule07Leases, AJobKeepsItsOwnLengthThroughItsLife) {
  engine_.push(JobSpec("t", "a").with_lease(Millis{5'000}));
  const auto take = [this] { return deadlines_of(engine_.take(take_with_own_leases())); };
  const Taken taken = engine_.take(take_with_own_leases()).at(0);
  engine_.extend(taken, at(90'000));
  engine_.retry(taken, at(0), "failed");
  EXPECT_EQ(take(), (Deadlines{{"a", at(5'000)}})) << "retried";
  engine_.push(JobSpec("t", "b").with_lease(Millis{5'000}));
  const Taken buried = engine_.take(take_with_own_leases()).at(0);
  engine_.bury(buried);
  engine_.redrive("t", {"b"});
  EXPECT_EQ(take(), (Deadlines{{"b", at(5'000)}})) << "redriven";
  engine_.push(JobSpec("t", "b").or_replace());
  EXPECT_EQ(take(), (Deadlines{{"b", at(60'000)}})) << "replaced by a job without one";
}

TEST_P(Rule07Leases, ARestoredJobHasItsOwnLengthAgain) {
  engine_.push(JobSpec("t", "a").with_body("body"));
  const SeenJob seen = *engine_.get("t", "a");
  RestoreRequest request{support::view_of(seen), OnConflict::kReplace};
  request.lease = Millis{7'000};
  engine_.restore_all({request});
  EXPECT_EQ(deadlines_of(engine_.take(take_with_own_leases())), (Deadlines{{"a", at(7'000)}}));
}

}  // namespace
}  // namespace delayq::contract
