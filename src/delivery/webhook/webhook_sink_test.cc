#include "delivery/webhook/webhook_sink.h"

#include <map>
#include <set>

#include <gmock/gmock.h>

#include "delivery/delivery_loop.h"
#include "engine/memory/memory_engine.h"
#include "tests/support/fake_caller.h"
#include "tests/support/forwarding_engine.h"
#include "tests/support/queue_driver.h"

namespace delayq::webhook {
namespace {

using std::chrono::seconds;
using support::at;
using support::SeenJob;
using testing::HasSubstr;

constexpr std::string_view kGood = "http://good.example/hook";
constexpr std::string_view kBad = "http://bad.example/hook";
constexpr std::string_view kGoodHost = "good.example:80";
constexpr std::string_view kBadHost = "bad.example:80";

WebhookSinkOptions small() {
  WebhookSinkOptions options;
  options.timeout = seconds{30};
  options.in_flight = 100;
  options.hosts = {.per_host = 4, .failures = 3, .cooldown = seconds{10}};
  return options;
}

CallResult busy_for(seconds time) {
  CallResult result;
  result.status = 429;
  result.retry_after = RetryAfter{time, {}};
  return result;
}

/// An engine whose answers to takes can be held back.
class SlowTakes final : public support::ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;
  void take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) override {
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

 private:
  std::vector<absl::AnyInvocable<void()>> held_;
};

class CallingBack : public testing::Test {
 protected:
  CallingBack() {
    loop_.add(sink_);
    queue_.queue().set_delivery_listener(&loop_);
  }

