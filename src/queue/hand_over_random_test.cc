// Random consumers over an engine whose answers come late and in any order: no wake may be lost.
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "core/random.h"
#include "engine/memory/memory_engine.h"
#include "queue/queue.h"
#include "tests/support/forwarding_engine.h"
#include "tests/support/job_spec.h"

namespace delayq {
namespace {

/// Gives each answer at a later poll, in random order. Some takes end after their first job, as if it were
/// large. Some are cut before their first job, as if other takes had used up the bytes.
class LateEngine final : public support::ForwardingEngine {
 public:
  LateEngine(Engine& inner, uint64_t seed) : ForwardingEngine(inner), random_(seed) {}

  void push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) override {
    ForwardingEngine::push(now, jobs, late(std::move(reply)));
  }
  void take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) override {
    Reply<TakeAnswer> later = late(std::move(reply));
    if (random_.chance(1, 12)) {
      TakeAnswer nothing;
      nothing.is_cut = true;
      return later(std::move(nothing));
    }
    TakeRequest shorter = request;
    if (random_.chance(1, 3)) shorter.max_bytes = 1;
    ForwardingEngine::take(now, shorter, std::move(later));
  }
  void ack(Moment now, std::span<const AckRequest> leases, Reply<std::vector<AckOutcome>> reply) override {
    ForwardingEngine::ack(now, leases, late(std::move(reply)));
  }
  void nack(Moment now, std::span<const NackRequest> leases, Reply<std::vector<NackOutcome>> reply) override {
    ForwardingEngine::nack(now, leases, late(std::move(reply)));
  }
  void extend(Moment now, std::span<const ExtendRequest> leases,
              Reply<std::vector<ExtendAnswer>> reply) override {
    ForwardingEngine::extend(now, leases, late(std::move(reply)));
  }

  bool poll(EngineListener& listener) override {
    bool any = ForwardingEngine::poll(listener);
    for (size_t given = random_.below(3); given > 0 && !held_.empty(); --given) {
      std::swap(held_[random_.below(held_.size())], held_.back());
      auto give = std::move(held_.back());
      held_.pop_back();
      give();
      any = true;
    }
    return any || !held_.empty();
  }

 private:
  template <class T>
  Reply<T> late(Reply<T> reply) {
    return [this, reply = std::move(reply)](Result<T> answer) mutable {
      held_.push_back(
          [reply = std::move(reply), answer = std::move(answer)]() mutable { reply(std::move(answer)); });
    };
  }

  Random random_;
  std::vector<absl::AnyInvocable<void()>> held_;
};

/// Random producers and consumers, and checks of what must be true for them.
class Crowd {
 public:
  explicit Crowd(uint64_t seed) : random_(seed), engine_(memory_, seed), queue_(engine_, {}, seed) {
    queue_.start(now_, [](const Status& status) { EXPECT_TRUE(status.ok()); });
    settle();
    for (const char* topic : {"limited", "narrow"}) set(topic);
  }

  void step() {
    switch (random_.below(8)) {
      case 0:
      case 1:
        push();
        break;
      case 2:
      case 3:
        pop();
        break;
      case 4:
        finish_one();
        break;
      case 5:
        drop();
        break;
      case 6:
        now_ += Millis{static_cast<int64_t>(random_.below(400))};
        break;
      default:
        toggle_pause();
        break;
    }
    if (random_.chance(1, 2)) queue_.poll(now_);
    if (random_.chance(1, 10)) {
      settle();
      check_nobody_waits_in_vain();
    }
  }

  /// Waits until all work is finished, and checks that every job was handed over and every consumer answered.
  void finish() {
    set_paused(false);
    for (int round = 0; round < 3'000 && handed_over_.size() < pushed_; ++round) {
      pop();
      settle();
      while (!leases_.empty()) finish_one();
      now_ += Millis{50};
    }
    now_ += std::chrono::hours{1};
    settle();
    EXPECT_EQ(handed_over_.size(), pushed_);
    EXPECT_TRUE(waiting_.empty()) << "everybody has given up by now";
  }

 private:
  static constexpr const char* kTopics[] = {"a", "b", "limited", "narrow"};

  void set(std::string_view topic) {
    Settings settings;
    settings.lease = std::chrono::hours{20};
    if (topic == "limited") settings.rate = Rate{3, Millis{500}};
    if (topic == "narrow") settings.concurrency = 2;
    queue_.set_settings(now_, topic, settings, [](const Status& status) { EXPECT_TRUE(status.ok()); });
  }

