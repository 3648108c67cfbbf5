#include "api/kafka/intake.h"

#include <gmock/gmock.h>

#include "core/random.h"
#include "tests/support/fake_kafka.h"
#include "tests/support/forwarding_engine.h"
#include "tests/support/memory_queue.h"

namespace delayq::intake {
namespace {

using support::FakeConsumer;
using support::FakeLog;
using support::ForwardingEngine;
using support::LetterProducer;
using support::RecordSpec;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

const kafka::PartitionId kFirst{"orders", 0};
const kafka::PartitionId kSecond{"orders", 1};

/// An engine that refuses pushes, or does not answer them, when the test says so.
class PushSwitch final : public ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;
  void push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) override {
    ++pushes;
    if (is_silent) {
      ForwardingEngine::push(now, jobs, [this, reply = std::move(reply)](auto answers) mutable {
        late.push_back([reply = std::move(reply), answers = std::move(answers)]() mutable {
          reply(std::move(answers));
        });
      });
      return;
    }
    if (error) {
      ForwardingEngine::flush(
          [error = *error, reply = std::move(reply)](const Result<bool>&) mutable { reply(error); });
      return;
    }
    ForwardingEngine::push(now, jobs, std::move(reply));
  }

  std::optional<Error> error;
  bool is_silent = false;
  int pushes = 0;
  std::vector<absl::AnyInvocable<void()>> late;
};

class IntakeTest : public testing::Test {
 protected:
  IntakeTest() {
    queue_.start(now_, [](const Status&) {});
    settle();
  }

  /// As a server that starts; the old one, if there is one, has crashed.
  void open() {
    intake_.reset();
    auto consumer = std::make_unique<FakeConsumer>(log_);
    consumer_ = consumer.get();
    intake_ = std::make_unique<Intake>(
        queue_, std::move(consumer),
        [this]() -> Result<std::unique_ptr<kafka::Producer>> {
          ++producers_;
          return std::unique_ptr<kafka::Producer>(std::make_unique<LetterProducer>(broker_));
        },
        options_,
        [this](bool is_bad, const std::string& what) {
          told_.push_back((is_bad ? "bad: " : "good: ") + what);
        });
  }
  void start(const std::vector<kafka::PartitionId>& partitions = {kFirst, kSecond}) {
    open();
    consumer_->assign(partitions);
    settle();
  }
  void settle() {
    for (int i = 0; i < 1'000; ++i) {
      queue_.tick(now_);
      if (intake_ != nullptr) intake_->tick(now_);
      bool is_busy = queue_.poll(now_);
      if (intake_ != nullptr) is_busy |= intake_->poll(now_);
      if (!is_busy) return;
    }
    FAIL() << "it never rests";
  }
  void pass(Millis time) {
    now_ += time;
    settle();
  }
  void add(int count, const std::vector<std::pair<std::string, std::optional<std::string>>>& headers = {},
           int32_t partition = 0) {
    for (int i = 0; i < count; ++i) {
      RecordSpec spec;
      spec.partition = partition;
      spec.timestamp = now_;
      spec.headers = headers;
      log_.add(std::move(spec));
    }
  }
  int64_t committed(const kafka::PartitionId& partition) {
    pass(1s);
    return log_.committed.contains(partition) ? log_.committed[partition] : -1;
  }
  uint64_t jobs(std::string_view topic = "orders") {
    uint64_t found = 0;
    queue_.stats(now_, topic, [&](const Result<TopicStats>& stats) {
      if (!stats.ok()) return;
      for (const uint64_t each : stats->counts.by_state) found += each;
    });
    settle();
    return found;
  }

  Moment now_ = MemoryQueue::kStart;
  MemoryEngine memory_;
  PushSwitch engine_{memory_};
  Queue queue_{engine_, QueueConfig{}, 1};
  FakeLog log_;
  std::shared_ptr<LetterProducer::Broker> broker_ = std::make_shared<LetterProducer::Broker>();
  IntakeOptions options_{.name = "in"};
  int producers_ = 0;
  std::vector<std::string> told_;
  FakeConsumer* consumer_ = nullptr;
  std::unique_ptr<Intake> intake_;
};

