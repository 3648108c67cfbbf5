#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/load/delayq_dialect.h"
#include "bench/load/traffic.h"

namespace delayq::bench {

/// Consumers that wait for jobs and ack them. Each has two connections, one for POP and one for ACK, so that
/// it waits for the next jobs while its acks are made durable.
struct Consumption {
  uint64_t jobs = 0;  ///< over when so many are acked
  size_t consumers = 4;
  std::string pop;  ///< the command, see DelayqDialect::pop_all()
  /// Jobs were made by append_dated_push(): a latency is hand-over minus due, `early` is counted, and a job
  /// whose due time is not what was asked for is an error. Otherwise a latency is that of a POP.
  bool is_dated = false;
  /// The wall clock; by default that of the system.
  std::function<Nanos()> wall_clock{};
};

class ConsumeTraffic final : public Traffic {
 public:
  ConsumeTraffic(const Consumption& consumption, const Dialect& dialect);

  size_t lanes() const override { return 2 * consumption_.consumers; }
  Status begin(Lanes& lanes, size_t lane, TimePoint now) override;
  Status answer(Lanes& lanes, size_t lane, TimePoint now) override;
  bool is_done() const override { return result_.answered >= consumption_.jobs; }
  const LoadResult& result() const override { return result_; }

  uint64_t handed_over() const { return handed_over_; }
  /// Wall clock of the latest hand-over.
  Nanos last_hand_over() const { return last_hand_over_; }

 private:
  struct Consumer {
    TimePoint asked{};
    std::vector<uint64_t> acks{};  ///< leases in each ACK under way
    size_t first_ack = 0;
  };

  void take_jobs(std::string_view reply, Consumer& consumer, std::string& acks, Nanos wall);
  void judge(const struct PoppedJob& job, Nanos wall);
  void take_ack(std::string_view reply, bool is_error, Consumer& consumer, TimePoint now);

  const Consumption& consumption_;
  const Dialect& dialect_;
  std::vector<Consumer> consumers_;
  std::vector<std::string_view> leases_;
  uint64_t handed_over_ = 0;
  Nanos last_hand_over_{0};
  TimePoint begun_{};
  LoadResult result_;
};

}  // namespace delayq::bench
