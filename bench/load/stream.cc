#include "bench/load/stream.h"

#include <algorithm>

namespace delayq::bench {

StreamTraffic::StreamTraffic(const Stream& stream, const Dialect& dialect)
    : stream_(stream), dialect_(dialect), states_(stream.connections) {}

Status StreamTraffic::begin(Lanes& lanes, size_t lane, TimePoint now) {
  if (lane == 0) begun_ = now;
  top_up(lanes[lane], states_[lane], now);
  return {};
}

Status StreamTraffic::answer(Lanes& lanes, size_t lane, TimePoint now) {
  Connection& connection = lanes[lane];
  std::string_view input = connection.input();
  const size_t before = input.size();
  size_t replies = 0;
  size_t good = 0;
  while (!input.empty()) {
    const Result<Reply> reply = dialect_.first_reply(input);
    if (!reply.ok()) return reply.error();
    if (reply->size == 0) break;
    ++replies;
    if (reply->is_error || !input.starts_with(stream_.good)) {
      result_.count_error(input);
    } else {
      ++good;
      // Errors may be short; good replies to the same request are about as long as the shortest of them.
      shortest_ = std::min(shortest_, reply->size);
    }
    input.remove_prefix(reply->size);
  }
  State& state = states_[lane];
  if (replies > state.under_way)
    return Error{ErrorCode::kCorrupt, "load", "the server answered more than it was asked", {}};
  connection.consume(before - input.size());
  take(state, replies, now, result_.latency);
  result_.count(begun_, now, good);
  top_up(connection, state, now);
  return {};
}

void StreamTraffic::take(State& state, size_t replies, TimePoint now, Histogram& latency) {
  state.under_way -= replies;
  while (replies > 0) {
    Batch& oldest = state.batches.front();
    const size_t taken = std::min(replies, oldest.left);
    latency.record(now - oldest.begun, taken);
    oldest.left -= taken;
    replies -= taken;
    if (oldest.left == 0) state.batches.erase(state.batches.begin());
  }
}

void StreamTraffic::top_up(Connection& connection, State& state, TimePoint now) {
  // Asks for more once half of the pipeline is free: one write for many requests, and the server never runs
  // dry.
  const size_t half = stream_.pipeline / 2;
  if (state.under_way <= half && next_ < stream_.requests) {
    const auto more =
        static_cast<size_t>(std::min<uint64_t>(stream_.pipeline - state.under_way, stream_.requests - next_));
    for (size_t i = 0; i < more; ++i) stream_.append(next_++, connection.out());
    state.batches.push_back({now, more});
    state.under_way += more;
  }
  // More than half is under way whenever we wait, except at the end.
  const size_t awaited = state.under_way > half ? std::max<size_t>(state.under_way - half, 1) : 1;
  const size_t here = connection.input().size();
  const size_t wanted = awaited * (result_.answered > 0 ? shortest_ : stream_.reply_bytes);
  connection.wake_at(awaited > 1 && wanted > here ? wanted - here : 1);
}

}  // namespace delayq::bench
