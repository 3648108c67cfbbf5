#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/load/dialect.h"
#include "bench/load/traffic.h"

namespace delayq::bench {

/// Requests that do not depend on each other's answers, several under way on every connection.
struct Stream {
  uint64_t requests = 0;
  size_t connections = 50;
  size_t pipeline = 32;  ///< requests under way on one connection
  /// Appends request `number` to `out`.
  std::function<void(uint64_t number, std::string& out)> append;
  /// No good reply is shorter; only a hint for how long to sleep until some have come.
  size_t reply_bytes = 5;
  /// How a good reply begins; any other counts as an error.
  std::string good{};
};

/// A latency is that of a request from when it was written to when its answer was read.
class StreamTraffic final : public Traffic {
 public:
  /// Both must outlive it.
  StreamTraffic(const Stream& stream, const Dialect& dialect);

  size_t lanes() const override { return stream_.connections; }
  Status begin(Lanes& lanes, size_t lane, TimePoint now) override;
  Status answer(Lanes& lanes, size_t lane, TimePoint now) override;
  bool is_done() const override { return result_.answered + result_.errors >= stream_.requests; }
  const LoadResult& result() const override { return result_; }

 private:
  /// Requests that were written together.
  struct Batch {
    TimePoint begun;
    size_t left = 0;
  };
  /// A lane has at most two of them under way: it asks for more when half of its pipeline is answered.
  struct State {
    std::vector<Batch> batches;
    size_t under_way = 0;
  };

  void top_up(Connection& connection, State& state, TimePoint now);
  static void take(State& state, size_t replies, TimePoint now, Histogram& latency);

  const Stream& stream_;
  const Dialect& dialect_;
  std::vector<State> states_;
  uint64_t next_ = 0;
  size_t shortest_ = SIZE_MAX;  ///< good reply so far
  TimePoint begun_{};
  LoadResult result_;
};

}  // namespace delayq::bench
