// Handing jobs out.
#include <algorithm>

#include "engine/redis/lease.h"
#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"

namespace delayq {

namespace {

/// No call hands out more than this; a take of more asks the same shard again.
constexpr uint32_t kTakenPerCall = redis::JointCall::kMostCounted;
/// A take lets jobs that are due become ready first, but not endlessly many: a shard without a driver, or one
/// that cannot keep up, is asked again with the next take. Until then the order holds among those that have
/// become ready.
constexpr uint32_t kDueBefore = 1'000;
constexpr size_t kMostAsked = 10'000;
/// A script counts in doubles.
constexpr uint64_t kMostBytes = uint64_t{1} << 53;

}  // namespace

uint32_t RedisEngine::share_of(uint32_t count, uint32_t shard) const {
  if (count == 0) return 0;
  return std::max<uint32_t>(1, count / keys_.shards() + (shard < count % keys_.shards() ? 1 : 0));
}

/// A take on its way from shard to shard.
struct RedisEngine::Taking {
  Moment now;
  std::string topic;
  TakeRequest request;  ///< without its texts
  Reply<TakeAnswer> reply;
  std::vector<uint32_t> shards;  ///< still to be asked, the next one last
  TakeAnswer taken;
  uint64_t bytes = 0;  ///< of the records in it
};

void RedisEngine::take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) {
  note_asked(request.topic, request.outlet);
  auto taking = std::make_shared<Taking>();
  taking->now = now;
  taking->topic = request.topic;
  taking->request = request;
  taking->request.topic = {};
  taking->reply = std::move(reply);
  if (request.count > 0) taking->shards = shards_to_ask(now, request.topic, request.outlet);
  if (taking->shards.empty()) {
    answers_.push_back([taking] { taking->reply(std::move(taking->taken)); });
    return;
  }
  take_from_next(taking);
}

void RedisEngine::take_from_next(const std::shared_ptr<Taking>& taking) {
  const uint32_t shard = taking->shards.back();
  taking->shards.pop_back();
  const TakeRequest& request = taking->request;
  const uint32_t wanted =
      std::min(request.count - static_cast<uint32_t>(taking->taken.jobs.size()), kTakenPerCall);
  const int64_t numbers[] = {static_cast<int64_t>(request.outlet),
                             redis::to_stored(request.lease_until),
                             share_of(request.max_reserved, shard),
                             request.auto_ack ? 1 : 0,
                             redis::to_stored(request.keep_done.until),
                             share_of(request.keep_done.count, shard),
                             kDueBefore,
                             static_cast<int64_t>(std::min(request.max_bytes - taking->bytes, kMostBytes)),
                             static_cast<int64_t>(nonce_)};
  const redis::Terms terms{.script = redis::scripts::kTake,
                           .share = redis::Share::kTwoEach,
                           .shard = shard,
                           .topic = taking->topic,
                           .now = taking->now,
                           .numbers = numbers,
                           .is_count_enough = true};
  const uint64_t heard = hints_.heard(shard, taking->topic, request.outlet);
  join(terms, wanted, [this, taking, shard, heard, wanted](Result<resp::Value> answer) {
    go_on_taking(taking,
                 answer.ok() ? read_taken(shard, *taking, *answer, wanted, heard) : Status(answer.error()));
  });
}

void RedisEngine::go_on_taking(const std::shared_ptr<Taking>& taking, const Status& status) {
  const TakeRequest& request = taking->request;
  TakeAnswer& taken = taking->taken;
  // What was taken is given out even when a later shard failed: its leases are running.
  if (!status.ok() && taken.jobs.empty()) return taking->reply(status.error());
  const bool goes_on =
      status.ok() && !taken.is_cut && !taking->shards.empty() && taken.jobs.size() < request.count;
  if (goes_on && taking->bytes < request.max_bytes) return take_from_next(taking);
  taken.is_cut = taken.is_cut || goes_on;
  taking->reply(std::move(taken));
}

Status RedisEngine::read_taken(uint32_t shard, Taking& taking, const resp::Value& answer, uint32_t asked,
                               uint64_t heard) {
  if (!note(shard, taking.topic, answer)) return not_understood("take");
  const TakeRequest& request = taking.request;
  Arena& storage = taking.taken.storage;
  for (size_t i = 2; i + 1 < answer.items.size(); i += 2) {
    const std::optional<redis::Record> record = redis::read_record(answer.items[i + 1].text);
    if (!record) return Error{ErrorCode::kCorrupt, "take", "a record in Redis is not one of ours"};
    TakenJob taken;
    taken.job = redis::copy_job(*record, taking.topic, answer.items[i].text, true, storage);
    if (request.auto_ack) {
      taken.job.state = JobState::kDone;
      taken.job.until = request.keep_done.until;
    } else {
      taken.lease = storage.copy(redis::lease_text({shard, record->lease, record->nonce}));
    }
    taking.taken.jobs.push_back(taken);
    taking.bytes += answer.items[i + 1].text.size();
  }
  const size_t found = (answer.items.size() - 2) / 2;
  taking.taken.is_cut = answer.items.size() % 2 != 0;
  // One that a limit held back may have more, too.
  if (found < asked && request.max_reserved == 0 && !taking.taken.is_cut) {
    hints_.note_empty(shard, taking.topic, request.outlet, heard);
  } else {
    hints_.note_ready(shard, taking.topic, request.outlet);
  }
  if (found == kTakenPerCall) taking.shards.push_back(shard);
  return {};
}

void RedisEngine::note_asked(std::string_view topic, Outlet outlet) {
  // Those that are forgotten are not announced at once after a break, but when look_for_missed() finds them.
  if (asked_topics_.size() >= kMostAsked) asked_topics_.clear();
  asked_topics_.emplace(topic, outlet);
}

std::vector<uint32_t> RedisEngine::shards_to_ask(Moment now, std::string_view topic, Outlet outlet) {
  std::vector<uint32_t> shards;
  const uint32_t count = keys_.shards();
  const uint32_t first = first_shard_++ % count;
  for (uint32_t i = count; i-- > 0;) {
    const uint32_t shard = (first + i) % count;
    if (count == 1 || driving_.next(shard) <= now || hints_.may_have(shard, topic, outlet))
      shards.push_back(shard);
  }
  return shards;
}

}  // namespace delayq