TEST_F(IntakeTest, RecordsBecomeJobsAndThenTheirOffsetsAreCommitted) {
  add(3, {{"delayq-delay", "1h"}});
  add(2, {}, 1);
  start();
  EXPECT_EQ(jobs(), 5U);
  EXPECT_EQ(committed(kFirst), 3);
  EXPECT_EQ(committed(kSecond), 2);
  const IntakeFigures figures = intake_->figures();
  EXPECT_EQ(figures.read, 5U);
  EXPECT_EQ(figures.pushed, 5U);
  EXPECT_EQ(figures.held, 0U);
  EXPECT_EQ(figures.partitions, 2U);
  EXPECT_EQ(figures.lag, 0U);
  EXPECT_EQ(*log_.live, 0) << "memory of records is freed";
  EXPECT_EQ(producers_, 0) << "there are no dead letters";
}

TEST_F(IntakeTest, ATopicThatIsMadeAnewIsReadFromItsStart) {
  add(20, {{"delayq-delay", "1h"}}, 1);
  start();
  ASSERT_EQ(committed(kSecond), 20);
  engine_.is_silent = true;
  add(2, {{"delayq-delay", "1h"}}, 1);
  settle();
  consumer_->renew(kSecond);
  for (const char* id : {"a", "b", "c"}) add(1, {{"delayq-delay", "1h"}, {"delayq-id", id}}, 1);
  settle();
  engine_.is_silent = false;
  for (auto& each : engine_.late) each();
  EXPECT_EQ(committed(kSecond), 3);
  EXPECT_EQ(jobs(), 22U + 3U) << "those that were read of the old one, too";
  EXPECT_THAT(told_, Contains(HasSubstr("is read from offset 0 on")));
  add(1, {{"delayq-delay", "1h"}, {"delayq-id", "d"}}, 1);
  EXPECT_EQ(committed(kSecond), 4);
}

TEST_F(IntakeTest, NothingIsCommittedBeforeThePushIsAnswered) {
  add(3);
  engine_.is_silent = true;
  start();
  EXPECT_EQ(committed(kFirst), -1);
  for (auto& each : engine_.late) each();
  EXPECT_EQ(committed(kFirst), 3);
}

TEST_F(IntakeTest, ACrashBetweenPushAndCommitMakesNoSecondJob) {
  add(4, {{"delayq-delay", "1h"}});
  engine_.is_silent = true;
  start();
  EXPECT_EQ(jobs(), 4U) << "they are stored; the answer has not come";
  engine_.is_silent = false;
  start();
  EXPECT_EQ(jobs(), 4U);
  EXPECT_EQ(intake_->figures().kept, 4U);
  EXPECT_EQ(committed(kFirst), 4);
}

TEST_F(IntakeTest, WhatTheQueueRefusesIsPushedAgainAndNothingIsSkipped) {
  engine_.error = Error{ErrorCode::kDiskFull, "push", "the disk is full", 1s};
  add(10);
  start();
  for (int i = 0; i < 20; ++i) pass(1s);
  EXPECT_EQ(committed(kFirst), -1);
  EXPECT_GT(intake_->figures().refused, 1U);
  EXPECT_LT(engine_.pushes, 20) << "it rests longer and longer";
  EXPECT_THAT(told_, Contains(AllOf(HasSubstr("bad: "), HasSubstr("the disk is full"))).Times(1));
  engine_.error.reset();
  pass(10s);
  EXPECT_EQ(jobs(), 10U);
  EXPECT_EQ(committed(kFirst), 10);
  EXPECT_THAT(told_, Contains(HasSubstr("stored again")).Times(1));
  EXPECT_EQ(broker_->written.size(), 0U);
}

