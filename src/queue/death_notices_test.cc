#include "queue/death_notices.h"

#include <gmock/gmock.h>

#include "core/random.h"
#include "engine/memory/memory_engine.h"
#include "queue/news.h"
#include "tests/support/forwarding_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using std::chrono::seconds;
using support::Taken;
using testing::ElementsAre;

/// An engine that refuses pushes or nacks, and remembers the order in which it is asked.
class Stubborn final : public support::ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;
  void push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) override {
    asked.emplace_back("push");
    if (!refuses_pushes) return ForwardingEngine::push(now, jobs, std::move(reply));
    refuse(std::move(reply), ErrorCode::kDiskFull);
  }
  void nack(Moment now, std::span<const NackRequest> leases, Reply<std::vector<NackOutcome>> reply) override {
    asked.emplace_back("nack");
    if (!refuses_nacks) return ForwardingEngine::nack(now, leases, std::move(reply));
    refuse(std::move(reply), ErrorCode::kUnavailable);
  }
  /// The memory engine reports an undecided lease again in every tick: here, once for each moment.
  Moment tick(Moment now) override {
    if (std::exchange(ticked_, now) != now) next_ = ForwardingEngine::tick(now);
    return next_;
  }
  bool poll(EngineListener& listener) override {
    const bool any = ForwardingEngine::poll(listener);
    auto later = std::exchange(later_, {});
    for (auto& each : later) each();
    return any || !later.empty();
  }

  bool refuses_pushes = false;
  bool refuses_nacks = false;
  std::vector<std::string> asked;

 private:
  Moment ticked_ = Moment::min();
  Moment next_ = kNever;
  template <class T>
  void refuse(Reply<T> reply, ErrorCode code) {
    later_.push_back([reply = std::move(reply), code]() mutable { reply(Error{code, "test", "not now"}); });
  }
  std::vector<absl::AnyInvocable<void()>> later_;
};

class Dying : public testing::Test {
 protected:
  Dying() {
    queue_.set("t", {.attempts = 1, .lease = seconds{30}, .on_dead = "t.dead"});
    queue_.push({.topic = "t", .id = "a"});
    taken_ = queue_.pop_one("t");
    engine_.asked.clear();
  }
  Result<NackReceipt> kill() { return queue_.nack({.lease = taken_.lease, .dead = true}); }
  uint64_t notices() { return queue_.count("t.dead", JobState::kReady); }

  MemoryEngine memory_;
  Stubborn engine_{memory_};
  support::QueueDriver queue_{engine_};
  Taken taken_;
};

TEST_F(Dying, TheNoticeComesFirst) {
  ASSERT_TRUE(kill().ok());
  EXPECT_THAT(engine_.asked, ElementsAre("push", "nack"));
}

TEST_F(Dying, WithoutRoomForTheNoticeTheJobDoesNotDie) {
  engine_.refuses_pushes = true;
  EXPECT_EQ(kill().error().code, ErrorCode::kDiskFull);
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kReserved);
  // Its lease expires, and the queue tries again until there is room.
  queue_.run_to(queue_.now() + seconds{31});
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kReserved);
  EXPECT_EQ(notices(), 0U);
  engine_.asked.clear();
  for (int i = 0; i < 10; ++i) queue_.run_to(queue_.now() + seconds{2});
  EXPECT_LE(engine_.asked.size(), 10U) << "a lease that is reported again is decided once";
  engine_.refuses_pushes = false;
  queue_.run_to(queue_.now() + seconds{2});
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kDead);
  EXPECT_EQ(notices(), 1U);
}

TEST_F(Dying, AStopBetweenTheTwoStepsLeavesOneNotice) {
  engine_.refuses_nacks = true;
  EXPECT_EQ(kill().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(notices(), 1U);
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kReserved) << "as a server finds it that starts now";
  engine_.refuses_nacks = false;
  queue_.run_to(queue_.now() + seconds{31});
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kDead);
  EXPECT_EQ(notices(), 1U) << "the same notice, not another one";
}

