// Rule 17: whoever listens is told what happens to each job, or that something was missed.
#include <fmt/format.h>

#include "queue/news.h"
#include "tests/contract/queue_contract.h"

namespace delayq::contract {
namespace {

class Rule17News : public QueueContract {
 protected:
  using Listener = std::shared_ptr<NewsListener>;

  Listener listen(NewsFilter filter = {}, std::string_view cursor = {}) {
    Result<Listener> listener = queue_->queue().listen(queue_->now(), std::move(filter), cursor);
    EXPECT_TRUE(listener.ok()) << to_string(listener.error());
    queue_->run();
    return *listener;
  }

  /// "pushed t/a ready", one for each piece of news; "missed".
  static std::vector<std::string> read(NewsListener& listener) {
    std::vector<std::string> told;
    listener.read([&](const NewsListener::Read&) { told.emplace_back("missed"); },
                  [&](const NewsItem& item, std::string&) {
                    told.push_back(fmt::format("{} {}/{}{}{}{}{}", name_of(item.kind), item.topic,
                                               item.id.empty() ? fmt::format("{} jobs", item.count) : item.id,
                                               item.group.empty() ? "" : fmt::format(" of {}", item.group),
                                               item.state ? fmt::format(" {}", name_of(*item.state)) : "",
                                               item.attempt > 0 ? fmt::format(" #{}", item.attempt) : "",
                                               item.reason.empty() ? "" : fmt::format(" ({})", item.reason)));
                  });
    return told;
  }
  /// Reads until there are that many, since some come from an engine a moment later.
  std::vector<std::string> read(NewsListener& listener, size_t count) {
    std::vector<std::string> told;
    queue_->wait_for("news", [&] {
      queue_->run();
      for (std::string& each : read(listener)) told.push_back(std::move(each));
      return told.size() >= count;
    });
    return told;
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule17News);

TEST_P(Rule17News, TheWholeLifeOfAJob) {
  const Listener all = listen();
  queue_->set("t", {.attempts = 2, .backoff = parse_backoff("10s").value()});
  queue_->push({.topic = "t", .id = "a", .group = "g", .delay = seconds{5}});
  EXPECT_THAT(read(*all, 1), ElementsAre("pushed t/a of g delayed"));
  queue_->run_to(queue_->now() + seconds{5});
  EXPECT_THAT(read(*all, 1), ElementsAre("due t/a of g ready"));
  Taken taken = queue_->pop_one("t");
  ASSERT_TRUE(queue_->nack({.lease = taken.lease, .reason = "no luck"}).ok());
  EXPECT_THAT(read(*all, 2),
              ElementsAre("handed_over t/a of g reserved #1", "failed t/a of g delayed #1 (no luck)"));
  queue_->run_to(queue_->now() + seconds{10});
  EXPECT_THAT(read(*all, 1), ElementsAre("due t/a of g ready")) << "may come behind what is done at once";
  taken = queue_->pop_one("t");
  ASSERT_TRUE(queue_->ack(taken.lease).ok());
  EXPECT_THAT(read(*all, 2), ElementsAre("handed_over t/a of g reserved #2", "done t/a of g done #2"));
}

TEST_P(Rule17News, DeadByAConsumerAndByItsLease) {
  queue_->set("t", {.attempts = 1, .lease = seconds{30}});
  const Listener dead = listen({.kinds = 1U << static_cast<uint32_t>(NewsKind::kDead)});
  queue_->push({.topic = "t", .id = "a"});
  queue_->push({.topic = "t", .id = "b"});
  const Taken first = queue_->pop_one("t");
  queue_->pop_one("t");
  ASSERT_TRUE(queue_->nack({.lease = first.lease, .reason = "broken", .dead = true}).ok());
  EXPECT_THAT(read(*dead, 1), ElementsAre("dead t/a dead #1 (broken)"));
  queue_->run_to(queue_->now() + seconds{31});
  EXPECT_THAT(read(*dead, 1), ElementsAre("dead t/b dead #1 (lease ran out)"));
}

TEST_P(Rule17News, Cancelled) {
  const Listener all = listen();
  queue_->push({.topic = "t", .id = "a", .group = "g", .delay = seconds{5}});
  queue_->push({.topic = "t", .id = "b", .group = "g", .delay = seconds{5}});
  queue_->push({.topic = "t", .id = "c", .group = "g", .delay = seconds{5}});
  queue_->push({.topic = "u", .id = "d"});
  read(*all, 4);
  queue_->cancel("t", "a");
  queue_->cancel("t", "unknown");
  queue_->cancel_group("g");
  EXPECT_THAT(read(*all, 2), testing::UnorderedElementsAre("cancelled t/a of g", "cancelled t/2 jobs of g"));
  // A job that runs is told of when its attempt ends.
  const Taken taken = queue_->pop_one("u");
  queue_->cancel("u", "d");
  ASSERT_TRUE(queue_->nack({.lease = taken.lease, .reason = "late"}).ok());
  EXPECT_THAT(read(*all, 2), ElementsAre("handed_over u/d reserved #1", "cancelled u/d #1 (late)"));
}

TEST_P(Rule17News, FilteredByTopicGroupStateAndWhatTheTokenMaySee) {
  const Listener topic = listen({.topic = "t"});
  const Listener group = listen({.group = "g"});
  const Listener ready = listen({.states = 1U << static_cast<uint32_t>(JobState::kReady)});
  const Listener token = listen({.patterns = {"u*"}});
  const Listener nothing = listen({.patterns = {""}});
  queue_->push({.topic = "t", .id = "a"});
  queue_->push({.topic = "t", .id = "b", .group = "g", .delay = hours{1}});
  queue_->push({.topic = "us", .id = "c", .group = "g"});
  EXPECT_THAT(read(*topic, 2), ElementsAre("pushed t/a ready", "pushed t/b of g delayed"));
  EXPECT_THAT(read(*group, 2), ElementsAre("pushed t/b of g delayed", "pushed us/c of g ready"));
  EXPECT_THAT(read(*ready, 2), ElementsAre("pushed t/a ready", "pushed us/c of g ready"));
  EXPECT_THAT(read(*token, 1), ElementsAre("pushed us/c of g ready"));
  EXPECT_THAT(read(*nothing), IsEmpty());
  token->set_patterns({"t"});
  queue_->push({.topic = "t", .id = "d"});
  queue_->push({.topic = "us", .id = "e"});
  EXPECT_THAT(read(*token, 1), ElementsAre("pushed t/d ready"));
}

TEST_P(Rule17News, WhoComesBackGoesOnFromItsCursor) {
  Listener listener = listen();
  queue_->push({.topic = "t", .id = "a"});
  EXPECT_THAT(read(*listener, 1), SizeIs(1));
  const std::string cursor = listener->cursor();
  listener.reset();
  queue_->push({.topic = "t", .id = "b"});
  listener = listen({}, cursor);
  EXPECT_THAT(read(*listener, 1), ElementsAre("pushed t/b ready"));
  // With another filter, or after too long, or at a server that was restarted.
  EXPECT_THAT(read(*listen({.topic = "t"}, cursor), 1), ElementsAre("missed"));
  listener.reset();
  queue_->run_to(queue_->now() + News::kLinger + seconds{1});
  listener = listen({}, cursor);
  EXPECT_THAT(read(*listener, 1), ElementsAre("missed"));
  EXPECT_FALSE(queue_->queue().listen(queue_->now(), {}, "what").ok());
}

TEST_P(Rule17News, NothingIsKeptOrAskedWhenNobodyListens) {
  queue_->push({.topic = "t", .id = "a", .delay = seconds{1}});
  { const Listener gone = listen(); }
  queue_->run_to(queue_->now() + News::kLinger + seconds{1});
  queue_->pop_one("t");
  EXPECT_THAT(read(*listen()), IsEmpty());
}

class Rule17Flood : public Rule17News {
 protected:
  static constexpr uint32_t kBatch = 1'000;