  void push() {
    std::vector<std::string> ids;
    for (uint64_t count = random_.between(1, 4); count > 0; --count)
      ids.push_back("job" + std::to_string(pushed_++));
    const std::string_view topic = kTopics[random_.below(4)];
    std::vector<PushRequest> jobs;
    for (const std::string& id : ids) {
      PushRequest& job = jobs.emplace_back();
      job.topic = topic;
      job.id = id;
      if (random_.chance(1, 3)) job.delay = Millis{static_cast<int64_t>(random_.below(500))};
      if (random_.chance(1, 4)) job.options.lease = std::chrono::hours{10};
    }
    queue_.push(now_, jobs, [](const Result<PushReport>& report) {
      for (const auto& job : report->jobs) EXPECT_TRUE(job.ok());
    });
  }

  void pop() {
    std::vector<std::string_view> topics;
    for (const char* topic : kTopics) {
      if (random_.chance(1, 2)) topics.emplace_back(topic);
    }
    if (topics.empty()) topics.emplace_back("a");
    if (random_.chance(1, 2)) std::swap(topics.front(), topics.back());
    const uint64_t number = ++pops_;
    PopRequest request{.topics = topics, .count = static_cast<uint32_t>(random_.between(1, 3))};
    if (random_.chance(3, 4)) request.wait = Millis{static_cast<int64_t>(random_.below(1'000))};
    const WaiterId waiter = queue_.pop(now_, request, [this, number](const Result<PopAnswer>& popped) {
      ASSERT_TRUE(popped.ok());
      EXPECT_EQ(waiting_.erase(number), 1U) << "answered twice, or after it was dropped";
      for (const TakenJob& taken : popped->jobs) {
        EXPECT_EQ(taken.job.attempts, 1U) << "hand-overs that reached nobody are not counted";
        EXPECT_LE(taken.job.due, now_) << "early";
        EXPECT_TRUE(handed_over_.emplace(taken.job.id).second) << taken.job.id << " was handed over twice";
        leases_.emplace_back(taken.lease);
      }
    });
    waiting_[number] = {waiter, {topics.begin(), topics.end()}};
  }

  void finish_one() {
    if (leases_.empty()) return;
    std::swap(leases_[random_.below(leases_.size())], leases_.back());
    const AckItem item{.lease = leases_.back()};
    queue_.ack(now_, {&item, 1}, [](const auto& acked) { EXPECT_TRUE(acked->at(0).ok()); });
    leases_.pop_back();
  }

  void drop() {
    if (waiting_.empty()) return;
    const auto gone = std::next(waiting_.begin(), static_cast<ptrdiff_t>(random_.below(waiting_.size())));
    EXPECT_TRUE(queue_.drop_waiter(now_, gone->second.waiter));
    waiting_.erase(gone);
  }

  void toggle_pause() { set_paused(!paused_); }
  void set_paused(bool paused) {
    paused_ = paused;
    if (paused) {
      queue_.pause(now_, "b", [](const Status&) {});
    } else {
      queue_.resume(now_, "b", [](const Status&) {});
    }
  }

  void settle() {
    for (int rounds = 0; rounds < 100'000; ++rounds) {
      const Moment next = queue_.tick(now_);
      if (!queue_.poll(now_) && next > now_) return;
    }
    ADD_FAILURE() << "never comes to rest";
  }

  TopicCounts counts(std::string_view topic) {
    std::optional<TopicCounts> counts;
    queue_.stats(now_, topic, [&counts](const Result<TopicStats>& stats) { counts = stats->counts; });
    settle();
    return counts.value();
  }

  /// When no work is left, no consumer waits for a topic that could give it a job.
  void check_nobody_waits_in_vain() {
    const uint64_t reserved = counts("narrow").of(JobState::kReserved);
    EXPECT_LE(reserved, 2U);
    for (const char* topic : kTopics) {
      const std::string_view name = topic;
      if (name == "limited" || (name == "b" && paused_) || (name == "narrow" && reserved == 2)) continue;
      if (counts(name).of(JobState::kReady) == 0) continue;
      for (const auto& [number, waiter] : waiting_) EXPECT_FALSE(waiter.topics.contains(topic)) << topic;
    }
  }

  struct Waiting {
    WaiterId waiter;
    std::set<std::string> topics;
  };

  Random random_;
  Moment now_ = support::kStart;
  MemoryEngine memory_;
  LateEngine engine_;
  Queue queue_;
  bool paused_ = false;
  uint64_t pushed_ = 0;
  uint64_t pops_ = 0;
  std::map<uint64_t, Waiting> waiting_;
  std::set<std::string> handed_over_;
  std::vector<std::string> leases_;
};

TEST(HandOverAtRandom, NoWakeIsLostAndNobodyIsServedTwice) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Crowd crowd{seed};
    for (int step = 0; step < 300 && !testing::Test::HasFailure(); ++step) crowd.step();
    if (!testing::Test::HasFailure()) crowd.finish();
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

}  // namespace
}  // namespace delayq
