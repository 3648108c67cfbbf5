#include "bench/load/traffic.h"

#include <algorithm>
#include <atomic>

namespace delayq::bench {

namespace {

constexpr std::chrono::seconds kSilence{30};

std::atomic<bool> is_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

/// Sees whether anything moves.
class Patience {
 public:
  explicit Patience(TimePoint now) : moved_(now) {}

  Status check(const LoadResult& result, TimePoint now) {
    if (is_interrupted) return Error{ErrorCode::kStopping, "load", "interrupted", {}};
    const uint64_t replies = result.answered + result.errors;
    if (replies != replies_) moved_ = now;
    replies_ = replies;
    if (now - moved_ < kSilence) return {};
    return Error{ErrorCode::kUnavailable, "load", "the server has answered nothing for 30 s", {}};
  }

 private:
  TimePoint moved_;
  uint64_t replies_ = 0;
};

Status serve(Lanes& lanes, Traffic& traffic, size_t lane) {
  if (Status received = lanes[lane].receive(); !received.ok()) return received;
  // The clock is read when the bytes are here, so that no figure is better than the truth.
  const TimePoint now = std::chrono::steady_clock::now();
  if (Status answered = traffic.answer(lanes, lane, now); !answered.ok()) return answered;
  return lanes.flush(lane);
}

}  // namespace

void LoadResult::count(TimePoint begun, TimePoint now, uint64_t good) {
  answered += good;
  const auto step = static_cast<size_t>((now - begun) / kTimelineStep);
  if (step >= timeline.size()) timeline.resize(step + 1);
  timeline[step] += good;
}

void LoadResult::count_error(std::string_view reply) {
  ++errors;
  if (first_error.empty()) first_error = reply.substr(0, std::min(reply.find_first_of("\r\n"), reply.size()));
}

void interrupt_loads() { is_interrupted = true; }

Result<LoadResult> drive(const std::vector<Address>& servers, Traffic& traffic, Deadline deadline,
                         const Progress& progress) {
  Result<Lanes> connected = Lanes::connect(servers, traffic.lanes());
  if (!connected.ok()) return connected.error();
  Lanes& lanes = *connected;
  const TimePoint begun = std::chrono::steady_clock::now();
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (Status first = traffic.begin(lanes, i, begun); !first.ok()) return first.error();
    if (Status sent = lanes.flush(i); !sent.ok()) return sent.error();
  }
  Patience patience(begun);
  TimePoint now = begun;
  while (!traffic.is_done() && now < deadline) {
    const Result<std::span<const uint32_t>> ready = lanes.wait(time_left(deadline));
    if (!ready.ok()) return ready.error();
    for (const uint32_t lane : *ready) {
      if (Status served = serve(lanes, traffic, lane); !served.ok()) return served.error();
    }
    now = std::chrono::steady_clock::now();
    if (Status moves = patience.check(traffic.result(), now); !moves.ok()) return moves.error();
    if (progress) progress(traffic.result().answered);
  }
  LoadResult result = traffic.result();
  result.seconds = std::chrono::duration<double>(now - begun).count();
  return result;
}

}  // namespace delayq::bench
