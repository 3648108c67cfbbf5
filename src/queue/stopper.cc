#include "queue/stopper.h"

#include <utility>

#include <fmt/format.h>

namespace delayq {

void Stopper::stop(Millis grace, Reply<StopReport> reply) {
  if (context_.stopping) {
    return context_.refuse(reply, Error{ErrorCode::kStopping, "stop", "the server is already shutting down"});
  }
  context_.stopping = true;
  reply_ = std::move(reply);
  enter(Phase::kGrace, grace);
  hand_over_.dismiss();
  look();
}

void Stopper::enter(Phase phase, Millis at_most) {
  phase_ = phase;
  phase_ends_ = saturating_add(context_.now, at_most);
}

void Stopper::look_if_leases_ended() {
  if (phase_ == Phase::kGrace && leases_seen_ != context_.leases_ended) look();
}

void Stopper::look() {
  if (looking_) return;
  looking_ = true;
  leases_seen_ = context_.leases_ended;
  context_.engine.counts(context_.now, {}, [this](const Result<TopicCounts>& counts) {
    looking_ = false;
    if (phase_ == Phase::kGrace || phase_ == Phase::kCounting) counted(counts);
  });
}

void Stopper::counted(const Result<TopicCounts>& counts) {
  const bool is_last = counts.ok() && counts->of(JobState::kReserved) == 0;
  // After an error the count is tried again when more leases end, and at the end of the grace period.
  if (!is_last && phase_ == Phase::kGrace && phase_ends_ > context_.now) return;
  if (counts.ok()) report_.leases_left = counts->of(JobState::kReserved);
  flush();
}

void Stopper::flush() {
  enter(Phase::kFlushing, kLongestFlush);
  context_.engine.flush([this](const Result<bool>& flushed) {
    if (phase_ != Phase::kFlushing) return;
    finish(flushed.ok() ? Result{report_} : Result<StopReport>{flushed.error()});
  });
}

void Stopper::finish(Result<StopReport> result) {
  enter(Phase::kStopped, Millis::zero());
  context_.answer(reply_, std::move(result));
}

Moment Stopper::tick() {
  if (phase_ == Phase::kServing || phase_ == Phase::kStopped) return kNever;
  if (phase_ends_ > context_.now) return phase_ends_;
  switch (phase_) {
    case Phase::kGrace:
      enter(Phase::kCounting, kLongestCount);
      look();
      break;
    case Phase::kCounting:
      flush();
      break;
    default:
      finish(Error{ErrorCode::kUnavailable, "stop",
                   fmt::format("no answer within {} s", kLongestFlush / std::chrono::seconds{1})});
      return kNever;
  }
  return phase_ends_;
}

void Stopper::clock_went_back(Millis by) {
  if (phase_ends_ != kNever) phase_ends_ -= by;
}

}  // namespace delayq
