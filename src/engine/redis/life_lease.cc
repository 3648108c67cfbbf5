// What a lease allows.
#include <algorithm>
#include <array>

#include "engine/redis/lease.h"
#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"

namespace delayq {

using redis::Arguments;
using redis::Bundle;
using redis::Gather;
using redis::Lease;

namespace {

// The flags of scripts/nack.lua.
constexpr uint32_t kExpired = 1;
constexpr uint32_t kUncounted = 2;

const LeaseRef& ref_of(const LeaseRef& lease) { return lease; }
const LeaseRef& ref_of(const auto& request) { return request.lease; }

/// Of scripts whose leases have no argument in common.
constexpr auto kNoNumbers = [](const auto&, uint32_t) { return std::array<int64_t, 0>{}; };

}  // namespace

template <class T, class Request, class Numbers, class Add, class Read>
void RedisEngine::send_leases(const net::redis::Script& script, Moment now, std::span<const Request> requests,
                              Gather<T>& gather, Numbers numbers, Add add, Read read, redis::Share share) {
  std::vector<std::pair<uint32_t, Lease>> current;  // place in the batch, lease
  current.reserve(requests.size());
  for (uint32_t i = 0; i < requests.size(); ++i) {
    if (const auto lease = redis::read_lease(ref_of(requests[i]).lease, keys_.shards()))
      current.emplace_back(i, *lease);
  }
  const auto where = [&](const std::pair<uint32_t, Lease>& each) {
    return std::pair(each.second.shard, ref_of(requests[each.first]).topic);
  };
  for (const Bundle& bundle : redis::make_bundles(current, where)) {
    for (auto item = bundle.items.begin(); item != bundle.items.end();) {
      const auto common = numbers(requests[current[*item].first], bundle.shard);
      const auto is_other = [&](uint32_t other) {
        return numbers(requests[current[other].first], bundle.shard) != common;
      };
      const auto end = std::find_if(item, bundle.items.end(), is_other);
      const redis::Terms terms{.script = script,
                               .share = share,
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

void RedisEngine::inspect(Moment now, std::span<const LeaseRef> leases, Reply<std::vector<LeaseInfo>> reply) {
  // Every lease has its place until all have answered; then the stale ones are left out.
  auto only_current = [reply = std::move(reply)](Result<std::vector<LeaseInfo>> all) mutable {
    if (all.ok()) std::erase_if(*all, [](const LeaseInfo& info) { return info.lease.empty(); });
    reply(std::move(all));
  };
  auto gather =
      Gather<std::vector<LeaseInfo>>::make(std::vector<LeaseInfo>(leases.size()), std::move(only_current));
  std::vector<std::string> texts;
  for (const LeaseRef& lease : leases) texts.emplace_back(lease.lease);
  const auto read = [texts = std::move(texts)](const resp::Value& value, const std::string& topic,
                                               const Bundle& bundle, std::vector<LeaseInfo>& all) {
    if (value.items.size() != 2 * bundle.items.size() + 2) return false;
    for (size_t i = 0; i < bundle.items.size(); ++i) {
      const resp::Value& attempts = value.items[2 * i + 2];
      const uint32_t place = bundle.items[i];
      if (attempts.type != resp::Value::Type::kInteger) continue;
      all[place] = {topic, texts[place], value.items[2 * i + 3].text,
                    static_cast<uint32_t>(attempts.integer)};
    }
    return true;
  };
  send_leases(
      redis::scripts::kInspect, now, leases, *gather, kNoNumbers,
      [](Arguments&, const LeaseRef&, uint32_t) {}, read, redis::Share::kTwoEach);
  gather->close(answers_);
}

}  // namespace delayq
