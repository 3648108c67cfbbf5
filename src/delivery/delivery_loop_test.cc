#include "delivery/delivery_loop.h"

#include <algorithm>
#include <deque>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "delivery/kafka_sink.h"
#include "delivery/redis_sink.h"
#include "delivery/webhook/webhook_sink.h"
#include "engine/memory/memory_engine.h"
#include "tests/support/fake_caller.h"
#include "tests/support/fake_producer.h"
#include "tests/support/fake_redis_target.h"
#include "tests/support/forwarding_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq::delivery {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using support::at;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

QueueConfig all_are_there() {
  QueueConfig config;
  config.redis.is_there = true;
  config.has_kafka = true;
  return config;
}

/// An engine whose takes fail, or are answered late.
class MoodyEngine final : public support::ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;
  void take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) override {
    if (fails) {
      held_.emplace_back([reply = std::move(reply)]() mutable {
        reply(Error{ErrorCode::kUnavailable, {}, "no disk"});
      });
      return;
    }
    ForwardingEngine::take(now, request, [this, reply = std::move(reply)](Result<TakeAnswer> answer) mutable {
      held_.emplace_back(
          [reply = std::move(reply), answer = std::move(answer)]() mutable { reply(std::move(answer)); });
    });
  }
  bool poll(EngineListener& listener) override {
    const bool any = ForwardingEngine::poll(listener);
    if (holds || held_.empty()) return any;
    for (auto& answer : std::exchange(held_, {})) answer();
    return true;
  }
  bool holds = false;
  bool fails = false;

 private:
  std::vector<absl::AnyInvocable<void()>> held_;
};

/// Jobs that leave by callbacks.
struct Webhooks {
  explicit Webhooks(Queue& queue) : sink(queue, caller, options(), 1) {}
  static webhook::WebhookSinkOptions options() {
    webhook::WebhookSinkOptions options;
    options.hosts = {.per_host = 8, .failures = 1, .cooldown = seconds{10}};
    return options;
  }
  static Settings settings() {
    return {.delivery = Delivery::kWebhook, .callback = "http://good.example/hook"};
  }
  size_t open() const { return caller.open().size(); }
  void succeed() {
    while (open() > 0) caller.answer(200);
  }
  /// The far side cannot be reached.
  void break_off() {
    while (open() > 0) caller.refuse();
  }

  support::FakeCaller caller;
  webhook::WebhookSink sink;
};

/// Jobs that are written to a list.
struct RedisLists {
  explicit RedisLists(Queue& /*queue*/) {}
  static Settings settings() { return {.delivery = Delivery::kRedisList}; }
  size_t open() const {
    size_t jobs = 0;
    for (const auto& made : target.open()) jobs += made.words.size() - 2;
    return jobs;
  }
  void succeed() { target.answer_all(std::string("1")); }
  void break_off() { target.answer_all(Error{ErrorCode::kUnavailable, {}, "connection refused"}); }

  support::FakeRedisTarget target;
  RedisSink sink{target, {}};
};

/// Jobs that are written to a topic in Kafka.
struct KafkaTopics {
  explicit KafkaTopics(Queue& /*queue*/) { sink.set_producer(&producer); }
  static Settings settings() { return {.delivery = Delivery::kKafkaTopic}; }
  size_t open() const { return producer.open().size(); }
  void succeed() { producer.confirm_all(); }
  void break_off() { producer.fail_all(support::FakeProducer::away()); }

  support::FakeProducer producer;
  KafkaSink sink{{.lease = seconds{30}}};  // as long as those of the others
};

/// What holds for every sink: the same cases for callbacks, for Redis and for Kafka.
template <class Way>
class EverySink : public testing::Test {
 protected:
  EverySink() {
    loop_.add(way_.sink);
    queue_.queue().set_delivery_listener(&loop_);
    Settings settings = Way::settings();
    settings.backoff = StepBackoff{{seconds{1}}};
    queue_.set("t", settings);
  }

  /// Until nothing changes any more. Returns when the loop wants to be called next.
  Moment settle() {
    Moment next = kNever;
    for (int rounds = 0; rounds < 1'000; ++rounds) {
      queue_.queue().tick(queue_.now());
      next = loop_.tick(queue_.now());
      const bool queue_moved = queue_.queue().poll(queue_.now());
      loop_.hear();
      const bool loop_moved = loop_.poll(queue_.now());
      if (!queue_moved && !loop_moved) return next;
    }
    ADD_FAILURE() << "it never comes to rest";
    return next;
  }
  Moment settle_at(Moment moment) {
    queue_.go_to(moment);
    return settle();
  }
  /// Due at the start, so that it is due by a clock that was set back, too.
  void push(std::string_view id) { queue_.push({.topic = "t", .id = id, .at = at(0)}); }
  support::SeenJob job(std::string_view id) { return *queue_.get("t", id); }

