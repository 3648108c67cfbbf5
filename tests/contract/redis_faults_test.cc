// Redis fails in the middle of a verb: the request has been sent, and its reply never comes. Each verb has
// one reply, kUnavailable; nothing is half-done; and everything works again when Redis is back.
#include "tests/contract/engine_contract.h"
#include "tests/contract/redis_server.h"

namespace delayq::contract {
namespace {

using support::EngineDriver;
using support::RedisProcess;

/// How Redis fails.
enum class Cut : uint8_t {
  kConnection,  ///< CLIENT KILL before the command is executed: it is not executed
  kProcess,     ///< kill -9, and a start from the append-only file: it is not executed either
  kSilence,     ///< it hangs until the timeout, and executes the command when it continues
};

std::string name_of(Cut cut) {
  return cut == Cut::kConnection ? "connection" : cut == Cut::kProcess ? "process" : "silence";
}

class RedisFaults : public testing::TestWithParam<Cut> {
 protected:
  RedisFaults() : server_(client_options(), engine_options()) { driver_.settle(); }

  net::redis::ClientOptions client_options() const {
    net::redis::ClientOptions options = RedisServer::to(redis_.port());
    options.backoff = Millis{5};
    options.backoff_cap = Millis{50};
    // Short, because the test waits for this timeout.
    if (GetParam() == Cut::kSilence) options.reply_timeout = Millis{1000};
    return options;
  }
  static RedisEngineOptions engine_options() {
    RedisEngineOptions options;
    options.hold = std::chrono::hours{1};
    return options;
  }

  /// Redis receives commands but does not execute them.
  void hold_back() {
    if (GetParam() == Cut::kConnection) {
      redis_.command({"CLIENT", "PAUSE", "60000", "WRITE"});
    } else {
      redis_.pause();
    }
  }
  /// The commands held back are lost, and Redis comes back.
  void lose() {
    if (GetParam() == Cut::kConnection) {
      support::wait_until("the command has come to Redis", [&] {
        return redis_.command({"CLIENT", "LIST"}).text.find("flags=b") != std::string::npos;
      });
      redis_.kill_clients();
      redis_.command({"CLIENT", "UNPAUSE"});
    } else if (GetParam() == Cut::kProcess) {
      redis_.kill();
      redis_.start();
    }
  }

  /// How many connections the server has, as Redis sees it: one for commands and one for news, after the lost
  /// ones have been closed.
  int connections() {
    const std::string all = redis_.command({"CLIENT", "LIST"}).text;
    int count = 0;
    for (size_t at = all.find("name=delayq"); at != std::string::npos; at = all.find("name=delayq", at + 1))
      ++count;
    return count;
  }

  /// Calls a verb whose reply is lost. Returns the error that it got.
  template <class T, class Verb>
  Error lose_answer(Verb verb) {
    hold_back();
    std::vector<Result<T>> answers;
    verb(Reply<T>([&](Result<T> answer) { answers.push_back(std::move(answer)); }));
    driver_.engine().poll(driver_);
    server_.pump();  // sends it
    lose();
    support::wait_until("an answer", [&] {
      driver_.settle();
      return !answers.empty();
    });
    if (GetParam() == Cut::kSilence) redis_.resume();
    support::wait_until("a connection", [&] {
      driver_.settle();
      server_.pump();
      return server_.client().is_connected() && server_.client().outstanding() == 0 && connections() == 2;
    });
    EXPECT_EQ(answers.size(), 1U);
    EXPECT_FALSE(answers[0].ok());
    return answers[0].ok() ? Error{} : answers[0].error();
  }
  void expect_unavailable(const Error& error) const {
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    const std::string expected = GetParam() == Cut::kSilence ? "no reply within 1000 ms" : "127.0.0.1:";
    EXPECT_THAT(error.detail, testing::HasSubstr(expected));
  }

  RedisProcess redis_{{"--appendonly", "yes", "--appendfsync", "always"}};
  RedisServer server_;
  EngineDriver driver_{server_.engine(), [this] { return server_.pump(); }};
};

TEST_P(RedisFaults, APushMayOrMayNotBeThere) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 300; ++i) jobs.push_back(JobSpec("t", std::to_string(i)));  // several calls
  expect_unavailable(lose_answer<std::vector<PushAnswer>>(
      [&](auto reply) { driver_.engine().push(kStart, support::views(jobs), std::move(reply)); }));
  // A client without a reply pushes again: no job is duplicated.
  const bool is_there = driver_.get("t", "0").has_value();
  EXPECT_EQ(is_there, GetParam() == Cut::kSilence);
  for (const PushAnswer& answer : driver_.push_all(jobs))
    EXPECT_EQ(answer.outcome, is_there ? PushOutcome::kConflict : PushOutcome::kCreated);
  EXPECT_EQ(driver_.count("t", JobState::kReady), jobs.size());
  EXPECT_THAT(driver_.take("t", 999), SizeIs(jobs.size()));
  EXPECT_THAT(driver_.take("t", 999), IsEmpty());
}

