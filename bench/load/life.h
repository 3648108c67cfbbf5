#pragma once

#include <vector>

#include "bench/load/dialect.h"
#include "bench/load/traffic.h"

namespace delayq::bench {

/// Whole lives of ready jobs. Every connection pushes `pipeline` of them, waits for all answers, pops as
/// many, waits, acks them, waits, and begins again.
struct Lives {
  uint64_t jobs = 0;
  size_t connections = 50;
  size_t pipeline = 32;
};

/// A latency is that of a whole life: from the write of the push to the answer to the ack. What is answered
/// with an error is given up.
class LifeTraffic final : public Traffic {
 public:
  /// `dialect` must outlive it.
  LifeTraffic(const Lives& lives, const LifeDialect& dialect);

  size_t lanes() const override { return lives_.connections; }
  Status begin(Lanes& lanes, size_t lane, TimePoint now) override;
  Status answer(Lanes& lanes, size_t lane, TimePoint now) override;
  bool is_done() const override { return result_.answered + given_up_ >= lives_.jobs; }
  const LoadResult& result() const override { return result_; }

 private:
  enum class Step : uint8_t { kPush, kPop, kAck };
  struct State {
    Step step = Step::kPush;
    TimePoint begun{};
    size_t jobs = 0;     ///< of this round
    size_t awaited = 0;  ///< replies of this step that are still to come
    size_t good = 0;     ///< jobs that got through this step
    size_t failed = 0;   ///< error replies of this step
    size_t to_pop = 0;   ///< pushed and not popped yet
    size_t to_ack = 0;
    std::string acks{};  ///< made while pops are answered, sent when all are
  };

  void start_round(Connection& connection, size_t lane, TimePoint now);
  void end_round(const State& state, size_t acked, TimePoint now);
  /// Goes on to the step that has something to wait for, if any is left.
  void advance(Connection& connection, size_t lane, TimePoint now);
  void ask_for_jobs(Connection& connection, size_t lane);
  void sleep_for(Connection& connection, const State& state) const;

  Lives lives_;
  const LifeDialect& dialect_;
  std::vector<State> states_;
  uint64_t started_ = 0;
  uint64_t given_up_ = 0;
  TimePoint begun_{};
  LoadResult result_;
};

}  // namespace delayq::bench
