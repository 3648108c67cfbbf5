#include <algorithm>
#include <array>

#include "engine/redis/arguments.h"
#include "engine/redis/lease.h"
#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"

namespace delayq {

// ---- push

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

/// Applies the exceptions that the script returned; all other jobs were created.
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
  // An empty batch: whether jobs would be accepted, as far as is known. A real push is
  // refused by Redis itself.
  if (jobs.empty() && is_out_of_memory_)
    return answer(reply, Result<std::vector<PushAnswer>>(redis::out_of_memory("push")));
  std::vector<PushAnswer> created;
  created.reserve(jobs.size());
  for (const NewJob& job : jobs) {
    created.push_back(
        {PushOutcome::kCreated, job.due <= now ? JobState::kReady : JobState::kDelayed, job.due});
  }
  // A push with unique_across_topics must see the pushes before it in the same batch.
  const bool in_strict_order =
      std::any_of(jobs.begin(), jobs.end(), [](const NewJob& job) { return job.unique_across_topics; });
  // And all verbs before the batch, in any topic.
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
      expect_delayed(now, bundle.shard, jobs[item].due);
    }
    if (is_any_ready) expect_ready(bundle.shard, bundle.topic);
    if (in_strict_order) send_all_joint();
  }
  gather->close(answers_);
}

// ---- take

namespace {

/// The maximum for one call; a larger take asks the same shard again.
constexpr uint32_t kTakenPerCall = redis::JointCall::kMostCounted;
/// A take first makes due jobs ready, but at most this many: if a shard has no driver, or the driver is too
/// slow, the next take continues. Until then the order is right only among the jobs that have become ready.
constexpr uint32_t kDueBefore = 1'000;
constexpr size_t kMostAsked = 10'000;
// The ways in which scripts/take.lua hands jobs out.
constexpr int64_t kAutoAck = 1;
constexpr int64_t kOwnLeases = 2;
/// Scripts calculate in doubles.
constexpr uint64_t kMostBytes = uint64_t{1} << 53;

}  // namespace

uint32_t RedisEngine::share_of(uint32_t count, uint32_t shard) const {
  if (count == 0) return 0;
  return std::max<uint32_t>(1, count / keys_.shards() + (shard < count % keys_.shards() ? 1 : 0));
}

/// A take that asks one shard after the other.
struct RedisEngine::Taking {
  Moment now;
  std::string topic;
  TakeRequest request;  ///< without its strings
  Reply<TakeAnswer> reply;
  std::vector<uint32_t> shards;  ///< shards still to be asked; the next one is last
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
                             request.auto_ack     ? kAutoAck
                             : request.own_leases ? kOwnLeases
                                                  : 0,
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
  // Jobs already taken are returned even if a later shard failed: their leases are running.
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
    if (!record) return Error{ErrorCode::kCorrupt, "take", "a record in Redis has an unknown format"};
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
  // A shard whose reply was limited may have more ready jobs, too.
  if (found < asked && request.max_reserved == 0 && !taking.taken.is_cut) {
    hints_.note_empty(shard, taking.topic, request.outlet, heard);
  } else {
    hints_.note_ready(shard, taking.topic, request.outlet);
  }
  if (found == kTakenPerCall) taking.shards.push_back(shard);
  return {};
}