TEST_F(IntakeTest, ARefusedQueuePausesReadingAndItsMemoryHasABound) {
  options_.most_records = 100;
  engine_.error = Error{ErrorCode::kOverloaded, "push", "too much"};
  add(10'000);
  start();
  pass(2s);
  pass(2s);
  EXPECT_LE(intake_->figures().held, 100U + 1'024U);
  EXPECT_LE(*log_.live, 100 + 1'024);
  EXPECT_THAT(consumer_->paused(), ElementsAre(kFirst, kSecond));
  EXPECT_EQ(intake_->figures().paused, 2U);
  engine_.error.reset();
  for (int i = 0; i < 10; ++i) pass(1s);
  EXPECT_EQ(jobs(), 10'000U);
  EXPECT_EQ(committed(kFirst), 10'000);
  EXPECT_TRUE(consumer_->paused().empty());
}

TEST_F(IntakeTest, LargeRecordsCountByTheirBytes) {
  options_.most_bytes = 1 << 20;
  engine_.error = Error{ErrorCode::kOverloaded, "push", "too much"};
  for (int i = 0; i < 1'000; ++i) {
    RecordSpec spec;
    spec.value = std::string(10'000, 'x');
    log_.add(std::move(spec));
  }
  start();
  pass(2s);
  EXPECT_LE(*log_.live, 110);
}

TEST_F(IntakeTest, PoisonGoesToTheDeadLetterTopicAndTheOthersGoOn) {
  add(2);
  add(5, {{"delayq-delay", "soon"}, {"trace", "1"}});
  add(2);
  log_.records[kFirst][3].key = "k";
  start();
  EXPECT_EQ(jobs(), 4U);
  EXPECT_EQ(committed(kFirst), 9);
  ASSERT_EQ(broker_->written.size(), 5U);
  const LetterProducer::Sent& letter = broker_->written[1];
  EXPECT_EQ(letter.topic, "orders.delayq-dead");
  EXPECT_EQ(letter.key, "k");
  EXPECT_EQ(letter.value, "body");
  const auto header = [&](const char* name) { return letter.headers.at(name).value_or("none"); };
  EXPECT_THAT(header("delayq-error"), HasSubstr("delayq-delay"));
  EXPECT_EQ(header("delayq-error-code"), "invalid");
  EXPECT_EQ(header("delayq-intake"), "in");
  EXPECT_EQ(header("delayq-origin-topic"), "orders");
  EXPECT_EQ(header("delayq-origin-partition"), "0");
  EXPECT_EQ(header("delayq-origin-offset"), "3");
  EXPECT_EQ(header("trace"), "1");
  EXPECT_EQ(header("delayq-delay"), "soon");
  EXPECT_EQ(intake_->figures().dead_lettered, 5U);
  EXPECT_THAT(told_, Contains(HasSubstr("orders-0-2 cannot be a job")).Times(1)) << "not one line for each";
  EXPECT_EQ(*log_.live, 0);
}

TEST_F(IntakeTest, WhatTheQueueFindsWrongIsADeadLetterToo) {
  RecordSpec large;
  large.value = std::string((1 << 20) + 1, 'x');
  log_.add(large);
  add(1, {{"delayq-topic", "not a topic"}});
  add(1, {{"delayq-id", ""}});
  add(1);
  start();
  EXPECT_EQ(jobs(), 1U);
  ASSERT_EQ(broker_->written.size(), 3U);
  EXPECT_EQ(broker_->written[0].headers.at("delayq-error-code"), "too_large");
  EXPECT_EQ(committed(kFirst), 4);
}

TEST_F(IntakeTest, AnIdInUseIsTreatedAsConfigured) {
  options_.rules.on_conflict = OnConflict::kReject;
  add(2, {{"delayq-id", "7"}, {"delayq-delay", "1h"}});
  start();
  ASSERT_EQ(broker_->written.size(), 1U);
  EXPECT_EQ(broker_->written[0].headers.at("delayq-error-code"), "conflict");
  EXPECT_EQ(committed(kFirst), 2);

  Rules rules = options_.rules;
  rules.on_conflict = OnConflict::kReplace;
  intake_->set_rules(rules);
  add(1, {{"delayq-id", "7"}, {"delayq-delay", "2h"}});
  pass(1s);
  std::optional<Moment> due;
  queue_.get(now_, {"orders", "7"},
             [&](const Result<std::optional<FoundJob>>& found) { due = (*found)->job.due; });
  settle();
  EXPECT_EQ(due, log_.records[kFirst][2].timestamp.value() + 2h);
}

TEST_F(IntakeTest, WithoutADeadLetterTopicThePartitionWaitsAndOthersDoNot) {
  broker_->error = Error{ErrorCode::kNotFound, "kafka", "there is no such topic"};
  add(1);
  add(1, {{"delayq-delay", "soon"}});
  add(3);
  add(2, {}, 1);
  start();
  for (int i = 0; i < 5; ++i) pass(1s);
  add(2);
  add(2, {}, 1);
  for (int i = 0; i < 30; ++i) pass(1s);
  EXPECT_EQ(committed(kFirst), 1) << "up to the record that is nowhere yet";
  EXPECT_EQ(committed(kSecond), 4);
  EXPECT_THAT(consumer_->paused(), ElementsAre(kFirst));
  EXPECT_EQ(intake_->figures().paused, 1U);
  EXPECT_THAT(told_, Contains(AllOf(HasSubstr("orders.delayq-dead"), HasSubstr("no such topic"))).Times(1));
  broker_->error.reset();
  pass(20s);
  EXPECT_EQ(committed(kFirst), 7);
  EXPECT_EQ(broker_->written.size(), 1U);
  EXPECT_EQ(jobs(), 10U);
  EXPECT_TRUE(consumer_->paused().empty());
  EXPECT_THAT(told_, Contains(HasSubstr("is written again")).Times(1));
}

TEST_F(IntakeTest, ARecordThatIsTooLargeForTheDeadLetterTopicIsShortenedAndHoldsNothingUp) {
  broker_->most_bytes = 2'000;
  RecordSpec large;
  large.value = std::string(1'990, 'x');
  large.key = "k";
  large.headers = {{"delayq-delay", "soon"}, {"trace", std::string(500, 't')}};
  log_.add(large);
  large.key = std::string(1'800, 'k');
  log_.add(large);
  add(1);
  start();
  EXPECT_EQ(jobs(), 1U);
  EXPECT_EQ(committed(kFirst), 3);
  ASSERT_EQ(broker_->written.size(), 2U);
  const LetterProducer::Sent& letter = broker_->written[0];
  EXPECT_EQ(letter.key, "k");
  EXPECT_EQ(letter.value, "");
  EXPECT_FALSE(letter.headers.contains("trace"));
  EXPECT_EQ(letter.headers.at("delayq-origin-offset"), "0");
  EXPECT_THAT(letter.headers.at("delayq-error").value_or(""), HasSubstr("delayq-delay"));
  EXPECT_EQ(letter.headers.at("delayq-shortened"), "it is too large");
  EXPECT_EQ(broker_->written[1].key, std::nullopt) << "a key can be the large part";
  EXPECT_EQ(intake_->figures().paused, 0U);
  EXPECT_EQ(*log_.live, 0);
}

TEST_F(IntakeTest, ATopicThatRefusesEvenAShortenedRecordKeepsThePartitionWaiting) {
  broker_->most_bytes = 10;
  add(1, {{"delayq-delay", "soon"}});
  start();
  for (int i = 0; i < 5; ++i) pass(10s);
  EXPECT_EQ(committed(kFirst), -1);
  EXPECT_EQ(intake_->figures().paused, 1U);
  broker_->most_bytes = SIZE_MAX;
  pass(20s);
  EXPECT_EQ(committed(kFirst), 1);
}

TEST_F(IntakeTest, ADeadLetterOfAPartitionThatIsGoneIsNotTriedAgain) {
  broker_->answers = false;
  add(1, {{"delayq-delay", "soon"}});
  start();
  consumer_->lose({kFirst});
  settle();
  broker_->error = Error{ErrorCode::kNotFound, "kafka", "there is no such topic"};
  broker_->answers = true;
  for (int i = 0; i < 5; ++i) pass(10s);
  EXPECT_EQ(intake_->figures().held, 0U) << "another server reads it now";
  EXPECT_THAT(told_, Not(Contains(HasSubstr("no such topic"))));
}

TEST_F(IntakeTest, ABrokenProducerIsReplacedAndItsRecordsAreWrittenAgain) {
  broker_->answers = false;
  add(1, {{"delayq-delay", "soon"}});
  start();
  EXPECT_EQ(committed(kFirst), -1);
  broker_->open.clear();  // it will never answer
  broker_->is_broken = true;
  add(1, {{"delayq-delay", "soon"}});
  pass(1s);
  broker_->is_broken = false;
  broker_->answers = true;
  pass(20s);
  EXPECT_EQ(producers_, 2);
  EXPECT_EQ(committed(kFirst), 2);
}

TEST_F(IntakeTest, ARevokedPartitionIsGivenBackWhenItsPushesAreAnswered) {
  add(3);
  add(3, {}, 1);
  engine_.is_silent = true;
  start();
  consumer_->revoke({kFirst});
  pass(1s);
  EXPECT_THAT(consumer_->assigned(), ElementsAre(kFirst, kSecond)) << "pushes are under way";
  engine_.is_silent = false;
  for (auto& each : std::exchange(engine_.late, {})) each();
  settle();
  EXPECT_THAT(consumer_->assigned(), ElementsAre(kSecond));
  EXPECT_EQ(log_.committed[kFirst], 3);
  EXPECT_EQ(committed(kSecond), 3);
}

TEST_F(IntakeTest, ARevokedPartitionIsGivenBackInTimeAndCommitsOnlyWhatIsDurable) {
  add(3);
  start();
  EXPECT_EQ(committed(kFirst), 3);
  add(2);
  engine_.is_silent = true;
  settle();
  consumer_->revoke({kFirst, kSecond});
  settle();
  pass(10s);
  EXPECT_TRUE(consumer_->assigned().empty());
  EXPECT_EQ(log_.committed[kFirst], 3);
  for (auto& each : std::exchange(engine_.late, {})) each();
  pass(1s);
  EXPECT_EQ(log_.committed[kFirst], 3) << "another server reads it now";
}

TEST_F(IntakeTest, ALostPartitionIsForgottenAtOnce) {
  add(3);
  engine_.is_silent = true;
  start();
  consumer_->lose({kFirst, kSecond});
  settle();
  for (auto& each : std::exchange(engine_.late, {})) each();
  pass(1s);
  EXPECT_TRUE(log_.committed.empty());
  EXPECT_EQ(intake_->figures().partitions, 0U);
  EXPECT_EQ(intake_->figures().held, 0U);
  engine_.is_silent = false;
  consumer_->assign({kFirst});
  settle();
  EXPECT_EQ(jobs(), 3U) << "the same records are the same jobs";
  EXPECT_EQ(committed(kFirst), 3);
}

TEST_F(IntakeTest, ARebalanceDoesNotWaitForAStuckDeadLetter) {
  broker_->error = Error{ErrorCode::kNotFound, "kafka", "there is no such topic"};
  add(1, {{"delayq-delay", "soon"}});
  start();
  pass(1s);
  consumer_->revoke({kFirst});
  settle();
  EXPECT_THAT(consumer_->assigned(), ElementsAre(kSecond));
  EXPECT_EQ(intake_->figures().held, 0U);
  EXPECT_TRUE(log_.committed.empty());
}

TEST_F(IntakeTest, AFailedCommitIsRepeated) {
  add(3);
  open();
  consumer_->commit_error = Error{ErrorCode::kUnavailable, "kafka", "the coordinator is away"};
  consumer_->assign({kFirst});
  pass(1s);
  pass(1s);
  EXPECT_TRUE(log_.committed.empty());
  EXPECT_THAT(told_, Contains(HasSubstr("the coordinator is away")).Times(1));
  consumer_->commit_error.reset();
  EXPECT_EQ(committed(kFirst), 3);
}

TEST_F(IntakeTest, OrderWithinAPartitionIsKeptWhenPushesAreRefused) {
  options_.rules.on_conflict = OnConflict::kReplace;
  engine_.error = Error{ErrorCode::kOverloaded, "push", "too much"};
  add(1, {{"delayq-id", "7"}, {"delayq-group", "old"}, {"delayq-delay", "1h"}});
  start();
  add(1, {{"delayq-id", "7"}, {"delayq-group", "new"}, {"delayq-delay", "1h"}});
  pass(100ms);
  engine_.error.reset();
  pass(10s);
  std::string group;
  queue_.get(now_, {"orders", "7"},
             [&](const Result<std::optional<FoundJob>>& found) { group = (*found)->job.group; });
  settle();
  EXPECT_EQ(group, "new");
}

TEST_F(IntakeTest, AStopWaitsForPushesCommitsAndLeaves) {
  add(3);
  engine_.is_silent = true;
  start();
  add(3);
  intake_->stop(now_, 10s);
  pass(1s);
  EXPECT_FALSE(intake_->is_stopped());
  for (auto& each : std::exchange(engine_.late, {})) each();
  settle();
  pass(1s);
  EXPECT_TRUE(intake_->is_stopped());
  EXPECT_TRUE(consumer_->is_closed());
  EXPECT_EQ(log_.committed[kFirst], 3) << "what came later is read again";
}

TEST_F(IntakeTest, AStopEndsWithItsGracePeriod) {
  add(3);
  engine_.is_silent = true;
  start();
  intake_->stop(now_, 10s);
  pass(11s);
  EXPECT_TRUE(intake_->is_stopped());
  EXPECT_TRUE(log_.committed.empty());
}

TEST_F(IntakeTest, TroubleIsToldOnceWhenItLasts) {
  start();
  consumer_->trouble_text = "no broker can be reached";
  pass(500ms);
  EXPECT_THAT(told_, Not(Contains(HasSubstr("cannot read"))));
  pass(2s);
  pass(2s);
  EXPECT_THAT(told_, Contains(HasSubstr("cannot read: no broker")).Times(1));
  EXPECT_FALSE(intake_->figures().is_connected);
  consumer_->trouble_text.clear();
  pass(1s);
  EXPECT_THAT(told_, Contains(HasSubstr("reads again")).Times(1));
}

TEST_F(IntakeTest, AClockThatIsSetBackHoldsNothingUp) {
  engine_.error = Error{ErrorCode::kOverloaded, "push", "too much"};
  add(3);
  start();
  now_ -= 24h;
  engine_.error.reset();
  settle();
  pass(6s);
  EXPECT_EQ(jobs(), 3U);
  EXPECT_EQ(committed(kFirst), 3);
}

/// Random refusals, rebalances and crashes: in the end every record is one job, and nothing was committed
/// that was not stored.
TEST_F(IntakeTest, WhateverHappensEveryRecordIsOneJob) {
  constexpr uint64_t kSeed = 20'261'118;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  options_.most_records = 50;
  start();
  int added = 0;
  for (int step = 0; step < 400; ++step) {
    const int count = static_cast<int>(random.below(20));
    add(count, {{"delayq-delay", "10h"}}, static_cast<int32_t>(random.below(2)));
    added += count;
    engine_.error.reset();
    if (random.below(3) == 0) engine_.error = Error{ErrorCode::kOverloaded, "push", "too much"};
    engine_.is_silent = random.below(4) == 0;
    if (random.below(10) == 0) {
      engine_.late.clear();  // answers that nobody hears
      start();
    } else if (random.below(10) == 0 && consumer_->assigned().contains(kFirst)) {
      consumer_->revoke({kFirst});
      consumer_->assign({kFirst});
    } else if (random.below(20) == 0 && consumer_->assigned().contains(kSecond)) {
      consumer_->lose({kSecond});
      consumer_->assign({kSecond});
    }
    if (!engine_.is_silent) {
      for (auto& each : std::exchange(engine_.late, {})) each();
    }
    pass(Millis{static_cast<int64_t>(random.below(3'000))});
    for (const auto& [partition, offset] : log_.committed)
      ASSERT_LE(offset, static_cast<int64_t>(log_.records[partition].size()));
  }
  engine_.error.reset();
  engine_.is_silent = false;
  for (auto& each : std::exchange(engine_.late, {})) each();
  pass(30s);
  pass(30s);
  EXPECT_EQ(jobs(), static_cast<uint64_t>(added));
  EXPECT_EQ(committed(kFirst), static_cast<int64_t>(log_.records[kFirst].size()));
  EXPECT_EQ(committed(kSecond), static_cast<int64_t>(log_.records[kSecond].size()));
}

}  // namespace
}  // namespace delayq::intake
