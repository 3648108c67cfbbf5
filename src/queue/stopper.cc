#include "queue/stopper.h"

namespace delayq {

void Stopper::stop(Millis grace, Reply<StopReport> reply) {
  if (context_.stopping) {
    return context_.refuse(reply, Error{ErrorCode::kStopping, "stop", "the server is already shutting down"});
  }
  context_.stopping = true;
  draining_ = true;
  grace_ends_ = saturating_add(context_.now, grace);
  reply_ = std::move(reply);
  hand_over_.dismiss();
  look();
}

void Stopper::look_if_leases_ended() {
  if (draining_ && leases_seen_ != context_.leases_ended) look();
}

void Stopper::look() {
  if (looking_) return;
  looking_ = true;
  leases_seen_ = context_.leases_ended;
  context_.engine.counts(context_.now, {}, [this](const Result<TopicCounts>& counts) {
    looking_ = false;
    if (!draining_) return;
    // An engine that cannot answer may be able to later; the grace period ends it in any case.
    const bool last = counts.ok() && counts->of(JobState::kReserved) == 0;
    const bool over = grace_ends_ <= context_.now;
    if (last || over) return flush(counts.ok() ? counts->of(JobState::kReserved) : 0);
  });
}

void Stopper::flush(uint64_t leases_left) {
  draining_ = false;
  context_.engine.flush([this, leases_left](const Result<bool>& flushed) {
    context_.answer(reply_,
                    flushed.ok() ? Result{StopReport{leases_left}} : Result<StopReport>{flushed.error()});
  });
}

Moment Stopper::tick() {
  if (!draining_) return kNever;
  if (grace_ends_ <= context_.now) look();
  return looking_ ? kNever : grace_ends_;
}

void Stopper::clock_went_back(Millis by) {
  if (draining_ && grace_ends_ != kNever) grace_ends_ -= by;
}

}  // namespace delayq
