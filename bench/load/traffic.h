#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "bench/load/histogram.h"
#include "bench/load/lanes.h"

namespace delayq::bench {

using TimePoint = std::chrono::steady_clock::time_point;

/// What a load has come to. Only what was answered counts.
struct LoadResult {
  uint64_t answered = 0;  ///< good answers (of a life: whole lives)
  uint64_t errors = 0;    ///< error replies, missing and false jobs
  uint64_t early = 0;     ///< jobs handed over before they were due
  double seconds = 0;
  std::string first_error;
  Histogram latency;
  std::vector<uint64_t> timeline;  ///< answered in each kTimelineStep

  static constexpr Millis kTimelineStep{100};

  void count(TimePoint begun, TimePoint now, uint64_t good);
  void count_error(std::string_view reply);
};

/// What a load does with its lanes. Called from the one thread that drives it.
class Traffic {
 public:
  virtual ~Traffic() = default;

  virtual size_t lanes() const = 0;
  /// Appends the first requests of a lane.
  virtual Status begin(Lanes& lanes, size_t lane, TimePoint now) = 0;
  /// Something has come on a lane, or nothing after all: takes the whole replies off its input and appends
  /// what is to be sent next, to this lane (which is flushed) or to others (which this call must flush).
  virtual Status answer(Lanes& lanes, size_t lane, TimePoint now) = 0;
  virtual bool is_done() const = 0;
  virtual const LoadResult& result() const = 0;
};

/// Told now and then how much is answered.
using Progress = std::function<void(uint64_t answered)>;

/// Every drive() ends soon with an error. Safe in a signal handler.
void interrupt_loads();

/// Connects the lanes and drives the traffic until it is done: an error when a connection fails or nothing at
/// all is answered for half a minute, a shorter result when the deadline comes first.
Result<LoadResult> drive(const std::vector<Address>& servers, Traffic& traffic, Deadline deadline,
                         const Progress& progress = {});

}  // namespace delayq::bench
