// Pushing jobs.
#include <algorithm>

#include "engine/redis/bundles.h"
#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"

namespace delayq {

using redis::Arguments;
using redis::Bundle;
using redis::Gather;

namespace {

// The flags of scripts/push.lua.
constexpr uint32_t kUniqueAcrossTopics = 4;
constexpr uint32_t kHasGroup = 8;
constexpr uint32_t kAddsNone = 16;
constexpr size_t kExceptionItems = 4;

void add(Arguments& arguments, const NewJob& job, Moment now) {
  const redis::RecordPieces record = redis::write_new_job(job, now, arguments.storage());
  uint32_t flags = static_cast<uint32_t>(job.on_conflict);
  if (job.unique_across_topics) flags += kUniqueAcrossTopics;
  if (!job.group.empty()) flags += kHasGroup;
  if (job.adds_none) flags += kAddsNone;
  arguments.text(job.id).view(record.before).view(record.after).moment(job.due).number(flags);
}

/// Reads the script's exceptions into the answers that all have got already as created.
bool read_exceptions(const resp::Value& value, const std::string& topic, const Bundle& bundle,
                     std::vector<PushAnswer>& answers) {
  (void)topic;
  const std::vector<resp::Value>& said = value.items;
  if ((said.size() - 2) % kExceptionItems != 0) return false;
  for (size_t i = 2; i < said.size(); i += kExceptionItems) {
    const auto place = static_cast<size_t>(said[i].integer);
    if (place >= bundle.items.size()) return false;
    answers[bundle.items[place]] = {static_cast<PushOutcome>(said[i + 1].integer),
                                    static_cast<JobState>(said[i + 2].integer),
                                    redis::from_stored(said[i + 3].integer)};
  }
  return true;
}

}  // namespace

void RedisEngine::push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) {
  // Of no jobs: whether some would be accepted, as far as is known. Jobs themselves are for Redis to refuse.
  if (jobs.empty() && is_out_of_memory_)
    return answer(reply, Result<std::vector<PushAnswer>>(redis::out_of_memory("push")));
  std::vector<PushAnswer> created;
  created.reserve(jobs.size());
  for (const NewJob& job : jobs) {
    created.push_back(
        {PushOutcome::kCreated, job.due <= now ? JobState::kReady : JobState::kDelayed, job.due});
  }
  // Who asks for an id that is nowhere else must see what came before it in the same batch.
  const bool in_strict_order =
      std::any_of(jobs.begin(), jobs.end(), [](const NewJob& job) { return job.unique_across_topics; });
  // And what came before the batch, in any topic.
  if (in_strict_order) send_all_joint();
  const size_t most = in_strict_order ? redis::unique_per_call(usage_.topics) : redis::kItemsPerCall;
  auto gather = Gather<std::vector<PushAnswer>>::make(std::move(created), std::move(reply));
  for (const Bundle& bundle : redis::make_bundles(
           jobs, [this](const NewJob& job) { return std::pair(keys_.shard_of(job.id), job.topic); },
           [](const NewJob& job) { return job.body.size() + job.options.size(); }, in_strict_order, most)) {
    const redis::Terms terms{.script = redis::scripts::kPush,
                             .share = redis::Share::kExceptions,
                             .shard = bundle.shard,
                             .topic = bundle.topic,
                             .now = now};
    Arguments& arguments = join(terms, static_cast<uint32_t>(bundle.items.size()),
                                expect(terms.script, bundle, *gather, read_exceptions));
    bool is_any_ready = false;
    for (const uint32_t item : bundle.items) {
      add(arguments, jobs[item], now);
      is_any_ready |= jobs[item].due <= now;
    }
    if (is_any_ready) expect_ready(bundle.shard, bundle.topic);
    if (in_strict_order) send_all_joint();
  }
  gather->close(answers_);
}

}  // namespace delayq