TEST_F(Dying, WithoutTheSettingItIsOneStep) {
  queue_.set("t", {});
  ASSERT_TRUE(kill().ok());
  EXPECT_THAT(engine_.asked, ElementsAre("nack"));
}

TEST(MadeUpLeases, LeaveNothing) {
  MemoryEngine engine;
  support::QueueDriver queue{engine};
  queue.set("*", {.on_dead = "all.dead"});
  ASSERT_EQ(queue.run(), kNever);
  EXPECT_EQ(queue.nack({.lease = "made_up/m1/1", .dead = true}).error().code, ErrorCode::kStaleLease);
  EXPECT_EQ(queue.run(), kNever) << "a topic is there that has to be forgotten";
}

// ---- news, at no cost when nobody listens

/// An engine that counts what is asked only for news.
class Counting final : public support::ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;
  void held(Moment now, std::span<const LeaseRef> leases, bool with_bodies, Reply<HeldJobs> reply) override {
    ++asked;
    ForwardingEngine::held(now, leases, with_bodies, std::move(reply));
  }
  void get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply) override {
    ++asked;
    ForwardingEngine::get(now, job, std::move(reply));
  }
  void watch_due(bool is_on) override {
    watches = is_on;
    ForwardingEngine::watch_due(is_on);
  }
  int asked = 0;
  bool watches = false;
};

TEST(NewsOfJobs, TheEngineIsAskedOnlyWhileSomebodyListens) {
  MemoryEngine memory;
  Counting engine{memory};
  support::QueueDriver queue{engine};
  const auto live = [&](std::string_view id) {
    queue.push({.topic = "t", .id = id});
    EXPECT_TRUE(queue.ack(queue.pop_one("t").lease).ok());
    queue.push({.topic = "t", .id = id});
    queue.cancel("t", id);
  };
  live("a");
  EXPECT_EQ(engine.asked, 0);
  EXPECT_FALSE(engine.watches);
  auto listener = queue.queue().listen(queue.now(), {}, {});
  ASSERT_TRUE(listener.ok());
  EXPECT_TRUE(engine.watches);
  live("b");
  EXPECT_GT(engine.asked, 0);
  (*listener).reset();
  queue.run_to(queue.now() + News::kLinger + seconds{1});
  EXPECT_FALSE(engine.watches);
  const int before = engine.asked;
  live("c");
  EXPECT_EQ(engine.asked, before);
}

TEST(NewsOfJobs, FiltersAreBounded) {
  MemoryEngine memory;
  support::QueueDriver queue{memory};
  std::vector<std::shared_ptr<NewsListener>> all;
  for (size_t i = 0; i < News::kMostFilters; ++i)
    all.push_back(*queue.queue().listen(queue.now(), {.topic = "t" + std::to_string(i)}, {}));
  const auto refused = queue.queue().listen(queue.now(), {.topic = "one_more"}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kOverloaded);
  EXPECT_TRUE(queue.queue().listen(queue.now(), {.topic = "t0"}, {}).ok()) << "a filter that is there";
  EXPECT_FALSE(queue.queue().listen(queue.now(), {.topic = "no topic"}, {}).ok());
  all.front().reset();
  EXPECT_TRUE(queue.queue().listen(queue.now(), {.topic = "one_more"}, {}).ok())
      << "a filter that nobody uses any more is in nobody's way";
}

TEST(NewsOfJobs, OneThatChangesItsFilterAllTheTimeKeepsNobodyOut) {
  MemoryEngine memory;
  support::QueueDriver queue{memory};
  const auto listener = *queue.queue().listen(queue.now(), {.topic = "t"}, {});
  for (size_t i = 0; i < 3 * News::kMostFilters; ++i)
    ASSERT_TRUE(queue.queue().listen(queue.now(), {.group = "g" + std::to_string(i)}, {}).ok());
  queue.push({.topic = "t", .id = "a"});
  size_t shown = 0;
  listener->read([](const NewsListener::Read&) { FAIL() << "nothing was missed"; },
                 [&](const NewsItem&, std::string&) { ++shown; });
  EXPECT_EQ(shown, 1U);
}

