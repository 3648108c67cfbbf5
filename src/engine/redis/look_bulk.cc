// Verbs that change many jobs by their ids.
#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"

namespace delayq {

using redis::Arguments;
using redis::Bundle;
using redis::Gather;

namespace {

constexpr size_t kRestoredItems = 3;

void add(Arguments& arguments, const RestoreRequest& request, uint32_t keep_count) {
  const redis::RecordPieces record = redis::write_job(request.job, arguments.storage());
  arguments.view(request.job.id).view(record.before).view(record.after);
  arguments.number(static_cast<uint32_t>(request.on_conflict)).number(keep_count);
}

bool read_restored(const resp::Value& value, const std::string& topic, const Bundle& bundle,
                   std::vector<PushAnswer>& answers) {
  (void)topic;
  const std::vector<resp::Value>& said = value.items;
  if (said.size() != 2 + bundle.items.size() * kRestoredItems) return false;
  for (size_t i = 0; i < bundle.items.size(); ++i) {
    const size_t at = 2 + i * kRestoredItems;
    answers[bundle.items[i]] = {static_cast<PushOutcome>(said[at].integer),
                                static_cast<JobState>(said[at + 1].integer),
                                redis::from_stored(said[at + 2].integer)};
  }
  return true;
}

}  // namespace

void RedisEngine::restore(Moment now, std::span<const RestoreRequest> jobs,
                          Reply<std::vector<PushAnswer>> reply) {
  auto gather = Gather<std::vector<PushAnswer>>::make(std::vector<PushAnswer>(jobs.size()), std::move(reply));
  const auto where = [this](const RestoreRequest& request) {
    return std::pair(keys_.shard_of(request.job.id), request.job.topic);
  };
  const auto bytes = [](const RestoreRequest& request) {
    return request.job.body.size() + request.job.options.size();
  };
  for (const Bundle& bundle : redis::make_bundles(jobs, where, bytes, false)) {
    Arguments arguments = arguments_for(now, bundle.shard, bundle.topic);
    for (const uint32_t item : bundle.items)
      add(arguments, jobs[item], share_of(jobs[item].keep_count, bundle.shard));
    expect_ready(bundle.shard, bundle.topic);
    send(redis::scripts::kRestore, bundle, arguments, *gather, read_restored);
  }
  gather->close(answers_);
}

void RedisEngine::redrive(Moment now, std::string_view topic, std::span<const std::string_view> ids,
                          Reply<uint64_t> reply) {
  auto gather = Gather<uint64_t>::make(0, std::move(reply));
  const auto where = [&](std::string_view id) { return std::pair(keys_.shard_of(id), topic); };
  const auto read = [](const resp::Value& value, const std::string&, const Bundle& bundle,
                       uint64_t& redriven) {
    if (value.items.size() != bundle.items.size() + 2) return false;
    for (size_t i = 2; i < value.items.size(); ++i) redriven += value.items[i].integer == 1 ? 1 : 0;
    return true;
  };
  for (const Bundle& bundle : redis::make_bundles(ids, where)) {
    const redis::Terms terms{
        .script = redis::scripts::kRedrive, .shard = bundle.shard, .topic = topic, .now = now};
    Arguments& arguments =
        join(terms, static_cast<uint32_t>(bundle.items.size()), expect(terms.script, bundle, *gather, read));
    for (const uint32_t item : bundle.items) arguments.text(ids[item]);
    expect_ready(bundle.shard, topic);
  }
  gather->close(answers_);
}

}  // namespace delayq
