// What a producer may do with a job that it has pushed.
#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"

namespace delayq {

using redis::Arguments;
using redis::Bundle;
using redis::Gather;

void RedisEngine::cancel(Moment now, std::span<const JobRef> jobs, Reply<std::vector<CancelOutcome>> reply) {
  auto gather = Gather<std::vector<CancelOutcome>>::make(std::vector(jobs.size(), CancelOutcome::kUnknown),
                                                         std::move(reply));
  const auto where = [this](const JobRef& job) { return std::pair(keys_.shard_of(job.id), job.topic); };
  for (const Bundle& bundle : redis::make_bundles(jobs, where)) {
    const redis::Terms terms{
        .script = redis::scripts::kCancel, .shard = bundle.shard, .topic = bundle.topic, .now = now};
    Arguments& arguments = join(terms, static_cast<uint32_t>(bundle.items.size()),
                                expect(terms.script, bundle, *gather, redis::read_each<CancelOutcome>));
    for (const uint32_t item : bundle.items) arguments.text(jobs[item].id);
  }
  gather->close(answers_);
}

void RedisEngine::reschedule(Moment now, std::span<const RescheduleRequest> jobs,
                             Reply<std::vector<RescheduleOutcome>> reply) {
  auto gather = Gather<std::vector<RescheduleOutcome>>::make(
      std::vector(jobs.size(), RescheduleOutcome::kUnknown), std::move(reply));
  const auto where = [this](const RescheduleRequest& request) {
    return std::pair(keys_.shard_of(request.job.id), request.job.topic);
  };
  for (const Bundle& bundle : redis::make_bundles(jobs, where)) {
    const redis::Terms terms{
        .script = redis::scripts::kReschedule, .shard = bundle.shard, .topic = bundle.topic, .now = now};
    Arguments& arguments = join(terms, static_cast<uint32_t>(bundle.items.size()),
                                expect(terms.script, bundle, *gather, redis::read_each<RescheduleOutcome>));
    for (const uint32_t item : bundle.items) {
      arguments.text(jobs[item].job.id).moment(jobs[item].due);
      if (jobs[item].due <= now) expect_ready(bundle.shard, bundle.topic);
    }
  }
  gather->close(answers_);
}

}  // namespace delayq
