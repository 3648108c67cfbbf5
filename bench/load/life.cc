#include "bench/load/life.h"

#include <algorithm>
#include <utility>

namespace delayq::bench {

LifeTraffic::LifeTraffic(const Lives& lives, const LifeDialect& dialect)
    : lives_(lives), dialect_(dialect), states_(lives.connections) {}

Status LifeTraffic::begin(Lanes& lanes, size_t lane, TimePoint now) {
  if (lane == 0) begun_ = now;
  start_round(lanes[lane], lane, now);
  sleep_for(lanes[lane], states_[lane]);
  return {};
}

Status LifeTraffic::answer(Lanes& lanes, size_t lane, TimePoint now) {
  Connection& connection = lanes[lane];
  State& state = states_[lane];
  std::string_view input = connection.input();
  const size_t before = input.size();
  while (!input.empty()) {
    const Result<Reply> reply = dialect_.first_reply(input);
    if (!reply.ok()) return reply.error();
    if (reply->size == 0) break;
    if (state.awaited == 0)
      return Error{ErrorCode::kCorrupt, "load", "the server answered more than it was asked", {}};
    --state.awaited;
    if (reply->is_error) {
      ++state.failed;
      result_.count_error(input);
    } else {
      state.good +=
          state.step == Step::kPop ? dialect_.append_acks(input.substr(0, reply->size), state.acks) : 1;
    }
    input.remove_prefix(reply->size);
  }
  connection.consume(before - input.size());
  advance(connection, lane, now);
  sleep_for(connection, state);
  return {};
}

void LifeTraffic::start_round(Connection& connection, size_t lane, TimePoint now) {
  State& state = states_[lane];
  const auto jobs =
      static_cast<size_t>(std::min<uint64_t>(lives_.pipeline, lives_.jobs - std::min(started_, lives_.jobs)));
  state = State{};
  state.begun = now;
  state.jobs = state.awaited = jobs;
  for (size_t i = 0; i < jobs; ++i) dialect_.append_push(lane, started_++, connection.out());
}

void LifeTraffic::end_round(const State& state, size_t acked, TimePoint now) {
  if (acked > 0) result_.latency.record(now - state.begun, acked);
  result_.count(begun_, now, acked);
  given_up_ += state.jobs - std::min(acked, state.jobs);
}

void LifeTraffic::ask_for_jobs(Connection& connection, size_t lane) {
  State& state = states_[lane];
  state.step = Step::kPop;
  state.awaited = state.to_pop;
  for (size_t i = 0; i < state.to_pop; ++i) dialect_.append_pop(lane, connection.out());
}

void LifeTraffic::advance(Connection& connection, size_t lane, TimePoint now) {
  State& state = states_[lane];
  while (state.awaited == 0 && state.jobs > 0) {
    const size_t good = std::exchange(state.good, 0);
    const size_t failed = std::exchange(state.failed, 0);
    switch (state.step) {
      case Step::kPush:
        state.to_pop = good;
        ask_for_jobs(connection, lane);
        break;
      case Step::kPop:
        state.to_ack += good;
        state.to_pop -= std::min(state.to_pop, good + failed);
        if (state.to_pop > 0) {  // found nothing, though every push was answered: asks again
          ask_for_jobs(connection, lane);
          break;
        }
        state.step = Step::kAck;
        state.awaited = state.to_ack;
        connection.out() += state.acks;
        break;
      case Step::kAck:
        end_round(state, good, now);
        start_round(connection, lane, now);
        break;
    }
  }
}

void LifeTraffic::sleep_for(Connection& connection, const State& state) const {
  const size_t bytes = state.step == Step::kPush  ? dialect_.push_reply_bytes()
                       : state.step == Step::kPop ? dialect_.pop_reply_bytes()
                                                  : dialect_.ack_reply_bytes();
  const size_t wanted = state.awaited * bytes;
  const size_t here = connection.input().size();
  connection.wake_at(wanted > here ? wanted - here : 1);
}

}  // namespace delayq::bench