TEST(NewsOfJobs, MemoryHasABoundWhateverTheyTell) {
  MemoryEngine memory;
  News news{memory, 1};
  const auto alive = std::make_shared<const char>();
  const auto all = *news.listen(Moment{}, {}, {}, alive);
  const auto one = *news.listen(Moment{}, {.topic = "t"}, {}, alive);
  const size_t empty = news.footprint();
  Moment now{};
  const std::string name(Limits::kIdBytes, 'x');
  const std::string topic(Limits::kTopicBytes, 't');
  const auto show = [](const NewsItem&, std::string& rendered) {
    if (rendered.empty()) rendered.append(kNewsReasonBytes * 10, 'r');
  };
  // Long ones and short ones by turns: each place of the ring has had a long one. So slowly that all are
  // kept.
  for (int round = 0; round < 8; ++round) {
    for (size_t i = 0; i < News::kItems; ++i) {
      NewsItem item{.kind = NewsKind::kDead, .topic = topic, .id = name, .group = name, .reason = name};
      if (round % 2 == 1) item = {.topic = "t", .id = "a"};
      item.at = now += Millis{1};
      news.note(item);
      if (i % News::kPerRead != 0) continue;
      all->read([](const NewsListener::Read&) {}, show);
      one->read([](const NewsListener::Read&) {}, show);
      constexpr uint64_t kOneRead = 2 * News::kPerRead * 4'096;
      ASSERT_LE(news.footprint(), empty + News::kBytes + kOneRead) << "round " << round << ", item " << i;
    }
  }
  size_t gaps = 0;
  for (size_t i = 0; i < 10; ++i) news.note_left_out(3);
  all->read([&](const NewsListener::Read& read) { gaps += read.missed; }, show);
  EXPECT_GE(gaps, 30U);
}

TEST(NewsOfJobs, WhatOtherServersAreToldHasABound) {
  MemoryEngine memory;
  News news{memory, 1};
  news.on_told(Moment{}, "l");  // another server has listeners
  ASSERT_TRUE(news.is_on());
  for (int i = 0; i < 10'000; ++i) news.note({.kind = NewsKind::kDone, .topic = "t", .id = "a job of many"});
  EXPECT_GT(news.footprint(), News::kMostOutgoing);
  EXPECT_LT(news.footprint(), 2 * News::kMostOutgoing + 1'024);
}

TEST(NewsOfJobs, AMessageOfAnotherServerIsCheckedInEveryByte) {
  // Two queues that hear each other, as over one Redis.
  class Wire final : public support::ForwardingEngine {
   public:
    using ForwardingEngine::ForwardingEngine;
    void tell_others(std::string_view message) override { sent.emplace_back(message); }
    bool poll(EngineListener& listener) override {
      const bool any = ForwardingEngine::poll(listener) || !heard.empty();
      for (const std::string& message : std::exchange(heard, {})) listener.on_told(message);
      return any;
    }
    std::vector<std::string> sent, heard;
  };
  MemoryEngine memory, other_memory;
  Wire engine{memory}, other{other_memory};
  support::QueueDriver queue{engine}, far{other};
  const auto listener = *queue.queue().listen(queue.now(), {}, {});
  queue.run();
  ASSERT_FALSE(engine.sent.empty());
  other.heard = engine.sent;
  far.run();
  far.push({.topic = "t", .id = "a", .group = "g", .delay = seconds{5}});
  far.run_to(far.now() + seconds{1});
  ASSERT_FALSE(other.sent.empty());
  const std::string good = other.sent.back();
  const auto count = [&] {
    size_t shown = 0;
    queue.run();
    listener->read([](const NewsListener::Read&) {}, [&](const NewsItem&, std::string&) { ++shown; });
    return shown;
  };
  engine.heard = {good};
  EXPECT_EQ(count(), 1U);
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random{kSeed};
  for (int round = 0; round < 2'000; ++round) {
    std::string damaged = good.substr(0, random.between(0, good.size()));
    if (!damaged.empty() && round % 2 == 0)
      damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    engine.heard = {damaged};
    count();  // the sanitizers look
  }
}

}  // namespace
}  // namespace delayq
