// To be written.
#include "engine/redis/redis_engine.h"

namespace delayq {

void RedisEngine::push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) {
  (void)now;
  (void)jobs;
  answer<std::vector<PushAnswer>>(reply, Error{ErrorCode::kUnavailable, "push", "not yet"});
}

void RedisEngine::take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) {
  (void)now;
  (void)request;
  answer<TakeAnswer>(reply, Error{ErrorCode::kUnavailable, "take", "not yet"});
}

void RedisEngine::ack(Moment now, std::span<const AckRequest> leases, Reply<std::vector<AckOutcome>> reply) {
  (void)now;
  (void)leases;
  answer<std::vector<AckOutcome>>(reply, Error{ErrorCode::kUnavailable, "ack", "not yet"});
}

void RedisEngine::nack(Moment now, std::span<const NackRequest> leases,
                       Reply<std::vector<NackOutcome>> reply) {
  (void)now;
  (void)leases;
  answer<std::vector<NackOutcome>>(reply, Error{ErrorCode::kUnavailable, "nack", "not yet"});
}

void RedisEngine::extend(Moment now, std::span<const ExtendRequest> leases, Reply<std::vector<bool>> reply) {
  (void)now;
  (void)leases;
  answer<std::vector<bool>>(reply, Error{ErrorCode::kUnavailable, "extend", "not yet"});
}

void RedisEngine::inspect(Moment now, std::span<const LeaseRef> leases, Reply<std::vector<LeaseInfo>> reply) {
  (void)now;
  (void)leases;
  answer<std::vector<LeaseInfo>>(reply, Error{ErrorCode::kUnavailable, "inspect", "not yet"});
}

void RedisEngine::cancel(Moment now, std::span<const JobRef> jobs, Reply<std::vector<CancelOutcome>> reply) {
  (void)now;
  (void)jobs;
  answer<std::vector<CancelOutcome>>(reply, Error{ErrorCode::kUnavailable, "cancel", "not yet"});
}

void RedisEngine::reschedule(Moment now, std::span<const RescheduleRequest> jobs,
                             Reply<std::vector<RescheduleOutcome>> reply) {
  (void)now;
  (void)jobs;
  answer<std::vector<RescheduleOutcome>>(reply, Error{ErrorCode::kUnavailable, "reschedule", "not yet"});
}

}  // namespace delayq