  MemoryEngine memory_;
  MoodyEngine engine_{memory_};
  support::QueueDriver queue_{engine_, all_are_there()};
  Way way_{queue_.queue()};
  DeliveryLoop loop_{queue_.queue(), 1};
};

using Ways = testing::Types<Webhooks, RedisLists, KafkaTopics>;
TYPED_TEST_SUITE(EverySink, Ways);

TYPED_TEST(EverySink, AJobIsDoneWhenTheFarSideHasIt) {
  this->push("a");
  this->settle();
  ASSERT_EQ(this->way_.open(), 1U);
  EXPECT_EQ(this->job("a").state, JobState::kReserved);
  this->way_.succeed();
  this->settle();
  EXPECT_EQ(this->job("a").state, JobState::kDone);
}

TYPED_TEST(EverySink, AClockThatIsSetBackDoesNotProlongTheRestAfterAFailedTake) {
  this->queue_.go_to(at(0) + hours{2});
  this->push("a");
  this->engine_.fails = true;
  EXPECT_EQ(this->settle(), this->queue_.now() + seconds{1}) << "the engine is left alone for a second";
  this->engine_.fails = false;
  this->queue_.go_to(at(0) + hours{1});
  this->settle();
  EXPECT_EQ(this->way_.open(), 1U);
}

TYPED_TEST(EverySink, AClockThatIsSetBackDoesNotProlongTheRestOfAnUnreachableFarSide) {
  this->queue_.go_to(at(0) + hours{2});
  this->push("a");
  this->settle();
  this->way_.break_off();
  this->settle();
  this->push("b");
  this->settle();
  EXPECT_EQ(this->way_.open(), 0U) << "the far side is left alone";
  this->queue_.go_to(at(0) + hours{1});
  Moment next = this->settle();
  for (int looks = 0; looks < 5 && this->way_.open() == 0; ++looks) {
    ASSERT_LE(next, this->queue_.now() + seconds{10});
    next = this->settle_at(next);
  }
  EXPECT_GT(this->way_.open(), 0U) << "tried again";
}

TYPED_TEST(EverySink, AClockThatIsSetBackDoesNotProlongTheGraceOfAStop) {
  this->queue_.go_to(at(0) + hours{2});
  this->push("a");
  this->settle();
  this->loop_.stop(this->queue_.now(), seconds{10});
  this->settle();
  EXPECT_LE(this->settle_at(at(0) + hours{1}), this->queue_.now() + seconds{10});
  this->settle_at(at(0) + hours{1} + seconds{10});
  EXPECT_NE(this->job("a").state, JobState::kReserved) << "given back before the grace period ends";
  EXPECT_EQ(this->job("a").attempts, 0U);
}

TYPED_TEST(EverySink, AClockThatIsSetBackIsSeenByWhateverIsCalledFirst) {
  this->queue_.go_to(at(0) + hours{2});
  this->push("a");
  this->engine_.fails = true;
  this->settle();
  this->engine_.fails = false;
  this->queue_.go_to(at(0) + hours{1});
  this->loop_.poll(this->queue_.now());
  this->settle();
  EXPECT_EQ(this->way_.open(), 1U);
}