  /// Until nothing moves any more. Returns when the loop wants to be called next.
  Moment settle() {
    Moment next = kNever;
    for (int rounds = 0; rounds < 10'000; ++rounds) {
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
  void hook(std::string_view topic, std::string_view url, Settings settings = {}) {
    settings.delivery = Delivery::kWebhook;
    settings.callback = std::string(url);
    if (!settings.backoff) settings.backoff = StepBackoff{{seconds{1}}};
    queue_.set(topic, settings);
  }
  std::string push(std::string_view topic, std::string_view callback = {}) {
    PushRequest request{.topic = topic};
    request.options.callback = callback;
    return queue_.push(request);
  }
  SeenJob job(std::string_view topic, std::string_view id) { return *queue_.get(topic, id); }
  /// Of the first open call to that host.
  std::optional<std::string_view> signature_to(std::string_view host) {
    for (const auto& made : caller_.open()) {
      if (host_of(made.call.url) == host) return made.call.headers.find("webhook-signature");
    }
    return std::nullopt;
  }

  MemoryEngine memory_;
  SlowTakes engine_{memory_};
  support::QueueDriver queue_{engine_};
  support::FakeCaller caller_;
  WebhookSink sink_{queue_.queue(), caller_, small(), 1};
  delivery::DeliveryLoop loop_{queue_.queue(), 1};
};

TEST_F(CallingBack, ASuccessMakesTheJobDone) {
  hook("t", kGood);
  const std::string id = push("t");
  settle();
  ASSERT_EQ(caller_.open().size(), 1U);
  EXPECT_EQ(caller_.open()[0].call.url, kGood);
  EXPECT_EQ(caller_.open()[0].call.total_timeout, seconds{30});
  EXPECT_EQ(job("t", id).state, JobState::kReserved);
  caller_.answer(200, "thanks");
  settle();
  EXPECT_EQ(job("t", id).state, JobState::kDone);
  EXPECT_EQ(job("t", id).outcome, "200 in 1 ms: thanks");
  EXPECT_EQ(sink_.figures().delivered, 1U);
}

TEST_F(CallingBack, AFailureIsTriedAgainAsThePolicySays) {
  hook("t", kGood, {.attempts = 2});
  const std::string id = push("t");
  settle();
  caller_.answer(500, "no");
  settle();
  EXPECT_EQ(job("t", id).state, JobState::kDelayed);
  EXPECT_EQ(job("t", id).outcome, "500 in 1 ms: no");
  EXPECT_TRUE(caller_.open().empty());
  settle_at(at(1'000));
  ASSERT_EQ(caller_.open().size(), 1U);
  EXPECT_EQ(caller_.open()[0].call.headers.find("delayq-attempt"), "2");
  caller_.answer(500, "still not");
  settle();
  EXPECT_EQ(job("t", id).state, JobState::kDead);
  EXPECT_EQ(job("t", id).attempts, 2U);
  EXPECT_EQ(job("t", id).outcome, "500 in 1 ms: still not");
}

TEST_F(CallingBack, GoneMakesItDeadAtOnce) {
  hook("t", kGood);
  const std::string id = push("t");
  settle();
  caller_.answer(410);
  settle();
  EXPECT_EQ(job("t", id).state, JobState::kDead);
  EXPECT_EQ(job("t", id).attempts, 1U);
}

TEST_F(CallingBack, RetryAfterGoesBeforeTheBackoff) {
  hook("t", kGood);
  const std::string id = push("t");
  settle();
  caller_.end(busy_for(seconds{7}));
  settle();
  EXPECT_EQ(job("t", id).due, at(7'000));
}

TEST_F(CallingBack, RetryAfterCountsFromAMomentAtWhichTheAnswerWasThere) {
  hook("t", kGood);
  const std::string id = push("t");
  settle();
  loop_.hear();
  caller_.end(busy_for(seconds{7}));  // after the clock was read
  EXPECT_FALSE(loop_.poll(queue_.now()));
  settle_at(at(5));
  EXPECT_EQ(job("t", id).due, at(7'005));
}

TEST_F(CallingBack, AJobsOwnCallbackInATopicThatIsPulled) {
  const std::string own = push("t", kGood);
  const std::string pulled = push("t");
  settle();
  ASSERT_EQ(caller_.open().size(), 1U);
  EXPECT_EQ(caller_.open()[0].call.headers.find("delayq-job-id"), own);
  EXPECT_EQ(queue_.pop_one("t").job.id, pulled);
}

TEST_F(CallingBack, NoMoreCallsThanAllowedAtOnce) {
  WebhookSinkOptions options = small();
  options.in_flight = 10;
  options.hosts.per_host = 100;
  sink_.set_options(options);
  hook("t", kGood);
  for (int i = 0; i < 50; ++i) push("t");
  settle();
  EXPECT_EQ(caller_.open().size(), 10U);
  EXPECT_EQ(queue_.count("t", JobState::kReserved), 10U) << "what cannot be called is not taken";
  for (int i = 0; i < 50; ++i) {
    caller_.answer(200);
    settle();
    EXPECT_LE(caller_.open().size(), 10U);
  }
  EXPECT_EQ(queue_.count("t", JobState::kDone), 50U);
}

TEST_F(CallingBack, NoMoreThanTheCallerHasRoomFor) {
  caller_.set_room(3);
  hook("t", kGood);
  for (int i = 0; i < 9; ++i) push("t");
  settle();
  EXPECT_EQ(caller_.open().size(), 3U);
}

TEST_F(CallingBack, AHostThatHangsHoldsOnlyItsOwnPlaces) {
  hook("bad", kBad);
  hook("good", kGood);
  for (int i = 0; i < 20; ++i) push("bad");
  for (int i = 0; i < 20; ++i) push("good");
  settle();
  EXPECT_EQ(caller_.open_to(kBadHost), 4U);
  for (int i = 0; i < 20; ++i) {
    caller_.answer(200, "", kGoodHost);
    settle();
  }
  EXPECT_EQ(queue_.count("good", JobState::kDone), 20U);
  EXPECT_EQ(queue_.count("bad", JobState::kReady), 16U) << "not taken: the host is known before";
}

TEST_F(CallingBack, TheSameForCallbacksOfJobsInOneTopic) {
  for (int i = 0; i < 200; ++i) push("t", kBad);
  for (int i = 0; i < 20; ++i) push("t", kGood);
  for (int64_t ms = 0; ms < 20'000 && queue_.count("t", JobState::kDone) < 20; ms += 10) {
    settle_at(at(ms));
    while (caller_.open_to(kGoodHost) > 0) {
      caller_.answer(200, "", kGoodHost);
      settle();
    }
  }
  EXPECT_EQ(queue_.count("t", JobState::kDone), 20U);
  EXPECT_EQ(caller_.open_to(kBadHost), 4U);
  EXPECT_GT(sink_.figures().given_back, 0U);
  EXPECT_LT(queue_.now(), at(5'000)) << "it digs through the jobs of the host that hangs";
}

TEST_F(CallingBack, WhatIsGivenBackIsNotCounted) {
  std::set<std::string> ids;
  for (int i = 0; i < 40; ++i) ids.insert(push("t", kBad));
  settle();
  ASSERT_GT(sink_.figures().given_back, 0U);
  for (int64_t ms = 0; ms < 60'000; ms += 100) {
    settle_at(at(ms));
    while (!caller_.open().empty()) {
      caller_.answer(200);
      settle();
    }
  }
  EXPECT_EQ(queue_.count("t", JobState::kDone), 40U);
  for (const std::string& id : ids) EXPECT_EQ(job("t", id).attempts, 1U);
}

TEST_F(CallingBack, NoLeaseRunsOutInTheLineOfASlowHost) {
  WebhookSinkOptions options = small();
  options.hosts.per_host = 1;
  sink_.set_options(options);
  std::set<std::string> ids;
  for (int i = 0; i < 40; ++i) ids.insert(push("t", kBad));
  std::map<std::string, int> called;
  Moment next_answer = at(4'000);
  for (int64_t ms = 0; ms < 400'000 && queue_.count("t", JobState::kDone) < 40; ms += 100) {
    settle_at(at(ms));
    ASSERT_LE(caller_.open().size(), 1U);
    if (queue_.now() < next_answer || caller_.open().empty()) continue;
    ++called[std::string(*caller_.open()[0].call.headers.find("delayq-job-id"))];
    caller_.answer(200);
    settle();
    next_answer = queue_.now() + seconds{4};
  }
  EXPECT_EQ(queue_.count("t", JobState::kDone), 40U);
  for (const std::string& id : ids) {
    EXPECT_EQ(called[id], 1) << id;
    EXPECT_EQ(job("t", id).attempts, 1U) << id;
  }
  EXPECT_EQ(queue_.stats("t").tallies.of(Tally::kExpired), 0U);
  EXPECT_LT(queue_.now(), at(200'000)) << "the host is never without work for long";
}

TEST_F(CallingBack, AJobWhoseTakeWasAnsweredTooLateIsNotCalled) {
  hook("t", kGood);
  const std::string id = push("t");
  engine_.holds = true;
  settle();
  engine_.holds = false;
  settle_at(at(6'000));
  ASSERT_EQ(caller_.open().size(), 1U) << "given back, and taken anew";
  EXPECT_EQ(sink_.figures().given_back, 1U);
  EXPECT_EQ(job("t", id).attempts, 1U);
  EXPECT_GE(job("t", id).until, at(6'000) + seconds{30}) << "the lease outlasts the call";
}

TEST_F(CallingBack, ALongerTimeoutDoesNotOutlastTheLeaseOfATakeUnderWay) {
  hook("t", kGood, {.callback_timeout = seconds{1}});
  const std::string id = push("t");
  engine_.holds = true;
  settle();
  hook("t", kGood, {.callback_timeout = seconds{300}});
  engine_.holds = false;
  settle();
  ASSERT_EQ(caller_.open().size(), 1U);
  EXPECT_EQ(caller_.open()[0].call.total_timeout, seconds{300});
  EXPECT_GE(job("t", id).until, queue_.now() + seconds{300});
  EXPECT_EQ(job("t", id).attempts, 1U);
}

TEST_F(CallingBack, TheCallerIsToldHowLongTheCallMayWait) {
  hook("t", kGood);
  const std::string id = push("t");
  settle();
  ASSERT_EQ(caller_.open().size(), 1U);
  const Call& call = caller_.open()[0].call;
  EXPECT_GT(call.start_within, Millis::zero());
  EXPECT_LT(queue_.now() + call.start_within + call.total_timeout, job("t", id).until);
  CallResult late;
  late.error = CallError::kNoRoom;
  caller_.end(late);
  settle();
  settle_at(at(3'000));
  EXPECT_EQ(caller_.open().size(), 1U) << "tried again";
  EXPECT_EQ(job("t", id).attempts, 1U) << "uncounted";
}

TEST_F(CallingBack, AClockThatIsSetBackDoesNotProlongTheWaitOfACall) {
  hook("t", kGood);
  queue_.go_to(at(0) + std::chrono::hours{2});
  push("t");
  engine_.holds = true;
  settle();
  engine_.holds = false;
  settle_at(at(0) + std::chrono::hours{1});
  ASSERT_EQ(caller_.open().size(), 1U);
  EXPECT_LE(caller_.open()[0].call.start_within, seconds{5}) << "the clock may be set right again meanwhile";
}

TEST_F(CallingBack, AClockThatIsSetBackDoesNotProlongTheWaitInLine) {
  queue_.go_to(at(0) + std::chrono::hours{2});
  for (int i = 0; i < 8; ++i) push("t", kBad);
  settle();
  ASSERT_EQ(sink_.figures().waiting, 4U);
  const Moment set_back = at(0) + std::chrono::hours{1};
  EXPECT_LE(settle_at(set_back), set_back + seconds{1});
  for (int i = 1; i <= 7; ++i) settle_at(set_back + seconds{i});
  EXPECT_EQ(sink_.figures().waiting, 0U);
  EXPECT_EQ(sink_.figures().given_back, 4U);
}

TEST_F(CallingBack, TheBreakerOpensAndOneProbeClosesIt) {
  hook("t", kBad);
  for (int i = 0; i < 10; ++i) push("t");
  settle();
  EXPECT_EQ(caller_.open().size(), 4U);
  for (int i = 0; i < 4; ++i) caller_.refuse();
  settle();
  EXPECT_EQ(sink_.figures().open_hosts, 1U);
  EXPECT_TRUE(caller_.open().empty());
  EXPECT_EQ(settle_at(at(5'000)), at(10'000)) << "nothing to do before the breaker is half open";
  EXPECT_TRUE(caller_.open().empty());
  settle_at(at(10'000));
  ASSERT_EQ(caller_.open().size(), 1U) << "one probe";
  caller_.answer(200);
  settle();
  EXPECT_EQ(caller_.open().size(), 4U);
  EXPECT_EQ(sink_.figures().open_hosts, 0U);
}

TEST_F(CallingBack, AProbeThatFailsOpensItAgainAndTheNextComes) {
  hook("t", kBad);
  hook("u", kBad);
  for (int i = 0; i < 10; ++i) push(i % 2 == 0 ? "t" : "u");
  settle();
  for (int i = 0; i < 4; ++i) caller_.refuse();
  settle();
  for (int64_t ms = 10'000; ms <= 50'000; ms += 10'000) {
    settle_at(at(ms));
    ASSERT_EQ(caller_.open().size(), 1U) << "one probe after each cooldown";
    caller_.refuse();
    settle();
    EXPECT_TRUE(caller_.open().empty());
  }
  settle_at(at(60'000));
  for (int i = 0; i < 10; ++i) {
    caller_.answer(200);
    settle();
  }
  EXPECT_EQ(sink_.figures().delivered, 10U);
}

TEST_F(CallingBack, AnOpenBreakerCostsNoAttempts) {
  hook("t", kBad, {.attempts = 2});
  for (int i = 0; i < 10; ++i) push("t");
  settle();
  for (int i = 0; i < 4; ++i) caller_.refuse();
  settle();
  settle_at(at(9'999));
  EXPECT_EQ(queue_.count("t", JobState::kReady), 10U);
  EXPECT_EQ(queue_.count("t", JobState::kDead), 0U);
}

TEST_F(CallingBack, AnotherCallbackEndsTheWaitForADeadHost) {
  hook("t", kBad);
  for (int i = 0; i < 5; ++i) push("t");
  settle();
  for (int i = 0; i < 4; ++i) caller_.refuse();
  settle();
  EXPECT_TRUE(caller_.open().empty());
  hook("t", kGood);
  settle();
  EXPECT_GT(caller_.open_to(kGoodHost), 0U);
}

TEST_F(CallingBack, ManyTopicsAtOneHostTakeTurns) {
  for (int i = 0; i < 50; ++i) {
    const std::string topic = "t" + std::to_string(i);
    hook(topic, kGood);
    for (int n = 0; n < 3; ++n) push(topic);
  }
  settle();
  for (int i = 0; i < 150; ++i) {
    EXPECT_LE(caller_.open().size(), 4U);
    caller_.answer(200);
    settle();
  }
  EXPECT_EQ(sink_.figures().delivered, 150U);
}

TEST_F(CallingBack, BackToPullLeavesTheJobsToPops) {
  hook("t", kGood);
  queue_.pause("t");
  const std::string id = push("t");
  settle();
  queue_.set("t", {});
  settle();
  EXPECT_TRUE(caller_.open().empty());
  EXPECT_EQ(queue_.pop_one("t").job.id, id);
}

TEST_F(CallingBack, AStopLetsCallsEndAndBeginsNone) {
  hook("t", kGood);
  for (int i = 0; i < 6; ++i) push("t");
  settle();
  loop_.stop(queue_.now(), seconds{10});
  caller_.answer(200);
  settle();
  EXPECT_EQ(caller_.open().size(), 3U);
  EXPECT_EQ(queue_.count("t", JobState::kDone), 1U);
  EXPECT_EQ(queue_.count("t", JobState::kReserved), 3U);
  settle_at(at(9'900));
  EXPECT_EQ(queue_.count("t", JobState::kReserved), 0U) << "given back before the grace period ends";
  EXPECT_EQ(queue_.count("t", JobState::kReady), 5U);
  caller_.answer(200);
  settle();
  EXPECT_EQ(queue_.count("t", JobState::kDone), 1U) << "too late to count";
}

TEST_F(CallingBack, TheLogSaysNothingOfBodiesAndAnswers) {
  std::vector<std::string> lines;
  sink_.set_log([&](const FailedCall& call) {
    lines.push_back(std::string(call.topic) + " " + std::string(call.host) + " " +
                    std::to_string(call.result.status) + " " + std::to_string(call.attempt));
  });
  hook("t", kGood);
  push("t");
  settle();
  caller_.answer(500);
  settle();
  EXPECT_THAT(lines, testing::ElementsAre("t good.example:80 500 1"));
}

TEST_F(CallingBack, TheTopicsSecretsSign) {
  Settings settings;
  settings.callback_secrets = {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                               "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODk="};
  hook("t", kGood, settings);
  push("t");
  settle();
  const std::string signature(*caller_.open()[0].call.headers.find("webhook-signature"));
  EXPECT_THAT(signature, HasSubstr(" v1,")) << "two of them, while keys change";
}

constexpr std::string_view kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

TEST_F(CallingBack, TheServersSecretsSignTheCallbackOfATopicAndNotTheJobsOwn) {
  WebhookSinkOptions options = small();
  options.secrets = {std::string(kSecret)};
  sink_.set_options(options);
  hook("t", kGood);
  push("t");
  push("u", kBad);
  push("t", kBad);
  settle();
  EXPECT_TRUE(signature_to(kGoodHost)) << "configured by whoever configured the secret";
  EXPECT_EQ(caller_.open_to(kBadHost), 2U);
  for (const auto& made : caller_.open()) {
    if (made.call.url != kBad) continue;
    EXPECT_FALSE(made.call.headers.find("webhook-signature")) << "whoever pushed chose URL and body";
  }
}

TEST_F(CallingBack, SecretsOfAllTopicsDoNotSignAJobsOwnCallback) {
  queue_.set("*", {.callback_secrets = std::vector{std::string(kSecret)}});
  push("u", kBad);
  settle();
  ASSERT_EQ(caller_.open().size(), 1U);
  EXPECT_FALSE(signature_to(kBadHost));
}

TEST_F(CallingBack, SecretsOfItsTopicSignAJobsOwnCallback) {
  WebhookSinkOptions options = small();
  options.secrets = {"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODk="};
  sink_.set_options(options);
  queue_.set("u", {.callback_secrets = std::vector{std::string(kSecret)}});
  push("u", kBad);
  settle();
  ASSERT_TRUE(signature_to(kBadHost));
  EXPECT_THAT(*signature_to(kBadHost), testing::Not(HasSubstr(" "))) << "by the topic's alone";
}

TEST_F(CallingBack, AnOpenBreakerIsLoggedOnceAndTold) {
  std::vector<std::string> lines;
  sink_.set_breaker_log([&lines](const std::string& host, bool is_open, const HostView& view) {
    lines.push_back(fmt::format("{} {} {}", host, is_open ? "open" : "closed", view.failures));
  });
  hook("t", kBad);
  EXPECT_EQ(sink_.problem_of(queue_.now(), kBad), "");
  for (int i = 0; i < 4; ++i) push("t");
  settle();
  for (int i = 0; i < 4; ++i) caller_.answer(503);
  settle();
  EXPECT_THAT(lines, testing::ElementsAre("bad.example:80 open 3"));
  EXPECT_THAT(sink_.problem_of(queue_.now(), kBad),
              testing::AllOf(testing::StartsWith("bad.example:80 is not called now: its last 4 calls failed; "
                                                 "it is called again at "),
                             HasSubstr("Z")));
  EXPECT_EQ(sink_.problem_of(queue_.now(), kGood), "");
  // A probe that fails changes nothing of what was said.
  settle_at(queue_.now() + seconds{11});
  ASSERT_EQ(caller_.open().size(), 1U);
  EXPECT_THAT(sink_.problem_of(queue_.now(), kBad), HasSubstr("one call tries whether it is back"));
  caller_.answer(503);
  settle();
  EXPECT_EQ(lines.size(), 1U);
  settle_at(queue_.now() + seconds{11});
  caller_.answer(200);
  settle();
  EXPECT_THAT(lines, testing::ElementsAre("bad.example:80 open 3", "bad.example:80 closed 0"));
  EXPECT_EQ(sink_.problem_of(queue_.now(), kBad), "");
}

TEST_F(CallingBack, AnOpenBreakerIsInTheViewOfTheTopicAndOfTheJob) {
  queue_.queue().set_callback_problem(
      [this](Moment now, std::string_view url) { return sink_.problem_of(now, url); });
  hook("t", kBad);
  push("u", kBad);
  push("t");
  push("t");
  settle();
  for (int i = 0; i < 3; ++i) caller_.answer(503);
  settle();
  EXPECT_THAT(queue_.stats("t").delivery_problem, HasSubstr("bad.example:80 is not called now"));
  EXPECT_EQ(queue_.stats("u").delivery_problem, "") << "its other jobs are popped";
  std::string options;
  encode_job_options({.callback = kBad}, options);
  const auto problem_of = [this](std::string_view job_options, JobState state) {
    Job job;
    job.topic = "u";
    job.options = job_options;
    job.state = state;
    return queue_.queue().delivery_problem(queue_.now(), job);
  };
  EXPECT_THAT(problem_of(options, JobState::kReady), HasSubstr("is not called now"));
  EXPECT_EQ(problem_of(options, JobState::kDead), "");
  EXPECT_EQ(problem_of({}, JobState::kReady), "");
}

TEST_F(CallingBack, LargeJobsAreTakenInPartsUntilNoneIsLeft) {
  const std::string body(size_t{1} << 20, 'x');
  for (int i = 0; i < 20; ++i) queue_.push({.topic = "t", .body = body, .options = {.callback = kGood}});
  settle();
  while (!caller_.open().empty()) {
    caller_.answer(200);
    settle();
  }
  EXPECT_EQ(queue_.count("t", JobState::kDone), 20U);
}

}  // namespace
}  // namespace delayq::webhook