void RedisEngine::note_asked(std::string_view topic, Outlet outlet) {
  // Dropped topics are not announced directly after a reconnect, but when look_for_missed() finds them.
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

// ---- with a lease

using redis::Arguments;
using redis::Bundle;
using redis::Gather;
using redis::Lease;

namespace {

// The flags of scripts/nack.lua.
constexpr uint32_t kExpired = 1;
constexpr uint32_t kUncounted = 2;

/// For scripts whose leases have no common argument.
constexpr auto kNoNumbers = [](const auto&, uint32_t) { return std::array<int64_t, 0>{}; };

}  // namespace

template <class T, class Request, class Numbers, class Add, class Read>
void RedisEngine::send_leases(const net::redis::Script& script, Moment now, std::span<const Request> requests,
                              Gather<T>& gather, Numbers numbers, Add add, Read read) {
  std::vector<std::pair<uint32_t, Lease>> current;  // position in the batch, lease
  current.reserve(requests.size());
  for (uint32_t i = 0; i < requests.size(); ++i) {
    if (const auto lease = redis::read_lease(requests[i].lease.lease, keys_.shards()))
      current.emplace_back(i, *lease);
  }
  const auto where = [&](const std::pair<uint32_t, Lease>& each) {
    return std::pair(each.second.shard, requests[each.first].lease.topic);
  };
  for (const Bundle& bundle : redis::make_bundles(current, where)) {
    for (auto item = bundle.items.begin(); item != bundle.items.end();) {
      const auto common = numbers(requests[current[*item].first], bundle.shard);
      const auto is_other = [&](uint32_t other) {
        return numbers(requests[current[other].first], bundle.shard) != common;
      };
      const auto end = std::find_if(item, bundle.items.end(), is_other);
      const redis::Terms terms{.script = script,
                               .share = redis::Share::kOneEach,
                               .shard = bundle.shard,
                               .topic = bundle.topic,
                               .now = now,
                               .numbers = common};
      Bundle together{bundle.shard, bundle.topic, {}};
      for (auto each = item; each != end; ++each) together.items.push_back(current[*each].first);
      Arguments& arguments =
          join(terms, static_cast<uint32_t>(end - item), expect(script, std::move(together), gather, read));
      for (; item != end; ++item) {
        arguments.number(current[*item].second.number).number(current[*item].second.nonce);
        add(arguments, requests[current[*item].first], bundle.shard);
      }
    }
  }
}

void RedisEngine::ack(Moment now, std::span<const AckRequest> leases, Reply<std::vector<AckOutcome>> reply) {
  auto gather =
      Gather<std::vector<AckOutcome>>::make(std::vector(leases.size(), AckOutcome::kStale), std::move(reply));
  const auto keep = [this](const AckRequest& request, uint32_t shard) {
    return std::array{redis::to_stored(request.keep.until), int64_t{share_of(request.keep.count, shard)}};
  };
  const auto add = [](Arguments& arguments, const AckRequest& request, uint32_t) {
    arguments.text(request.outcome);
  };
  send_leases(redis::scripts::kAck, now, leases, *gather, keep, add, redis::read_each<AckOutcome>);
  gather->close(answers_);
}

void RedisEngine::nack(Moment now, std::span<const NackRequest> leases,
                       Reply<std::vector<NackOutcome>> reply) {
  auto gather = Gather<std::vector<NackOutcome>>::make(std::vector(leases.size(), NackOutcome::kStale),
                                                       std::move(reply));
  const auto add = [this, now](Arguments& arguments, const NackRequest& request, uint32_t shard) {
    if (request.retry_at) {
      arguments.moment(*request.retry_at);
      if (*request.retry_at <= now) expect_ready(shard, request.lease.topic);
      expect_delayed(now, shard, *request.retry_at);
    } else {
      arguments.text({});
    }
    arguments.moment(request.keep.until)
        .number(share_of(request.keep.count, shard))
        .text(request.reason)
        .number((request.expired ? kExpired : 0) + (request.uncounted ? kUncounted : 0));
  };
  send_leases(redis::scripts::kNack, now, leases, *gather, kNoNumbers, add, redis::read_each<NackOutcome>);
  gather->close(answers_);
}

void RedisEngine::held(Moment now, std::span<const LeaseRef> leases, bool with_bodies,
                       Reply<HeldJobs> reply) {
  struct Wanted {
    LeaseRef lease;
  };
  std::vector<Wanted> wanted;
  wanted.reserve(leases.size());
  for (const LeaseRef& lease : leases) wanted.push_back({lease});
  HeldJobs none;
  none.jobs.resize(leases.size());
  auto gather = Gather<HeldJobs>::make(std::move(none), std::move(reply));
  const auto numbers = [with_bodies](const Wanted&, uint32_t) { return std::array{int64_t{with_bodies}}; };
  const auto read = [with_bodies](const resp::Value& value, const std::string& topic, const Bundle& bundle,
                                  HeldJobs& all) {
    if (value.items.size() != bundle.items.size() + 2) return false;
    for (size_t i = 0; i < bundle.items.size(); ++i) {
      const std::vector<resp::Value>& said = value.items[i + 2].items;
      if (said.size() < 2) continue;
      std::optional<Job>& job = all.jobs[bundle.items[i]];
      if (!with_bodies) {
        job.emplace();
        job->topic = all.storage.copy(topic);
        job->id = all.storage.copy(said[0].text);
        job->group = all.storage.copy(said[1].text);
        continue;
      }
      const std::optional<redis::Record> record = redis::read_record(said[1].text);
      if (!record) return false;
      job = redis::copy_job(*record, topic, said[0].text, true, all.storage);
    }
    return true;
  };
  send_leases(
      redis::scripts::kHeld, now, std::span<const Wanted>(wanted), *gather, numbers,
      [](Arguments&, const Wanted&, uint32_t) {}, read);
  gather->close(answers_);
}

void RedisEngine::extend(Moment now, std::span<const ExtendRequest> leases,
                         Reply<std::vector<ExtendAnswer>> reply) {
  auto gather =
      Gather<std::vector<ExtendAnswer>>::make(std::vector<ExtendAnswer>(leases.size()), std::move(reply));
  const auto add = [](Arguments& arguments, const ExtendRequest& request, uint32_t) {
    arguments.moment(request.until).number(request.never_sooner ? 1 : 0);
  };
  const auto read = [](const resp::Value& value, const std::string&, const Bundle& bundle,
                       std::vector<ExtendAnswer>& all) {
    if (value.items.size() != bundle.items.size() + 2) return false;
    for (size_t i = 0; i < bundle.items.size(); ++i) {
      const int64_t until = value.items[i + 2].integer;
      if (until != 0) all[bundle.items[i]] = redis::from_stored(until);
    }
    return true;
  };
  send_leases(redis::scripts::kExtend, now, leases, *gather, kNoNumbers, add, read);
  gather->close(answers_);
}

// ---- cancel, reschedule

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
      expect_delayed(now, bundle.shard, jobs[item].due);
    }
  }
  gather->close(answers_);
}

}  // namespace delayq
