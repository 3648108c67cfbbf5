#include "queue/failures.h"

#include "queue/job_options.h"

namespace delayq {

Verdict judge(const Failure& failure, const EffectiveSettings& topic, Moment now, uint64_t random) {
  std::optional<Millis> delay;
  if (!failure.dead) {
    const JobOptions own = decode_job_options(failure.options);
    const RetryPolicy policy{own.attempts.value_or(topic.attempts),
                             own.backoff ? *own.backoff : topic.backoff};
    delay = next_delay(policy, failure.attempts, random);
    if (delay && failure.delay) delay = failure.delay;
  }
  if (!delay) return {std::nullopt, keep_from(now, topic.keep_dead)};
  return {saturating_add(now, *delay), {}};
}

}  // namespace delayq