TYPED_TEST(EverySink, AStopGivesBackToThePlaceInLine) {
  this->push("a");
  const Moment due = this->job("a").due;
  this->settle_at(at(500));
  this->loop_.stop(this->queue_.now(), seconds{10});
  this->settle_at(at(20'000));
  EXPECT_EQ(this->job("a").state, JobState::kReady);
  EXPECT_EQ(this->job("a").due, due);
  EXPECT_EQ(this->job("a").attempts, 0U);
}

TYPED_TEST(EverySink, ATakeThatIsAnsweredTooLateGoesBackToItsPlaceInLine) {
  this->push("a");
  const Moment due = this->job("a").due;
  this->engine_.holds = true;
  this->settle();
  this->engine_.holds = false;
  this->settle_at(at(25'000));
  EXPECT_EQ(this->way_.open(), 1U) << "taken anew";
  EXPECT_EQ(this->job("a").due, due);
  EXPECT_EQ(this->job("a").attempts, 1U);
}

TYPED_TEST(EverySink, AJobWhoseTopicIsPulledFromMeanwhileIsGivenBack) {
  this->push("a");
  this->engine_.holds = true;
  this->settle();
  this->queue_.set("t", {.delivery = Delivery::kPull});
  this->engine_.holds = false;
  this->settle();
  EXPECT_EQ(this->way_.open(), 0U);
  EXPECT_EQ(this->job("a").state, JobState::kReady);
  EXPECT_EQ(this->job("a").attempts, 0U);
}

TYPED_TEST(EverySink, AStopWhileATakeIsUnderWayGivesItsJobsBack) {
  this->push("a");
  this->engine_.holds = true;
  this->settle();
  this->loop_.stop(this->queue_.now(), seconds{10});
  this->engine_.holds = false;
  this->settle();
  EXPECT_EQ(this->way_.open(), 0U);
  EXPECT_EQ(this->job("a").state, JobState::kReady);
  EXPECT_EQ(this->job("a").attempts, 0U);
}

// ---- a sink as a message broker needs it

/// Produces jobs into a buffer of a few messages. The broker confirms them later, one by one and in any
/// order.
class BrokerSink final : public Sink {
 public:
  static constexpr uint32_t kBuffer = 4;
  struct Message {
    Ticket ticket;
    std::string id;
  };

  bool takes(Outlet outlet, const EffectiveSettings& topic) const override {
    return outlet == Outlet::kTopic && topic.delivery == Delivery::kRedisStream;
  }
  Room room(Moment /*now*/) override { return {kBuffer - static_cast<uint32_t>(ledger().size())}; }
  LeaseTerms lease_terms(const EffectiveSettings& /*topic*/) const override {
    return {.length = seconds{30}, .at_least = seconds{15}, .is_renewed = true};
  }
  uint32_t first_batch() const override { return 2; }
  size_t send(const Origin& /*origin*/, const Claim& /*claim*/, std::span<const SinkJob> jobs,
              Moment /*now*/) override {
    for (const SinkJob& each : jobs) messages.push_back({each.ticket, std::string(each.job->id)});
    return 0;
  }
  void hear() override { heard_ = std::exchange(confirmed_, {}); }
  bool poll(Moment now) override {
    const auto heard = std::exchange(heard_, {});
    for (const auto& [message, status] : heard) {
      if (status.ok()) {
        ledger().answered();
        ledger().done(message.ticket, "orders[0]");
      } else if (status.error().code == ErrorCode::kUnavailable) {
        ledger().away(now);
        ledger().give_back(message.ticket);
      } else {
        ledger().failed(message.ticket, status.error().detail);
      }
    }
    return !heard.empty();
  }

  /// The broker's answer to a message; heard in the next turn.
  void confirm(std::string_view id, Status status = {}) {
    const auto found = std::find_if(messages.begin(), messages.end(),
                                    [&](const Message& message) { return message.id == id; });
    confirmed_.emplace_back(*found, std::move(status));
    messages.erase(found);
  }
  std::vector<std::string> ids() const {
    std::vector<std::string> ids;
    for (const Message& message : messages) ids.push_back(message.id);
    return ids;
  }

  std::deque<Message> messages;

 private:
  std::vector<std::pair<Message, Status>> confirmed_;
  std::vector<std::pair<Message, Status>> heard_;
};

class Producing : public testing::Test {
 protected:
  Producing() {
    loop_.add(sink_);
    queue_.queue().set_delivery_listener(&loop_);
    queue_.set("t", {.backoff = StepBackoff{{seconds{1}}}, .delivery = Delivery::kRedisStream});
    for (const char* id : {"a", "b", "c", "d", "e", "f"}) queue_.push({.topic = "t", .id = id, .at = at(0)});
  }
  Moment settle_at(Moment moment) {
    queue_.go_to(moment);
    Moment next = kNever;
    for (int rounds = 0; rounds < 100; ++rounds) {
      loop_.hear();
      queue_.queue().tick(queue_.now());
      next = loop_.tick(queue_.now());
      const bool queue_moved = queue_.queue().poll(queue_.now());
      if (!loop_.poll(queue_.now()) && !queue_moved) return next;
    }
    ADD_FAILURE() << "it never comes to rest";
    return next;
  }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_, all_are_there()};
  BrokerSink sink_;
  DeliveryLoop loop_{queue_.queue(), 1};
};

TEST_F(Producing, MessagesAreInOrderAndNoMoreThanTheBufferHolds) {
  settle_at(at(0));
  EXPECT_THAT(sink_.ids(), testing::ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(queue_.count("t", JobState::kReady), 2U) << "what has no room is not taken";
}

TEST_F(Producing, EachIsSettledWhenItIsConfirmed) {
  settle_at(at(0));
  sink_.confirm("c");
  sink_.confirm("a", Error{ErrorCode::kInvalid, {}, "the message is too large"});
  settle_at(at(0));
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kDelayed);
  EXPECT_EQ(queue_.state_of("t", "b"), JobState::kReserved);
  EXPECT_EQ(queue_.state_of("t", "c"), JobState::kDone);
  EXPECT_THAT(sink_.ids(), testing::ElementsAre("b", "d", "e", "f"));
}

TEST_F(Producing, LeasesAreRenewedUntilTheBrokerConfirms) {
  Moment next = settle_at(at(0));
  while (queue_.now() < at(120'000)) {
    ASSERT_LE(next, queue_.now() + seconds{15});
    next = settle_at(next);
  }
  EXPECT_THAT(sink_.ids(), testing::ElementsAre("a", "b", "c", "d")) << "produced once";
  EXPECT_EQ(queue_.get("t", "a")->attempts, 1U);
}

TEST_F(Producing, ABrokerThatIsAwayIsLeftAloneForAWhileAndNoAttemptIsUsed) {
  settle_at(at(0));
  for (const char* id : {"a", "b", "c", "d"}) sink_.confirm(id, Error{ErrorCode::kUnavailable, {}, "away"});
  const Moment next = settle_at(at(0));
  EXPECT_THAT(sink_.ids(), IsEmpty());
  EXPECT_EQ(queue_.get("t", "a")->attempts, 0U);
  ASSERT_GT(next, queue_.now());
  settle_at(next);
  EXPECT_THAT(sink_.ids(), testing::ElementsAre("a", "b", "c", "d"));
}

TEST_F(Producing, AConfirmationAfterTheGracePeriodChangesNothing) {
  settle_at(at(0));
  loop_.stop(queue_.now(), seconds{10});
  settle_at(at(10'000));
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kReady);
  sink_.confirm("a");
  settle_at(at(10'000));
  EXPECT_EQ(queue_.state_of("t", "a"), JobState::kReady);
}

// ---- which sink has a topic

/// Takes no jobs, and remembers which sources it was asked about.
class AskedSink final : public Sink {
 public:
  explicit AskedSink(bool calls_back) : calls_back_(calls_back) {}
  bool takes(Outlet outlet, const EffectiveSettings& topic) const override {
    return calls_back_ ? outlet == Outlet::kCallback || topic.delivery == Delivery::kWebhook
                       : outlet == Outlet::kTopic && goes_to_redis(topic.delivery);
  }
  Room room(Moment /*now*/) override { return {100}; }
  Claim claim(const Origin& origin, uint32_t /*most*/, Moment /*now*/) override {
    asked.emplace(origin.topic, origin.outlet);
    return {.lane = "full"};
  }
  LeaseTerms lease_terms(const EffectiveSettings& /*topic*/) const override { return {}; }
  uint32_t first_batch() const override { return 1; }
  size_t send(const Origin& /*origin*/, const Claim& /*claim*/, std::span<const SinkJob> /*jobs*/,
              Moment /*now*/) override {
    return 0;
  }
  bool poll(Moment /*now*/) override { return false; }

  std::set<std::pair<std::string, Outlet>> asked;

 private:
  bool calls_back_;
};

class ChoosingASink : public testing::Test {
 protected:
  ChoosingASink() {
    loop_.add(webhooks_);
    loop_.add(redis_);
    loop_.set_stuck([this](std::string_view topic, const Error& why) {
      stuck_.push_back(fmt::format("{}: {}", topic, why.detail));
    });
    queue_.queue().set_delivery_listener(&loop_);
  }
  /// Since the last time.
  std::set<std::pair<std::string, Outlet>> told_of(AskedSink& sink) {
    loop_.tick(queue_.now());
    return std::exchange(sink.asked, {});
  }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_, all_are_there()};
  AskedSink webhooks_{true};
  AskedSink redis_{false};
  std::vector<std::string> stuck_;
  DeliveryLoop loop_{queue_.queue(), 1};
};

TEST_F(ChoosingASink, EachIsToldOfItsOwnTopics) {
  queue_.set("hook", {.delivery = Delivery::kWebhook, .callback = "http://x.example/"});
  queue_.set("list", {.delivery = Delivery::kRedisList});
  queue_.set("stream", {.delivery = Delivery::kRedisStream});
  told_of(webhooks_);
  told_of(redis_);
  for (const char* topic : {"hook", "list", "stream", "pulled"}) queue_.push({.topic = topic, .id = "a"});
  EXPECT_THAT(told_of(webhooks_), UnorderedElementsAre(Pair("hook", Outlet::kTopic)));
  EXPECT_THAT(told_of(redis_),
              UnorderedElementsAre(Pair("list", Outlet::kTopic), Pair("stream", Outlet::kTopic)));
}

TEST_F(ChoosingASink, AJobsOwnCallbackIsCalledWhereverItsTopicGoes) {
  queue_.set("list", {.delivery = Delivery::kRedisList});
  told_of(redis_);
  queue_.push({.topic = "list", .id = "a", .options = {.callback = "http://x.example/"}});
  EXPECT_THAT(told_of(webhooks_), UnorderedElementsAre(Pair("list", Outlet::kCallback)));
  EXPECT_THAT(told_of(redis_), IsEmpty());
}

TEST_F(ChoosingASink, WhoHasItNowIsToldWhenThatChanges) {
  queue_.set("t", {.delivery = Delivery::kRedisList});
  queue_.push({.topic = "t", .id = "a"});
  told_of(redis_);
  queue_.set("t", {.delivery = Delivery::kWebhook, .callback = "http://x.example/"});
  EXPECT_THAT(told_of(webhooks_), testing::Contains(Pair("t", Outlet::kTopic)));
  queue_.set("t", {.delivery = Delivery::kRedisStream});
  EXPECT_THAT(told_of(redis_), testing::Contains(Pair("t", Outlet::kTopic)));
}

TEST_F(ChoosingASink, WithoutRedisItIsSaidOncePerTopicAndJobsWait) {
  queue_.set("list", {.delivery = Delivery::kRedisList});
  queue_.queue().set_redis_outlet(queue_.now(), {});
  told_of(redis_);
  told_of(webhooks_);
  for (const char* id : {"a", "b"}) queue_.push({.topic = "list", .id = id});
  loop_.on_deliverable("list", Outlet::kTopic);
  EXPECT_THAT(told_of(redis_), IsEmpty());
  EXPECT_THAT(told_of(webhooks_), testing::Not(testing::Contains(Pair("list", Outlet::kTopic))));
  ASSERT_THAT(stuck_, testing::SizeIs(1));
  loop_.tell_stuck();
  ASSERT_THAT(stuck_, testing::SizeIs(2));
  EXPECT_EQ(
      stuck_.back(),
      "list: delivery = redis_list needs a Redis: say redis_delivery.url in the server's configuration");
}

TEST_F(ChoosingASink, ARedisThatIsThereAgainIsToldOfAllThatWaits) {
  queue_.set("list", {.delivery = Delivery::kRedisList});
  queue_.queue().set_redis_outlet(queue_.now(), {});
  queue_.push({.topic = "list", .id = "a"});
  told_of(redis_);
  queue_.queue().set_redis_outlet(queue_.now(), {true, {}});
  EXPECT_THAT(told_of(redis_), testing::Contains(Pair("list", Outlet::kTopic)));
  stuck_.clear();
  loop_.tell_stuck();
  EXPECT_THAT(stuck_, IsEmpty());
}

TEST_F(ChoosingASink, KeysOfTheEngineAreNotWrittenTo) {
  queue_.set("list", {.delivery = Delivery::kRedisList, .redis_key = "delayq:{0}:next"});
  queue_.set("delayq:t", {.delivery = Delivery::kRedisStream});
  queue_.set("free", {.delivery = Delivery::kRedisStream, .redis_key = "delayq"});
  told_of(redis_);
  queue_.queue().set_redis_outlet(queue_.now(), {true, "delayq:"});
  EXPECT_THAT(told_of(redis_), testing::Not(testing::Contains(Pair("list", Outlet::kTopic))));
  stuck_.clear();
  loop_.tell_stuck();
  EXPECT_THAT(stuck_,
              UnorderedElementsAre(testing::HasSubstr("list: redis_key: keys that begin with delayq:"),
                                   testing::HasSubstr("delayq:t: redis_key")));
}

}  // namespace
}  // namespace delayq::delivery