  /// Pushes so many batches of jobs, with `pause` after each.
  void flood(uint32_t batches, Millis pause) {
    std::vector<std::string> ids;
    for (uint32_t i = 0; i < kBatch; ++i) ids.push_back(fmt::format("{}", i));
    for (uint32_t round = 0; round < batches; ++round) {
      std::vector<PushRequest> jobs;
      for (const std::string& id : ids)
        jobs.push_back({.topic = "t", .id = id, .delay = hours{1}, .on_conflict = OnConflict::kReplace});
      queue_->must<PushReport>(
          "push", [&](auto reply) { queue_->queue().push(queue_->now(), jobs, std::move(reply)); });
      queue_->go_to(queue_->now() + pause);
    }
  }
  struct Heard {
    size_t shown = 0;
    size_t others = 0;  ///< of another kind than pushed
    uint64_t missed = 0;
    bool operator==(const Heard&) const = default;
  };
  static Heard hear(NewsListener& listener) {
    Heard heard;
    for (size_t before = 1; before != heard.shown;) {
      before = heard.shown;
      listener.read([&](const NewsListener::Read& read) { heard.missed += read.missed; },
                    [&](const NewsItem& item, std::string&) {
                      ++heard.shown;
                      if (item.kind != NewsKind::kPushed) ++heard.others;
                    });
    }
    return heard;
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule17Flood);

TEST_P(Rule17Flood, WhoReadsTooSlowlyIsToldHowManyItMissed) {
  const Listener listener = listen();
  const auto pause = Millis{kBatch / News::kKeptPerMs};  // so slowly that all are kept
  flood(News::kItems / kBatch, pause);
  EXPECT_EQ(hear(*listener), (Heard{News::kLatest, 0, News::kItems / kBatch * kBatch - News::kLatest}));
  EXPECT_THAT(read(*listener), IsEmpty());
}

TEST_P(Rule17Flood, OfAFloodAPartIsToldAndTheRestIsCounted) {
  const Listener listener = listen();
  const Listener deaths = listen({.kinds = 1U << static_cast<uint32_t>(NewsKind::kDead)});
  const Listener pushes = listen({.kinds = 1U << static_cast<uint32_t>(NewsKind::kPushed)});
  queue_->push({.topic = "u", .id = "a"});
  const std::string lease = queue_->pop_one("u").lease;
  const uint32_t batches = News::kBurst / kBatch + 4;
  flood(batches, Millis{0});
  const uint64_t all = batches * kBatch + 1;
  const std::string cursor = listener->cursor();
  ASSERT_TRUE(queue_->nack({.lease = lease, .reason = "broken", .dead = true}).ok());
  EXPECT_EQ(hear(*listener), (Heard{News::kBurst + 2, 2, all - News::kBurst})) << "a pop and a death";
  EXPECT_EQ(hear(*deaths), (Heard{1, 1, 0}));
  EXPECT_EQ(hear(*pushes), (Heard{News::kBurst, 0, all - News::kBurst}));
  // Who lost the connection before it read them is told the same.
  EXPECT_EQ(hear(*listen({}, cursor)), (Heard{News::kBurst + 2, 2, all - News::kBurst}));
  // And when time has passed there is room again.
  queue_->go_to(queue_->now() + Millis{100});
  flood(1, Millis{0});
  EXPECT_EQ(hear(*listener), (Heard{100 * News::kKeptPerMs, 0, kBatch - 100 * News::kKeptPerMs}));
}

TEST_P(Rule17News, AListenerMayOutliveTheQueue) {
  const Listener listener = listen();
  restart();
}

// ---- on_dead

class Rule17OnDead : public QueueContract {
 protected:
  /// Takes the only job of the topic and lets it die.
  Result<NackReceipt> kill_one(std::string_view topic) {
    return queue_->nack({.lease = queue_->pop_one(topic).lease, .reason = "broken", .dead = true});
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule17OnDead);

TEST_P(Rule17OnDead, ATopicGetsANoticeOfEachDeath) {
  queue_->set("t", {.keep_dead = Retention{hours{1}, 10}, .on_dead = "t.dead"});
  queue_->push({.topic = "t", .id = "a", .group = "g", .body = R"({"n":1})"});
  const Result<NackReceipt> receipt = kill_one("t");
  ASSERT_TRUE(receipt.ok());
  EXPECT_EQ(receipt->outcome, NackOutcome::kDead);
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kDead);
  const Taken notice = queue_->pop_one("t.dead");
  for (const std::string_view part : {R"("event":"dead","topic":"t","id":"a","body":{"n":1})",
                                      R"("error":"broken","attempts":1)", R"("group":"g")"})
    EXPECT_THAT(notice.job.body, HasSubstr(part));
  EXPECT_EQ(queue_->count("t.dead", JobState::kReady), 0U);
}

TEST_P(Rule17OnDead, AUrlIsCalledWithAJobOfTheSameTopic) {
  queue_->set("t", {.on_dead = "https://ops.example/dead"});
  queue_->push({.topic = "t", .id = "a"});
  ASSERT_TRUE(kill_one("t").ok());
  EXPECT_EQ(queue_->count("t", JobState::kReady), 1U);
  EXPECT_THAT(queue_->pop("t"), IsEmpty()) << "it is called, not popped";
}

TEST_P(Rule17OnDead, AnExpiredLeaseIsADeathToo) {
  queue_->set("t", {.attempts = 1, .lease = seconds{30}, .on_dead = "t.dead"});
  queue_->push({.topic = "t", .id = "a"});
  queue_->pop_one("t");
  queue_->run_to(queue_->now() + seconds{31});
  queue_->wait_for("the notice", [&] {
    queue_->run();
    return queue_->count("t.dead", JobState::kReady) == 1;
  });
  EXPECT_THAT(queue_->pop_one("t.dead").job.body, HasSubstr("lease ran out"));
}

TEST_P(Rule17OnDead, ItIsToldAgainAfterARedrive) {
  queue_->set("t", {.on_dead = "t.dead"});
  queue_->push({.topic = "t", .id = "a"});
  ASSERT_TRUE(kill_one("t").ok());
  queue_->go_to(queue_->now() + seconds{1});
  queue_->must<uint64_t>(
      "redrive", [&](auto reply) { queue_->queue().redrive_all(queue_->now(), "t", std::move(reply)); });
  ASSERT_TRUE(kill_one("t").ok());
  EXPECT_EQ(queue_->count("t.dead", JobState::kReady), 2U);
}

TEST_P(Rule17OnDead, NoNoticeOfNoticesSoThereAreNoLoops) {
  queue_->set("t", {.on_dead = "u"});
  queue_->set("u", {.on_dead = "t"});
  queue_->push({.topic = "t", .id = "a"});
  ASSERT_TRUE(kill_one("t").ok());
  ASSERT_TRUE(kill_one("u").ok());
  EXPECT_EQ(queue_->count("u", JobState::kDead), 1U);
  EXPECT_EQ(queue_->count("t", JobState::kReady), 0U);
  EXPECT_EQ(queue_->count("t", JobState::kDead), 1U);
  // For all topics: the one that gets the notices makes none for itself.
  queue_->set("*", {.on_dead = "all.dead"});
  queue_->push({.topic = "all.dead", .id = "x"});
  ASSERT_TRUE(kill_one("all.dead").ok());
  EXPECT_EQ(queue_->count("all.dead", JobState::kReady), 0U);
  queue_->push({.topic = "other", .id = "x"});
  ASSERT_TRUE(kill_one("other").ok());
  EXPECT_EQ(queue_->count("all.dead", JobState::kReady), 1U);
  const Status status = queue_->ask<void>("set", [&](auto reply) {
    queue_->queue().set_settings(queue_->now(), "t", {.on_dead = "t"}, std::move(reply));
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().field, "on_dead");
}

TEST_P(Rule17OnDead, AStaleLeaseAndACancelledJobAreNoDeaths) {
  queue_->set("t", {.on_dead = "t.dead"});
  queue_->push({.topic = "t", .id = "a"});
  const Taken taken = queue_->pop_one("t");
  queue_->cancel("t", "a");
  const Result<NackReceipt> receipt = queue_->nack({.lease = taken.lease, .dead = true});
  ASSERT_TRUE(receipt.ok());
  EXPECT_EQ(receipt->outcome, NackOutcome::kCancelled);
  EXPECT_EQ(queue_->nack({.lease = taken.lease, .dead = true}).error().code, ErrorCode::kStaleLease);
  EXPECT_EQ(queue_->count("t.dead", JobState::kReady), 0U);
}

TEST_P(Rule17OnDead, ABodyThatDoesNotFitIsLeftOut) {
  QueueConfig config;
  config.limits.body_bytes = 1'000;
  restart(config);
  queue_->set("t", {.on_dead = "t.dead"});
  const std::string body(900, 'x');
  queue_->push({.topic = "t", .id = "a", .body = body});
  ASSERT_TRUE(kill_one("t").ok());
  EXPECT_THAT(queue_->pop_one("t.dead").job.body, HasSubstr(R"("body_left_out":true)"));
}

TEST_P(Rule17OnDead, ManyAtOnce) {
  queue_->set("t", {.on_dead = "t.dead"});
  for (int i = 0; i < 100; ++i) queue_->push({.topic = "t", .id = std::to_string(i)});
  const std::vector<Taken> taken = queue_->pop("t", 100);
  std::vector<NackItem> items;
  for (const Taken& each : taken) items.push_back({.lease = each.lease, .dead = true});
  const auto results = queue_->must<std::vector<Result<NackReceipt>>>(
      "nack", [&](auto reply) { queue_->queue().nack(queue_->now(), items, std::move(reply)); });
  for (const Result<NackReceipt>& result : results) EXPECT_EQ(result->outcome, NackOutcome::kDead);
  EXPECT_EQ(queue_->count("t.dead", JobState::kReady), 100U);
}

}  // namespace
}  // namespace delayq::contract
