// Verbs that change jobs that nobody named: so many of a group, or of a topic and state.
#include <algorithm>
#include <array>

#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"

namespace delayq {

using net::redis::Script;
using redis::Arguments;

namespace {

/// In one call. A script that runs is all that Redis does.
constexpr uint32_t kSweptPerCall = 1'000;
constexpr uint32_t kSweptBytesPerCall = 4U << 20;

}  // namespace

/// Goes in rounds over the shards that have some, each with its share of what is still allowed.
struct RedisEngine::Sweep {
  const Script& script;
  Moment now{};
  std::string topic;              ///< empty: the script is about many
  std::vector<std::string> more;  ///< arguments before those of the share
  uint32_t left = 0;              ///< of what is allowed
  absl::AnyInvocable<void(Result<std::array<uint64_t, 2>>)> done;

  std::array<uint64_t, 2> counted{};  ///< what the script says besides whether there is more
  std::vector<uint32_t> shards;       ///< that may have some
  size_t calls = 0;                   ///< of this round, not yet answered
  std::optional<Error> error;

  /// Reads what one shard said. False: it makes no sense.
  bool read(uint32_t shard, const resp::Value& answer) {
    const std::vector<resp::Value>& said = answer.items;
    if (said.size() < 4 || said.size() > 5) return false;
    uint64_t sum = 0;
    for (size_t i = 2; i + 1 < said.size(); ++i) {
      counted[i - 2] += static_cast<uint64_t>(said[i].integer);
      sum += static_cast<uint64_t>(said[i].integer);
    }
    left -= static_cast<uint32_t>(std::min<uint64_t>(left, sum));
    if (said.back().integer != 0) shards.push_back(shard);
    return true;
  }
};

void RedisEngine::sweep(const std::shared_ptr<Sweep>& sweep) {
  if (sweep->error) return sweep->done(std::move(*sweep->error));
  if (sweep->left == 0 || sweep->shards.empty()) return sweep->done(sweep->counted);
  const std::vector<uint32_t> shards = std::exchange(sweep->shards, {});
  const auto count = static_cast<uint32_t>(shards.size());
  const uint32_t left = sweep->left;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t share = left / count + (i < left % count ? 1 : 0);
    if (share == 0) {
      sweep->shards.push_back(shards[i]);
    } else {
      send_share(sweep, shards[i], std::min(share, kSweptPerCall));
    }
  }
}

void RedisEngine::send_share(const std::shared_ptr<Sweep>& sweep, uint32_t shard, uint32_t share) {
  const redis::TopicKeys keys = keys_.topic(shard, sweep->topic);
  Arguments arguments = arguments_for(sweep->now, shard, sweep->topic);
  for (const std::string& each : sweep->more) arguments.text(each);
  arguments.number(share).number(kSweptBytesPerCall);
  ++sweep->calls;
  if (&sweep->script == &redis::scripts::kRedriveOldest) expect_ready(shard, sweep->topic);
  run(sweep->script, keys.all(), arguments, [this, sweep, shard](const Result<resp::Value>& answer) {
    if (!answer.ok()) {
      sweep->error = answer.error();
    } else {
      const bool is_noted =
          sweep->topic.empty() ? note_topics(shard, *answer) : note(shard, sweep->topic, *answer);
      if (!is_noted || !sweep->read(shard, *answer)) sweep->error = not_understood(sweep->script.name);
    }
    if (--sweep->calls == 0) this->sweep(sweep);
  });
}

namespace {

std::vector<uint32_t> all_of(uint32_t shards) {
  std::vector<uint32_t> all(shards);
  for (uint32_t shard = 0; shard < shards; ++shard) all[shard] = shard;
  return all;
}

/// Hands the first number on.
auto only_one(Reply<uint64_t> reply) {
  return [reply = std::move(reply)](Result<std::array<uint64_t, 2>> counted) mutable {
    if (!counted.ok()) return reply(counted.error());
    reply((*counted)[0]);
  };
}

}  // namespace

void RedisEngine::cancel_group(Moment now, std::string_view group, uint32_t max,
                               Reply<GroupCancelAnswer> reply) {
  // No group is not a group.
  if (group.empty() || max == 0) return answer<GroupCancelAnswer>(reply, GroupCancelAnswer{});
  auto done = [reply = std::move(reply)](Result<std::array<uint64_t, 2>> counted) mutable {
    if (!counted.ok()) return reply(counted.error());
    reply(GroupCancelAnswer{(*counted)[0], (*counted)[1]});
  };
  sweep(std::make_shared<Sweep>(Sweep{.script = redis::scripts::kCancelGroup,
                                      .now = now,
                                      .topic = {},
                                      .more = {std::string(group)},
                                      .left = max,
                                      .done = std::move(done),
                                      .shards = all_of(keys_.shards()),
                                      .error = {}}));
}

void RedisEngine::redrive_oldest(Moment now, std::string_view topic, uint32_t max, Reply<uint64_t> reply) {
  if (max == 0) return answer<uint64_t>(reply, 0);
  sweep(std::make_shared<Sweep>(Sweep{.script = redis::scripts::kRedriveOldest,
                                      .now = now,
                                      .topic = std::string(topic),
                                      .more = {},
                                      .left = max,
                                      .done = only_one(std::move(reply)),
                                      .shards = all_of(keys_.shards()),
                                      .error = {}}));
}

void RedisEngine::purge(Moment now, std::string_view topic, JobState state, uint32_t max,
                        Reply<uint64_t> reply) {
  if (max == 0) return answer<uint64_t>(reply, 0);
  sweep(std::make_shared<Sweep>(Sweep{.script = redis::scripts::kPurge,
                                      .now = now,
                                      .topic = std::string(topic),
                                      .more = {std::to_string(static_cast<int>(state))},
                                      .left = max,
                                      .done = only_one(std::move(reply)),
                                      .shards = all_of(keys_.shards()),
                                      .error = {}}));
}

/// By two calls: what others finish or purge in between is not known to the second.
void RedisEngine::trim(Moment now, std::string_view topic, JobState state, uint32_t keep, uint32_t max,
                       Reply<uint64_t> reply) {
  counts(now, topic,
         [this, now, topic = std::string(topic), state, keep, max,
          reply = std::move(reply)](const Result<TopicCounts>& counts) mutable {
           if (!counts.ok()) return reply(counts.error());
           const uint64_t kept = counts->of(state);
           if (kept <= keep) return reply(uint64_t{0});
           purge(now, topic, state, static_cast<uint32_t>(std::min<uint64_t>(max, kept - keep)),
                 std::move(reply));
         });
}

}  // namespace delayq
