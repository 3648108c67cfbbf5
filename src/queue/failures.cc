#include "queue/failures.h"

#include "queue/job_options.h"

namespace delayq {

namespace {

std::optional<Millis> delay_of(const Failure& failure, const RetryPolicy& policy, uint64_t random) {
  const std::optional<Millis> backoff = next_delay(policy, failure.attempts, random);
  return backoff && failure.delay ? failure.delay : backoff;
}

}  // namespace

Verdict judge(const Failure& failure, const EffectiveSettings& topic, Moment now, uint64_t random) {
  std::optional<Millis> delay;
  if (!failure.dead) {
    const JobOptions own = decode_job_options(failure.options);
    if (own.attempts || own.backoff) {
      const RetryPolicy policy{own.attempts.value_or(topic.retry.attempts),
                               own.backoff.value_or(topic.retry.backoff)};
      delay = delay_of(failure, policy, random);
    } else {
      delay = delay_of(failure, topic.retry, random);
    }
  }
  if (!delay) return {std::nullopt, keep_from(now, topic.keep_dead)};
  return {saturating_add(now, *delay), {}};
}

}  // namespace delayq
