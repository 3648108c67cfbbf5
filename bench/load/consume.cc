#include "bench/load/consume.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include <fmt/format.h>

#include "bench/load/jobs_reply.h"
#include "resp/writer.h"

namespace delayq::bench {

namespace {

Nanos system_wall_clock() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return std::chrono::seconds(time.tv_sec) + Nanos(time.tv_nsec);
}

Error bad_hand_over(std::string detail) { return {ErrorCode::kCorrupt, "load", std::move(detail), {}}; }

int64_t number_of(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

ConsumeTraffic::ConsumeTraffic(const Consumption& consumption, const Dialect& dialect)
    : consumption_(consumption), dialect_(dialect), consumers_(consumption.consumers) {}

Status ConsumeTraffic::begin(Lanes& lanes, size_t lane, TimePoint now) {
  if (lane == 0) begun_ = now;
  if (lane >= consumers_.size()) return {};
  consumers_[lane].asked = now;
  lanes[lane].out() += consumption_.pop;
  return {};
}

Status ConsumeTraffic::answer(Lanes& lanes, size_t lane, TimePoint now) {
  const bool is_pop = lane < consumers_.size();
  const size_t number = is_pop ? lane : lane - consumers_.size();
  Consumer& consumer = consumers_[number];
  Connection& connection = lanes[lane];
  for (;;) {
    const std::string_view input = connection.input();
    if (input.empty()) break;
    const Result<Reply> reply = dialect_.first_reply(input);
    if (!reply.ok()) return reply.error();
    if (reply->size == 0) break;
    const std::string_view whole = input.substr(0, reply->size);
    if (!is_pop) {
      take_ack(whole, reply->is_error, consumer, now);
    } else {
      const Nanos wall = consumption_.wall_clock ? consumption_.wall_clock() : system_wall_clock();
      if (reply->is_error) return bad_hand_over(fmt::format("POP was answered with {}", whole));
      if (!consumption_.is_dated) result_.latency.record(now - consumer.asked);
      // The next jobs are asked for before these are looked at.
      connection.out() += consumption_.pop;
      if (Status sent = lanes.flush(lane); !sent.ok()) return sent;
      consumer.asked = now;
      take_jobs(whole, consumer, lanes[number + consumers_.size()].out(), wall);
    }
    connection.consume(whole.size());
  }
  return is_pop ? lanes.flush(number + consumers_.size()) : Status{};
}

void ConsumeTraffic::take_jobs(std::string_view reply, Consumer& consumer, std::string& acks, Nanos wall) {
  JobsReply jobs(reply);
  leases_.assign(1, "ACK");
  for (PoppedJob job; jobs.next(job);) {
    leases_.push_back(job.lease);
    if (consumption_.is_dated) judge(job, wall);
  }
  if (jobs.broken()) result_.count_error("POP was answered with something else than jobs");
  const size_t count = leases_.size() - 1;
  if (count == 0) return;
  handed_over_ += count;
  last_hand_over_ = wall;
  resp::append_command(acks, leases_);
  consumer.acks.push_back(count);
}

void ConsumeTraffic::judge(const PoppedJob& job, Nanos wall) {
  const int64_t due_ms = number_of(job.body.substr(0, DelayqDialect::kDueBytes));
  if (due_ms != job.due_ms)
    result_.count_error(fmt::format("a job due at {} was handed over as due at {}", due_ms, job.due_ms));
  const Nanos late = wall - Millis{due_ms};
  if (late < Nanos{0}) ++result_.early;
  result_.latency.record(late);
}

void ConsumeTraffic::take_ack(std::string_view reply, bool is_error, Consumer& consumer, TimePoint now) {
  const uint64_t leases = consumer.first_ack < consumer.acks.size() ? consumer.acks[consumer.first_ack++] : 0;
  if (consumer.first_ack == consumer.acks.size()) {
    consumer.acks.clear();
    consumer.first_ack = 0;
  }
  if (is_error) return result_.count_error(reply);
  const auto acked = static_cast<uint64_t>(std::max<int64_t>(number_of(reply.substr(1)), 0));
  if (acked < leases) result_.count_error(fmt::format("{} of {} leases were acked", acked, leases));
  result_.count(begun_, now, std::min(acked, leases));
}

}  // namespace delayq::bench
