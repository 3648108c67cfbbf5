#include <algorithm>
#include <map>

#include "engine/redis/lease.h"
#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"

namespace delayq {

// ---- restore, redrive: many jobs by their ids

using redis::Arguments;
using redis::Bundle;
using redis::Gather;

namespace {

constexpr size_t kRestoredItems = 3;

void add(Arguments& arguments, const RestoreRequest& request, uint32_t keep_count) {
  const redis::RecordPieces record = redis::write_job(request.job, request.lease, arguments.storage());
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
    for (const uint32_t item : bundle.items) {
      add(arguments, jobs[item], share_of(jobs[item].keep_count, bundle.shard));
      expect_delayed(now, bundle.shard, jobs[item].job.due);
    }
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

// ---- cancel_group, redrive_oldest, purge, trim: a number of jobs of a group, or of a topic and state

using net::redis::Script;
using redis::Arguments;

namespace {

/// In one call: while a script runs, Redis does nothing else.
constexpr uint32_t kSweptPerCall = 1'000;
constexpr uint32_t kSweptBytesPerCall = 4U << 20;

}  // namespace

/// The sum of what the scripts did.
struct RedisEngine::Swept {
  uint64_t jobs = 0;
  uint64_t reserved = 0;                     ///< for cancel_group: not included in `jobs`
  std::map<std::string, uint64_t> by_topic;  ///< for cancel_group
  std::string cursor;                        ///< for cancel_group: see write_group_cursor()
};

/// Works in rounds over the shards that may have such jobs; each gets its share of the remaining number.
struct RedisEngine::Sweep {
  Sweep(const Script& its_script, Moment when, uint32_t shard_count) : script(its_script), now(when) {
    for (uint32_t shard = 0; shard < shard_count; ++shard) shards.push_back(shard);
  }

  const Script& script;
  Moment now;
  std::string topic;                  ///< empty: the script handles many topics
  std::vector<std::string> more;      ///< arguments before the share
  uint32_t left = 0;                  ///< how many jobs may still be changed
  std::vector<std::string> patterns;  ///< for cancel_group: its topics; otherwise empty
  absl::AnyInvocable<void(Result<Swept>)> done;

  Swept swept;
  std::vector<uint32_t> shards;  ///< may have such jobs
  redis::GroupCursor cursors;    ///< for cancel_group, by shard: where to continue
  size_t calls = 0;              ///< calls of this round without a reply
  std::optional<Error> error;

  void count(uint64_t jobs) { left -= static_cast<uint32_t>(std::min<uint64_t>(left, jobs)); }

  /// Adds the reply of one shard. Returns false if it is malformed.
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
  if (sweep->left == 0 || sweep->shards.empty()) {
    sweep->swept.cursor = redis::write_group_cursor(sweep->shards, sweep->cursors);
    return sweep->done(std::move(sweep->swept));
  }
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
  // An empty name means no group.
  if (request.group.empty() || request.max == 0 || request.topics.empty())
    return answer<GroupCancelAnswer>(reply, GroupCancelAnswer{});
  auto done = [reply = std::move(reply)](Result<Swept> swept) mutable {
    if (!swept.ok()) return reply(swept.error());
    reply(GroupCancelAnswer{swept->jobs, swept->reserved, std::move(swept->by_topic),
                            std::move(swept->cursor)});
  };
  const auto task = std::make_shared<Sweep>(redis::scripts::kCancelGroup, now, keys_.shards());
  task->more = {std::string(request.group)};
  task->left = request.max;
  task->patterns = {request.topics.begin(), request.topics.end()};
  task->done = std::move(done);
  if (auto places = redis::read_group_cursor(request.cursor, keys_.shards()); places && !places->empty()) {
    task->shards.clear();
    for (const auto& [shard, place] : *places) task->shards.push_back(shard);
    task->cursors = std::move(*places);
  }
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

/// Each call trims one shard; the script applies both bounds to it.
void RedisEngine::trim(Moment now, const TrimRequest& request, Reply<TrimAnswer> reply) {
  // With an invalid cursor the walk starts again.
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

// ---- settings, backup

using redis::Arguments;
using redis::Gather;

void RedisEngine::call(std::string_view key, std::initializer_list<std::string_view> words,
                       net::redis::Answer answer) {
  if (refused_) {
    answers_.push_back(
        [refused = *refused_, answer = std::move(answer)]() mutable { answer(std::move(refused)); });
    return;
  }
  client_.call(key, words,
               [this, alive = std::weak_ptr(alive_), name = std::string(key),
                answer = std::move(answer)](Result<resp::Value> value) mutable {
                 if (!alive.expired())
                   answer(heard(std::move(value), {{}, {}, name, options_.prefix, options_.prefix_name}));
               });
}

void RedisEngine::store_settings(std::string_view topic, std::string_view settings, Reply<bool> reply) {
  const std::string notes = keys_.shared("settings");
  const std::string_view key = notes;
  Arguments arguments;
  arguments.number(0).text(topic).text(channel_).text(options_.server).text(settings);
  auto gather = Gather<bool>::make(true, std::move(reply));
  run(redis::scripts::kSettings, {&key, 1}, arguments,
      gather->expect([](resp::Value&, bool&) -> Status { return {}; }));
  gather->close(answers_);
}

/// Reads the settings in pieces. An entry may come twice.
struct RedisEngine::Loading {
  std::map<std::string, std::string> notes;
  Reply<std::vector<TopicSettings>> reply;
};

void RedisEngine::load_settings(Reply<std::vector<TopicSettings>> reply) {
  load_next(std::make_shared<Loading>(Loading{{}, std::move(reply)}), "0");
}

void RedisEngine::load_next(const std::shared_ptr<Loading>& loading, std::string_view from) {
  const std::string notes = keys_.shared("settings");
  call(notes, {"HSCAN", notes, from, "COUNT", "500"}, [this, loading](const Result<resp::Value>& answer) {
    if (!answer.ok()) return loading->reply(answer.error());
    if (answer->items.size() != 2 || answer->items[0].text.empty())
      return loading->reply(not_understood("HSCAN"));
    const std::vector<resp::Value>& found = answer->items[1].items;
    for (size_t i = 0; i + 1 < found.size(); i += 2) loading->notes[found[i].text] = found[i + 1].text;
    const std::string& next = answer->items[0].text;
    if (next != "0") return load_next(loading, next);
    std::vector<TopicSettings> all;
    for (auto& [topic, settings] : loading->notes) all.push_back({topic, std::move(settings)});
    loading->reply(std::move(all));
  });
}

void RedisEngine::backup(std::string_view name, Reply<BackupReport> reply) {
  (void)name;
  answer<BackupReport>(reply,
                       Error{ErrorCode::kUnavailable, "backup",
                             "the jobs are in Redis, which makes its own copies (BGSAVE); or use export"});
}

}  // namespace delayq
