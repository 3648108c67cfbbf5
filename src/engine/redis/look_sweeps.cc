// Verbs that change jobs that nobody named: so many of a group, or of a topic and state.
#include <algorithm>
#include <map>

#include "engine/redis/list_cursor.h"
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

/// What the scripts did, in all.
struct RedisEngine::Swept {
  uint64_t jobs = 0;
  uint64_t reserved = 0;                     ///< of cancel_group: besides `jobs`
  std::map<std::string, uint64_t> by_topic;  ///< of cancel_group
};

/// Goes in rounds over the shards that have some, each with its share of what is still allowed.
struct RedisEngine::Sweep {
  Sweep(const Script& its_script, Moment when, uint32_t shard_count) : script(its_script), now(when) {
    for (uint32_t shard = 0; shard < shard_count; ++shard) shards.push_back(shard);
  }

  const Script& script;
  Moment now;
  std::string topic;                  ///< empty: the script is about many
  std::vector<std::string> more;      ///< arguments before those of the share
  uint32_t left = 0;                  ///< of what is allowed
  std::vector<std::string> patterns;  ///< of cancel_group: its topics; none for the others
  absl::AnyInvocable<void(Result<Swept>)> done;

  Swept swept;
  std::vector<uint32_t> shards;             ///< that may have some
  std::map<uint32_t, std::string> cursors;  ///< of cancel_group, by shard: where it goes on
  size_t calls = 0;                         ///< of this round, not yet answered
  std::optional<Error> error;

  void count(uint64_t jobs) { left -= static_cast<uint32_t>(std::min<uint64_t>(left, jobs)); }

  /// Reads what one shard said. False: it makes no sense.
  bool read(uint32_t shard, const resp::Value& answer) {
    const std::vector<resp::Value>& said = answer.items;
    if (!patterns.empty()) return read_group(shard, said);
    if (said.size() != 4) return false;
    swept.jobs += static_cast<uint64_t>(said[2].integer);
    count(static_cast<uint64_t>(said[2].integer));
    if (said[3].integer != 0) shards.push_back(shard);
    return true;
  }

  bool read_group(uint32_t shard, const std::vector<resp::Value>& said) {
    if (said.size() != 5 || said[2].items.size() % 2 != 0) return false;
    for (size_t i = 0; i < said[2].items.size(); i += 2) {
      const auto cancelled = static_cast<uint64_t>(said[2].items[i + 1].integer);
      swept.by_topic[std::string(said[2].items[i].text)] += cancelled;
      swept.jobs += cancelled;
      count(cancelled);
    }
    swept.reserved += static_cast<uint64_t>(said[3].integer);
    count(static_cast<uint64_t>(said[3].integer));
    if (said[4].text.empty()) return true;
    cursors[shard] = said[4].text;
    shards.push_back(shard);
    return true;
  }
};

void RedisEngine::sweep(const std::shared_ptr<Sweep>& sweep) {
  if (sweep->error) return sweep->done(std::move(*sweep->error));
  if (sweep->left == 0 || sweep->shards.empty()) return sweep->done(std::move(sweep->swept));
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
  if (!sweep->patterns.empty()) arguments.text(sweep->cursors.try_emplace(shard, "0").first->second);
  for (const std::string& each : sweep->patterns) arguments.text(each);
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

absl::AnyInvocable<void(Result<RedisEngine::Swept>)> RedisEngine::how_many(Reply<uint64_t> reply) {
  return [reply = std::move(reply)](const Result<Swept>& swept) mutable {
    if (!swept.ok()) return reply(swept.error());
    reply(swept->jobs);
  };
}

void RedisEngine::cancel_group(Moment now, const GroupCancelRequest& request,
                               Reply<GroupCancelAnswer> reply) {
  // No group is not a group.
  if (request.group.empty() || request.max == 0 || request.topics.empty())
    return answer<GroupCancelAnswer>(reply, GroupCancelAnswer{});
  auto done = [reply = std::move(reply)](Result<Swept> swept) mutable {
    if (!swept.ok()) return reply(swept.error());
    reply(GroupCancelAnswer{swept->jobs, swept->reserved, std::move(swept->by_topic)});
  };
  const auto task = std::make_shared<Sweep>(redis::scripts::kCancelGroup, now, keys_.shards());
  task->more = {std::string(request.group)};
  task->left = request.max;
  task->patterns = {request.topics.begin(), request.topics.end()};
  task->done = std::move(done);
  sweep(task);
}

void RedisEngine::redrive_oldest(Moment now, std::string_view topic, uint32_t max, Reply<uint64_t> reply) {
  if (max == 0) return answer<uint64_t>(reply, 0);
  const auto task = std::make_shared<Sweep>(redis::scripts::kRedriveOldest, now, keys_.shards());
  task->topic = std::string(topic);
  task->left = max;
  task->done = how_many(std::move(reply));
  sweep(task);
}

void RedisEngine::purge(Moment now, std::string_view topic, JobState state, uint32_t max,
                        Reply<uint64_t> reply) {
  if (max == 0) return answer<uint64_t>(reply, 0);
  const auto task = std::make_shared<Sweep>(redis::scripts::kPurge, now, keys_.shards());
  task->topic = std::string(topic);
  task->more = {std::to_string(static_cast<int>(state))};
  task->left = max;
  task->done = how_many(std::move(reply));
  sweep(task);
}

/// One shard in each call; a script can apply both bounds to it at once.
void RedisEngine::trim(Moment now, const TrimRequest& request, Reply<TrimAnswer> reply) {
  // One that is not understood leaves the walk to begin again.
  const redis::ListCursor from =
      redis::read_cursor(request.cursor, request.state, keys_.shards()).value_or(redis::ListCursor{});
  const uint32_t shard = from.shard;
  const redis::TopicKeys keys = keys_.topic(shard, request.topic);
  Arguments arguments = arguments_for(now, shard, request.topic);
  arguments.number(static_cast<uint32_t>(request.state)).number(share_of(request.count, shard));
  arguments.number(static_cast<uint64_t>(request.time.count()))
      .text(from.place.empty() ? "0" : from.place[0]);
  arguments.number(std::min(request.max, kSweptPerCall)).number(kSweptBytesPerCall);
  run(redis::scripts::kTrim, keys.all(), arguments,
      [this, shard, state = request.state, topic = std::string(request.topic),
       reply = std::move(reply)](const Result<resp::Value>& answer) mutable {
        if (!answer.ok()) return reply(answer.error());
        if (!note(shard, topic, *answer) || answer->items.size() != 4) return reply(not_understood("trim"));
        TrimAnswer trimmed;
        trimmed.forgotten = static_cast<uint64_t>(answer->items[2].integer);
        if (const std::string_view at = answer->items[3].text; !at.empty()) {
          trimmed.cursor = redis::write_cursor(state, {shard, {std::string(at)}});
        } else if (shard + 1 < keys_.shards()) {
          trimmed.cursor = redis::write_cursor(state, {shard + 1, {}});
        }
        reply(std::move(trimmed));
      });
}

}  // namespace delayq
