// Rule 7, for consumers that know only the id of their job: it is acked by topic and id,
// whichever consumer has it.
#include "tests/contract/queue_contract.h"

namespace delayq::contract {
namespace {

class Rule07AckByName : public QueueContract {
 protected:
  Status ack_job(std::string_view topic, std::string_view id) {
    return queue_->ask<void>("ack_job", [&](auto reply) {
      queue_->queue().ack_job(queue_->now(), {topic, id}, std::move(reply));
    });
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule07AckByName);

TEST_P(Rule07AckByName, TheJobIsDoneAndItsLeaseIsOver) {
  const Taken taken = reserve("a");
  EXPECT_TRUE(ack_job("t", "a").ok());
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kDone);
  EXPECT_EQ(queue_->ack(taken.lease).error().code, ErrorCode::kStaleLease);
  EXPECT_EQ(queue_->stats("t").tallies.of(Tally::kAcked), 1U);
}

TEST_P(Rule07AckByName, OnlyWhatIsWithAConsumer) {
  EXPECT_EQ(ack_job("t", "a").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ack_job("t", "").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(ack_job("", "a").error().code, ErrorCode::kInvalid);
  queue_->push({.topic = "t", .id = "a", .delay = seconds{5}});
  EXPECT_THAT(ack_job("t", "a").error().detail, HasSubstr("delayed"));
  queue_->run_to(at(5'000));
  EXPECT_EQ(ack_job("t", "a").error().code, ErrorCode::kConflict);
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kReady) << "nothing has happened to it";
  queue_->pop_one("t");
  EXPECT_TRUE(ack_job("t", "a").ok());
  EXPECT_THAT(ack_job("t", "a").error().detail, HasSubstr("done"));
}

TEST_P(Rule07AckByName, NotPastTheDeadline) {
  queue_->push({.topic = "t", .id = "a", .options = {.lease = Millis{1'000}}});
  queue_->pop_one("t");
  queue_->go_to(at(1'000));
  EXPECT_FALSE(ack_job("t", "a").ok());
  queue_->run();
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kDelayed) << "it is tried again";
}

TEST_P(Rule07AckByName, AnotherServerCanDoIt) {
  reserve("a");
  restart();
  ASSERT_EQ(queue_->state_of("t", "a"), JobState::kReserved) << "a restart in good order keeps leases";
  EXPECT_TRUE(ack_job("t", "a").ok());
  EXPECT_EQ(queue_->state_of("t", "a"), JobState::kDone);
}

}  // namespace
}  // namespace delayq::contract
