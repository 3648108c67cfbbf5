// Several servers over one Redis: each sees what the others do, and any of them may die.
#include <map>
#include <set>

#include "queue/news.h"
#include "tests/contract/engine_contract.h"
#include "tests/contract/redis_server.h"
#include "tests/support/queue_driver.h"

namespace delayq::contract {
namespace {

using support::EngineDriver;

constexpr Millis kShortHold{200};

/// The redis-server that all tests here share; each test has its own prefix.
support::RedisProcess& shared_redis() {
  static support::RedisProcess redis;
  return redis;
}

class RedisServers : public testing::Test {
 protected:
  /// A server and the driver that calls it.
  struct Member {
    explicit Member(RedisEngineOptions options)
        : server(std::make_unique<RedisServer>(shared_redis().port(), std::move(options))),
          driver(server->engine(), [this] { return server->pump(); }) {}

    std::unique_ptr<RedisServer> server;
    EngineDriver driver;
  };

  std::unique_ptr<Member> join(std::string name, uint32_t shards = 1,
                               Millis hold = std::chrono::hours{1}) const {
    RedisEngineOptions options;
    options.prefix = prefix_;
    options.shards = redis::numbered_shards(shards);
    options.server = std::move(name);
    options.hold = hold;
    const int64_t heard_by = listeners();
    auto member = std::make_unique<Member>(std::move(options));
    hear(*member, "a subscription", [&] { return listeners() > heard_by; });
    return member;
  }

  int64_t listeners() const {
    return shared_redis().command({"PUBSUB", "NUMSUB", prefix_ + ":news"}).items.at(1).integer;
  }

  /// Like kill -9: it sends nothing more to Redis.
  static void kill(std::unique_ptr<Member>& member) { member.reset(); }

  /// Lets the member receive news until `is_so`.
  static void hear(Member& member, std::string_view what, const std::function<bool()>& is_so) {
    support::wait_until(what, [&] {
      member.driver.settle();
      return is_so();
    });
  }

  std::string driver_of(uint32_t shard) const {
    return shared_redis().command({"GET", prefix_ + ":{" + std::to_string(shard) + "}:driver"}).text;
  }

