// Looking for one job.
#include "engine/redis/lease.h"
#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"

namespace delayq {

using redis::Arguments;
using redis::Gather;

namespace {

constexpr uint32_t kTopicsPerCall = 500;

}  // namespace

void RedisEngine::get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply) {
  const uint32_t shard = keys_.shard_of(job.id);
  const redis::TopicKeys keys = keys_.topic(shard, job.topic);
  Arguments arguments = arguments_for(now, shard, job.topic);
  arguments.text(job.id);
  auto gather = Gather<std::optional<FoundJob>>::make(std::nullopt, std::move(reply));
  run(redis::scripts::kGet, keys.all(), arguments,
      gather->expect([shard, topic = std::string(job.topic), id = std::string(job.id)](
                         resp::Value& value, std::optional<FoundJob>& found) -> Status {
        if (value.items.empty()) return {};
        const auto record = value.items.size() == 2 ? redis::read_record(value.items[1].text) : std::nullopt;
        if (!record) return not_understood("get");
        found.emplace();
        found->job = redis::copy_job(*record, topic, id, true, found->storage);
        found->job.state = static_cast<JobState>(value.items[0].integer);
        if (record->state == JobState::kReserved)
          found->lease = found->storage.copy(redis::lease_text({shard, record->lease, record->nonce}));
        return {};
      }));
  gather->close(answers_);
}

struct RedisEngine::Locating {
  Moment now{};
  uint32_t shard = 0;
  std::string id;
  Among among = Among::kLive;
  std::string after;  ///< the topic that was looked at last
  std::vector<std::string> found;
  Reply<std::vector<std::string>> reply;
};

void RedisEngine::locate(Moment now, std::string_view id, Among among,
                         Reply<std::vector<std::string>> reply) {
  locate_next(std::make_shared<Locating>(
      Locating{now, keys_.shard_of(id), std::string(id), among, {}, {}, std::move(reply)}));
}

void RedisEngine::locate_next(const std::shared_ptr<Locating>& locating) {
  Arguments arguments = arguments_for(locating->now, locating->shard, {});
  arguments.text(locating->id).text(locating->after).number(kTopicsPerCall);
  arguments.number(locating->among == Among::kAll ? 1 : 0);
  run(redis::scripts::kLocate, shard_keys(locating->shard).all(), arguments,
      [this, locating](const Result<resp::Value>& answer) {
        if (!answer.ok()) return locating->reply(answer.error());
        if (answer->items.empty()) return locating->reply(not_understood("locate"));
        for (size_t i = 1; i < answer->items.size(); ++i) locating->found.push_back(answer->items[i].text);
        locating->after = answer->items[0].text;
        if (locating->after.empty()) return locating->reply(std::move(locating->found));
        locate_next(locating);
      });
}

}  // namespace delayq
