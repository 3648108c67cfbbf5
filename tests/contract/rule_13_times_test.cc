// Rule 13: a duration or a time means the same millisecond on every engine, never an earlier one.
#include "core/duration.h"
#include "core/moment.h"
#include "tests/contract/queue_contract.h"

namespace delayq::contract {
namespace {

class Rule13Times : public QueueContract {
 protected:
  /// The job is handed over in this millisecond and not before.
  void expect_due(std::string_view id, Moment due) {
    SCOPED_TRACE(id);
    EXPECT_EQ(queue_->get("t", id)->due, due);
    queue_->run_to(due - Millis{1});
    EXPECT_EQ(queue_->state_of("t", id), JobState::kDelayed);
    queue_->run_to(due);
    const Taken taken = queue_->pop_one("t");
    EXPECT_EQ(taken.job.id, id);
    EXPECT_TRUE(queue_->ack(taken.lease).ok());
    queue_->go_to(kStart);
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule13Times);

TEST_P(Rule13Times, AClockBefore1970MakesNothingEarly) {
  // A machine whose clock was never set, or is wrong.
  const auto before = [](int64_t ms) { return from_unix_ms(-ms); };
  queue_->go_to(before(10'000));
  queue_->push({.topic = "t", .id = "5s", .delay = std::chrono::seconds{5}});
  for (const Moment early : {before(10'000), before(5'001), from_unix_ms(-1), from_unix_ms(4'999)}) {
    queue_->run_to(early);
    EXPECT_EQ(queue_->state_of("t", "5s"), JobState::kDelayed) << to_unix_ms(early);
    EXPECT_THAT(queue_->pop("t"), IsEmpty()) << to_unix_ms(early);
  }
  queue_->run_to(from_unix_ms(5'000));
  EXPECT_EQ(queue_->pop_one("t").job.id, "5s");
}

TEST_P(Rule13Times, Durations) {
  const std::vector<std::pair<std::string, int64_t>> written{
      {"1ms", 1},           {"250ms", 250},     {"30s", 30'000},     {"1.5s", 1'500},
      {"0.0001", 1},        {"0.25", 250},      {"90", 90'000},      {"15m", 900'000},
      {"1h30m", 5'400'000}, {"3h", 10'800'000}, {"7d", 604'800'000}, {"36525d", 36'525LL * 86'400'000},
  };
  for (const auto& [text, ms] : written) {
    queue_->push({.topic = "t", .id = text, .delay = parse_duration(text).value()});
    expect_due(text, at(ms));
  }
}

TEST_P(Rule13Times, Moments) {
  // The clock is at 2023-11-14T22:13:20Z.
  const std::vector<std::pair<std::string, int64_t>> written{
      {"2023-11-14T22:13:20.001Z", 1},
      {"2023-11-14T22:13:20.0010001Z", 2},
      {"2023-11-14t23:13:21+01:00", 1'000},
      {"2023-11-14 20:13:22.5-02:00", 2'500},
      {"1700000010", 10'000},
      {"1700000010.25", 10'250},
      {"2024-02-29T00:00:00Z", 1'709'164'800'000 - 1'700'000'000'000},
      {"2099-12-31T23:59:59.999Z", 4'102'444'799'999 - 1'700'000'000'000},
  };
  for (const auto& [text, ms] : written) {
    queue_->push({.topic = "t", .id = text, .at = parse_moment(text).value()});
    expect_due(text, at(ms));
  }
}

TEST_P(Rule13Times, TheDueTimeReadsBackTheSame) {
  queue_->push({.topic = "t", .id = "a", .delay = Millis{12'345}});
  const Moment due = queue_->get("t", "a")->due;
  EXPECT_EQ(parse_moment(format_moment(due)).value(), due);
}

TEST_P(Rule13Times, ThePastIsNow) {
  queue_->push({.topic = "t", .id = "a", .at = parse_moment("1970-01-01T00:00:00Z").value()});
  queue_->push({.topic = "t", .id = "b", .at = parse_moment("0").value()});
  EXPECT_THAT(ids_of(queue_->pop("t", 5)), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace delayq::contract