TEST_P(RedisFaults, AJobThatWasTakenByNobodyComesAgainAfterItsLease) {
  driver_.push(JobSpec("t", "a"));
  TakeRequest request;
  request.topic = "t";
  request.lease_until = at(1'000);
  expect_unavailable(
      lose_answer<TakeAnswer>([&](auto reply) { driver_.engine().take(kStart, request, std::move(reply)); }));
  const JobState state = driver_.state_of("t", "a");
  EXPECT_EQ(state, GetParam() == Cut::kSilence ? JobState::kReserved : JobState::kReady);
  if (state == JobState::kReserved) {
    driver_.go_to(at(999));
    driver_.tick();
    EXPECT_THAT(driver_.take("t"), IsEmpty()) << "before the end of its lease";
    driver_.go_to(at(1'000));
    driver_.tick();
    const std::vector<LeaseInfo> ended = driver_.expired_news();
    ASSERT_THAT(ended, SizeIs(1));
    NackRequest nack;
    nack.lease = {ended[0].topic, ended[0].lease};
    nack.retry_at = at(1'000);
    nack.expired = true;
    EXPECT_THAT(driver_.nack_all({nack}), ElementsAre(NackOutcome::kRetried));
  }
  const Taken taken = driver_.take_one("t");
  EXPECT_EQ(taken.job.attempts, state == JobState::kReserved ? 2U : 1U);
  EXPECT_EQ(driver_.ack(taken, kKeepNone), AckOutcome::kAcked);
}

TEST_P(RedisFaults, AnAckIsDoneOrNot) {
  driver_.push(JobSpec("t", "a"));
  const Taken taken = driver_.take_one("t");
  AckRequest request;
  request.lease = taken.ref();
  expect_unavailable(lose_answer<std::vector<AckOutcome>>([&](auto reply) {
    driver_.engine().ack(kStart, {&request, 1}, std::move(reply));
  }));
  const bool is_done = !driver_.get("t", "a").has_value();
  EXPECT_EQ(is_done, GetParam() == Cut::kSilence);
  EXPECT_EQ(driver_.ack(taken, kKeepNone), is_done ? AckOutcome::kStale : AckOutcome::kAcked);
  EXPECT_FALSE(driver_.get("t", "a"));
  EXPECT_THAT(driver_.topic_names(), IsEmpty());
}

TEST_P(RedisFaults, WhatWasNewsMeanwhileIsToldAfterwards) {
  if (GetParam() == Cut::kSilence) GTEST_SKIP() << "the connection for news is not lost then";
  driver_.take("t");  // a consumer waits for this topic
  driver_.settle();
  driver_.ready_news();
  expect_unavailable(lose_answer<uint64_t>(
      [&](auto reply) { driver_.engine().purge(kStart, "t", JobState::kDead, 1, std::move(reply)); }));
  support::wait_until("the topic is told again", [&] {
    driver_.settle();
    return driver_.ready_news().contains("t");
  });
}

TEST_P(RedisFaults, WhoWaitsForAJobIsToldThoughItsPushWasNeverAnswered) {
  driver_.take("t");
  support::wait_until("a subscription", [&] {
    driver_.settle();
    return redis_.command({"PUBSUB", "NUMSUB", "delayq:news"}).items.at(1).integer == 1;
  });
  driver_.ready_news();
  const JobSpec spec("t", "a");
  const NewJob job = spec.view();
  expect_unavailable(lose_answer<std::vector<PushAnswer>>([&](auto reply) {
    driver_.engine().push(kStart, {&job, 1}, std::move(reply));
  }));
  if (!driver_.get("t", "a")) return;  // then there is nothing to report
  support::wait_until("the topic is told", [&] {
    driver_.settle();
    return driver_.ready_news().contains("t");
  });
}

INSTANTIATE_TEST_SUITE_P(Cuts, RedisFaults, testing::Values(Cut::kConnection, Cut::kProcess, Cut::kSilence),
                         [](const auto& each) { return name_of(each.param); });

}  // namespace
}  // namespace delayq::contract