  static inline int tests = 0;
  std::string prefix_ = "servers" + std::to_string(++tests);
};

TEST_F(RedisServers, WhoCountsTheShardsOtherwiseIsRefused) {
  const auto a = join("a", 4);
  a->driver.push(JobSpec("t", "job"));
  const auto b = join("b", 2);
  b->driver.settle();
  const Result<std::vector<PushAnswer>> answer =
      b->driver.ask<std::vector<PushAnswer>>("push", [&](auto reply) {
        const JobSpec spec("t", "other");
        const NewJob job = spec.view();
        b->driver.engine().push(kStart, {&job, 1}, std::move(reply));
      });
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(answer.error().detail, testing::HasSubstr("are in 4 shards, and redis.shards is 2"));
  EXPECT_THAT(a->driver.take("t", 9), SizeIs(1)) << "and the others go on";
}

TEST_F(RedisServers, AllTakeAndNoneTwice) {
  const auto a = join("a", 4);
  const auto b = join("b", 4);
  for (int i = 0; i < 400; ++i) (i % 2 == 0 ? a : b)->driver.push(JobSpec("t", std::to_string(i)));
  std::map<std::string, int> taken;
  for (;;) {
    const std::vector<Taken> by_a = a->driver.take("t", 7);
    const std::vector<Taken> by_b = b->driver.take("t", 5);
    for (const std::string& id : ids_of(by_a)) ++taken[id];
    for (const std::string& id : ids_of(by_b)) ++taken[id];
    if (by_a.empty() && by_b.empty()) break;
  }
  EXPECT_THAT(taken, SizeIs(400));
  for (const auto& [id, times] : taken) EXPECT_EQ(times, 1) << id;
}

TEST_F(RedisServers, JobsWhoseNewsWereLostAreFound) {
  const auto a = join("a", 4);
  a->driver.tick();
  const std::string ready = prefix_ + ":{0}:ready:t";
  const std::string next = prefix_ + ":{1}:next";
  std::string early;  // an id in shard 0
  std::string later;  // an id in shard 1
  for (int i = 0; early.empty() || later.empty(); ++i) {
    const uint32_t shard = redis::Keyspace(prefix_, 4).shard_of(std::to_string(i));
    if (shard == 0) early = std::to_string(i);
    if (shard == 1) later = std::to_string(i);
  }
  a->driver.push(JobSpec("t", early));
  a->driver.push(JobSpec("t", later).due_at(kStart + Millis{40'000}));
  // As if another server had pushed them and the news were lost.
  shared_redis().command({"RENAME", ready, ready + "-away"});
  ASSERT_THAT(a->driver.take("t", 9), IsEmpty());
  shared_redis().command({"RENAME", ready + "-away", ready});
  shared_redis().command({"DEL", next});
  a->driver.ready_news();
  EXPECT_THAT(a->driver.take("t", 9), IsEmpty());
  a->driver.go_to(kStart + Millis{31'000});
  a->driver.tick();
  hear(*a, "the topic", [&] { return a->driver.ready_news().contains("t"); });
  EXPECT_THAT(ids_of(a->driver.take("t", 9)), testing::ElementsAre(early));
  a->driver.go_to(kStart + Millis{40'000});
  a->driver.tick();
  hear(*a, "the other job", [&] { return a->driver.ready_news().contains("t"); });
  EXPECT_THAT(ids_of(a->driver.take("t", 9)), testing::ElementsAre(later));
}

TEST_F(RedisServers, ATakeFindsTheJobsOfEveryShard) {
  const auto a = join("a", 8);
  const auto b = join("b", 8);
  a->driver.tick();
  ASSERT_EQ(driver_of(0), "a");
  EXPECT_THAT(a->driver.take("t", 10), IsEmpty()) << "a knows now that no shard has any";
  for (int i = 0; i < 50; ++i) b->driver.push(JobSpec("t", std::to_string(i)));
  std::set<std::string> taken;
  hear(*a, "all jobs at a", [&] {
    for (const std::string& id : ids_of(a->driver.take("t", 10))) taken.insert(id);
    return taken.size() == 50;
  });
}

TEST_F(RedisServers, AReadyJobIsTold) {
  const auto a = join("a");
  const auto b = join("b");
  b->driver.push(JobSpec("t", "first"));
  hear(*a, "news at a", [&] { return a->driver.ready_news().contains("t"); });
  b->driver.push(JobSpec("t", "called").called_back());
  hear(*a, "news of a callback at a", [&] { return a->driver.callback_news().contains("t"); });
}

TEST_F(RedisServers, AfterABreakWhatWasAskedForIsToldAgain) {
  const auto a = join("a");
  EXPECT_THAT(a->driver.take("t"), IsEmpty());
  a->driver.ready_news();
  shared_redis().kill_clients();
  hear(*a, "news at a", [&] { return a->driver.ready_news().contains("t"); });
}

TEST_F(RedisServers, OneDrivesAShardAndHearsOfEarlierJobs) {
  const auto a = join("a");
  const auto b = join("b");
  a->driver.tick();
  b->driver.tick();
  EXPECT_EQ(driver_of(0), "a");
  a->driver.push(JobSpec("t", "late").due_at(at(900'000)));
  EXPECT_EQ(a->driver.tick(), at(900'000));
  b->driver.push(JobSpec("t", "early").due_at(at(50)));
  hear(*a, "an earlier tick at a", [&] { return a->driver.tick() == at(50); });
  a->driver.go_to(at(50));
  a->driver.tick();
  EXPECT_TRUE(a->driver.ready_news().contains("t"));
  hear(*b, "news at b", [&] { return b->driver.ready_news().contains("t"); });
}

TEST_F(RedisServers, AnotherTakesOverWhenTheDriverDies) {
  auto a = join("a", 1, kShortHold);
  const auto b = join("b", 1, kShortHold);
  a->driver.tick();
  EXPECT_EQ(driver_of(0), "a");
  b->driver.push(JobSpec("t", "job").due_at(at(60'000)));
  EXPECT_LE(b->driver.tick(), at(0) + kShortHold) << "it looks when the hold runs out";
  kill(a);
  support::wait_until("the end of a's hold", [&] { return driver_of(0).empty(); });
  b->driver.go_to(at(60'000));
  b->driver.tick();
  EXPECT_EQ(driver_of(0), "b");
  EXPECT_TRUE(b->driver.ready_news().contains("t"));
}

TEST_F(RedisServers, WhoGoesInOrderIsReplacedAtOnce) {
  const auto a = join("a");
  const auto b = join("b");
  a->driver.tick();
  RedisEngineOptions options = a->server->options();
  options.server = "c";
  a->server->set_options(options);
  a->server->open();
  a->driver.attach(a->server->engine());
  a->driver.tick();
  EXPECT_EQ(driver_of(0), "c");
}

TEST_F(RedisServers, AHoldIsRenewed) {
  const auto a = join("a", 1, kShortHold);
  const auto b = join("b", 1, kShortHold);
  a->driver.tick();
  for (int i = 1; i <= 20; ++i) {
    a->driver.go_to(at(i * kShortHold.count() / 2));
    a->driver.tick();
    b->driver.go_to(a->driver.now());
    b->driver.tick();
    ASSERT_EQ(driver_of(0), "a");
  }
}

TEST_F(RedisServers, ALeaseIsGoodAtEveryServer) {
  const auto a = join("a", 4);
  const auto b = join("b", 4);
  a->driver.push_all({JobSpec("t", "acked"), JobSpec("t", "nacked"), JobSpec("t", "extended")});
  std::map<std::string, Taken> taken;
  for (const Taken& each : a->driver.take("t", 3)) taken[each.job.id] = each;
  ASSERT_THAT(taken, SizeIs(3));
  EXPECT_EQ(b->driver.ack(taken["acked"]), AckOutcome::kAcked);
  EXPECT_EQ(a->driver.ack(taken["acked"]), AckOutcome::kStale);
  EXPECT_EQ(b->driver.retry(taken["nacked"], at(5)), NackOutcome::kRetried);
  EXPECT_TRUE(b->driver.extend(taken["extended"], at(90'000)));
  EXPECT_EQ(b->driver.get("t", "extended")->until, at(90'000));
}

TEST_F(RedisServers, AnOldLeaseIsNotANewOneAfterRedisHasLostItsLastNumbers) {
  const auto a = join("a");
  a->driver.push_all({JobSpec("t", "old"), JobSpec("t", "new")});
  const std::string sequence = prefix_ + ":{0}:seq";
  const std::string before = shared_redis().command({"GET", sequence}).text;
  const Taken old = a->driver.take_one("t");
  ASSERT_EQ(a->driver.ack(old), AckOutcome::kAcked);
  shared_redis().command({"SET", sequence, before});
  a->driver.go_to(at(1));
  const Taken taken = a->driver.take_one("t");
  EXPECT_NE(taken.lease, old.lease);
  EXPECT_EQ(a->driver.ack(old), AckOutcome::kStale);
  NackRequest ended;
  ended.lease = old.ref();
  ended.retry_at = at(1);
  ended.expired = true;
  EXPECT_EQ(a->driver.nack_all({ended}), std::vector{NackOutcome::kStale});
  EXPECT_EQ(a->driver.ack(taken), AckOutcome::kAcked);
}

TEST_F(RedisServers, LeasesDifferWhateverTheClockSays) {
  const auto a = join("a");
  std::set<std::string> leases;
  const auto take_at = [&](Moment now, int count) {
    std::vector<JobSpec> jobs;
    for (int i = 0; i < count; ++i)
      jobs.emplace_back("t", std::to_string(leases.size()) + "." + std::to_string(i));
    a->driver.push_all(jobs);
    a->driver.go_to(now);
    for (const Taken& each : a->driver.take("t", static_cast<uint32_t>(count))) leases.insert(each.lease);
  };
  take_at(at(1), 1'000);
  take_at(at(1), 1'000);
  take_at(at(2), 1'000);  // more than there are numbers for these milliseconds
  take_at(at(1'000'000'000'000'000), 1'000);
  take_at(at(1'000'000'000'000'001), 1'000);
  EXPECT_THAT(leases, SizeIs(5'000));
}

TEST_F(RedisServers, WhenTheClockGoesBackJobsAreLateByAsMuchAndLeasesHold) {
  const auto a = join("a");
  a->driver.go_to(at(10'000));
  a->driver.push_all({JobSpec("t", "taken"), JobSpec("t", "due").due_at(at(11'000))});
  const Taken taken = a->driver.take_one("t", Millis{1'000});
  a->driver.go_to(at(5'000));
  a->driver.tick();
  EXPECT_THAT(a->driver.take("t", 9), IsEmpty());
  EXPECT_EQ(a->driver.ack(taken), AckOutcome::kAcked);
  a->driver.go_to(at(10'999));
  EXPECT_THAT(a->driver.take("t", 9), IsEmpty());
  a->driver.go_to(at(11'000));
  EXPECT_THAT(ids_of(a->driver.take("t", 9)), testing::ElementsAre("due"));
}

TEST_F(RedisServers, ALeaseOfADeadServerEndsAndAnotherResolvesIt) {
  auto a = join("a", 1, kShortHold);
  const auto b = join("b", 1, kShortHold);
  a->driver.push(JobSpec("t", "job").with_options("o"));
  const Taken taken = a->driver.take_one("t", Millis{1'000});
  a->driver.tick();
  kill(a);
  support::wait_until("the end of a's hold", [&] { return driver_of(0).empty(); });
  b->driver.go_to(at(1'000));
  b->driver.tick();
  const std::vector<LeaseInfo> ended = b->driver.expired_news();
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].lease, taken.lease);
  EXPECT_EQ(ended[0].options, "o");
  const auto c = join("c");
  NackRequest request;
  request.lease = {ended[0].topic, ended[0].lease};
  request.retry_at = at(1'000);
  request.expired = true;
  c->driver.go_to(at(1'000));
  EXPECT_EQ(c->driver.nack_all({request}), std::vector{NackOutcome::kRetried});
  EXPECT_EQ(b->driver.nack_all({request}), std::vector{NackOutcome::kStale});
  EXPECT_EQ(b->driver.take_one("t").job.attempts, 2U);
}

TEST_F(RedisServers, AnEndThatNobodyResolvedIsToldAgain) {
  const auto a = join("a");
  a->driver.push(JobSpec("t", "job"));
  a->driver.take_one("t", Millis{1'000});
  a->driver.go_to(at(1'000));
  a->driver.tick();
  EXPECT_THAT(a->driver.expired_news(), SizeIs(1));
  const Moment next = a->driver.tick();
  EXPECT_THAT(a->driver.expired_news(), IsEmpty());
  EXPECT_LE(next, at(1'000) + std::chrono::seconds{10});
  a->driver.go_to(next);
  a->driver.tick();
  EXPECT_THAT(a->driver.expired_news(), SizeIs(1));
}

TEST_F(RedisServers, WhoWasHeldBackByALimitIsToldWhenThereIsRoom) {
  const auto a = join("a");
  const auto b = join("b");
  for (const bool auto_ack : {false, true}) {
    const std::string topic = auto_ack ? "for-good" : "leased";
    SCOPED_TRACE(topic);
    a->driver.push_all({JobSpec(topic, "first"), JobSpec(topic, "second")});
    TakeRequest request;
    request.topic = topic;
    request.max_reserved = 1;
    request.lease_until = at(60'000);
    const std::vector<Taken> first = a->driver.take(request);
    ASSERT_THAT(first, SizeIs(1));
    request.auto_ack = auto_ack;
    b->driver.settle();
    EXPECT_THAT(b->driver.take(request), IsEmpty());
    hear(*b, "old news at b", [&] { return b->driver.ready_news().contains(topic); });
    a->driver.ack(first[0]);
    hear(*b, "news of room at b", [&] { return b->driver.ready_news().contains(topic); });
    EXPECT_THAT(b->driver.take(request), SizeIs(1));
  }
}

TEST_F(RedisServers, ALeaseThatOneExtendedIsNotEndedByAnotherWhoseClockIsAhead) {
  const auto a = join("a");
  const auto b = join("b");
  a->driver.push(JobSpec("t", "job"));
  const Taken taken = a->driver.take_one("t", Millis{1'000});
  a->driver.go_to(at(1'000));
  a->driver.tick();
  ASSERT_THAT(a->driver.expired_news(), SizeIs(1));
  b->driver.go_to(at(999));
  ASSERT_TRUE(b->driver.extend(taken, at(60'000)));
  NackRequest ended;
  ended.lease = taken.ref();
  ended.retry_at = at(1'000);
  ended.expired = true;
  EXPECT_EQ(a->driver.nack_all({ended}), std::vector{NackOutcome::kStale});
  b->driver.go_to(at(1'001));
  EXPECT_EQ(b->driver.ack(taken), AckOutcome::kAcked) << "who holds it was told that it may go on";
}

TEST_F(RedisServers, NothingIsLeftOfATopicWithoutJobs) {
  const auto a = join("a", 2);
  for (int i = 0; i < 20; ++i)
    a->driver.push(JobSpec("t", std::to_string(i)).in_group("g").due_at(at(i % 3 == 0 ? 100 : 0)));
  for (const Taken& taken : a->driver.take("t", 5)) a->driver.ack(taken, kKeepNone);
  for (const Taken& taken : a->driver.take("t", 5)) a->driver.ack(taken, {at(50), 10});
  for (int i = 0; i < 20; ++i) a->driver.cancel("t", std::to_string(i));
  a->driver.go_to(at(10'000'000));
  a->driver.tick();
  const resp::Value left = shared_redis().command({"KEYS", prefix_ + ":*"});
  for (const resp::Value& key : left.items)
    EXPECT_TRUE(key.text.ends_with(":seq") || key.text.ends_with(":driver") || key.text.ends_with(":meta"))
        << key.text;
}

/// Queues over two servers: the news of jobs are made by the queue.
TEST_F(RedisServers, NewsOfAllServersAreHeardAtEach) {
  const auto a = join("a", 2);
  const auto b = join("b", 2);
  support::QueueDriver near{a->server->engine(), {}, [&] { return a->server->pump(); }};
  support::QueueDriver far{b->server->engine(), {}, [&] { return b->server->pump(); }};
  const auto listener = *near.queue().listen(near.now(), {.topic = "t"}, {});
  std::vector<std::string> told;
  const auto hear_until = [&](std::string_view last) {
    support::wait_until(last, [&] {
      for (support::QueueDriver* each : {&near, &far}) each->run_to(each->now() + News::kSendEvery);
      listener->read([&](const NewsListener::Read&) { told.emplace_back("missed"); },
                     [&](const NewsItem& item, std::string&) {
                       if (item.id == "a")
                         told.push_back(std::string(name_of(item.kind)) + " " + std::string(item.id));
                     });
      return !told.empty() && told.back() == last;
    });
  };
  // The other server hears that somebody listens before it tells anything.
  support::wait_until("the other server watches", [&] {
    near.run();
    far.run();
    const std::string id = far.push({.topic = "t", .delay = Limits::kMaxDelay});
    far.run_to(far.now() + News::kSendEvery);
    near.run();
    size_t shown = 0;
    listener->read([](const NewsListener::Read&) {}, [&](const NewsItem&, std::string&) { ++shown; });
    return shown > 0;
  });
  for (int i = 0; i < 10; ++i) {
    for (support::QueueDriver* each : {&near, &far}) each->run_to(each->now() + News::kSendEvery);
    listener->read([](const NewsListener::Read&) {}, [](const NewsItem&, std::string&) {});
  }
  far.push({.topic = "t", .id = "a", .group = "g", .delay = Millis{10}});
  far.push({.topic = "other", .id = "b"});
  hear_until("due a");
  EXPECT_THAT(told, testing::ElementsAre("pushed a", "due a")) << "once, whichever server made it ready";
  told.clear();
  const support::Taken taken = far.pop_one("t");
  ASSERT_TRUE(far.nack({.lease = taken.lease, .reason = "broken", .dead = true}).ok());
  hear_until("dead a");
  EXPECT_THAT(told, testing::ElementsAre("handed_over a", "dead a"));
}

}  // namespace
}  // namespace delayq::contract
