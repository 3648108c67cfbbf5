#include <algorithm>
#include <deque>
#include <set>

#include <fmt/format.h>

#include "core/text.h"
#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"

namespace delayq {

// Schedules. All keys of a schedule and of its jobs are in one shard, so a turn is one script (ADR 26).

using redis::Arguments;
using redis::Bundle;
using redis::Gather;

namespace {

/// In one call: a script that runs is all that Redis does, and a turn is several times the work of a push.
constexpr size_t kTurnsPerCall = 64;
constexpr size_t kTurnWords = 3;      ///< that turn.lua says of each
constexpr size_t kScheduleWords = 3;  ///< that scripts say of each schedule: name, changing part, definition
constexpr uint32_t kSchedulesPerCall = 1'000;
constexpr uint64_t kScheduleBytesPerCall = uint64_t{4} << 20;

size_t bytes_of(const TurnRequest& request) {
  size_t bytes = request.progress.size() + request.progress_if_skipped.size();
  if (request.definition) bytes += request.definition->size();
  if (request.job) bytes += request.job->body.size() + request.job->options.size();
  return bytes;
}

void add_turn(Arguments& arguments, const TurnRequest& request, Moment now) {
  arguments.view(request.name).number(request.expected).number(request.revision).moment(request.next);
  arguments.view(request.definition ? "1" : "").view(request.definition.value_or(""));
  arguments.view(request.progress).view(request.progress_if_skipped);
  arguments.number(static_cast<uint32_t>(request.overlap));
  const JobRef previous = request.previous.value_or(JobRef{});
  arguments.view(previous.topic).view(previous.id);
  if (!request.job) {
    for (int i = 0; i < 6; ++i) arguments.view({});
    return;
  }
  const NewJob& job = *request.job;
  const redis::RecordPieces record = redis::write_new_job(job, now, arguments.storage());
  arguments.view(job.topic).view(job.id).view(record.before).view(record.after).moment(job.due);
  arguments.view(job.group);
}

/// Reads the schedules that a script says from that place on. A damaged one has no revision, and an empty
/// progress: the queue shows it as unreadable. False: what the script says makes no sense.
bool read_schedules(const resp::Value& answer, size_t first, auto& schedules) {
  if (answer.items.size() < first || (answer.items.size() - first) % kScheduleWords != 0) return false;
  for (size_t i = first; i < answer.items.size(); i += kScheduleWords) {
    StoredSchedule schedule;
    schedule.name = answer.items[i].text;
    schedule.definition = answer.items[i + 2].text;
    if (!redis::read_turn(answer.items[i + 1].text, schedule)) {
      schedule.revision = 0;
      schedule.progress.clear();
      schedule.next = kNever;
    }
    schedules.push_back(std::move(schedule));
  }
  return true;
}

/// What an operator has to know of it.
std::string damaged_schedule(std::string_view key, std::string_view name) {
  return fmt::format("the schedule {} is damaged: remove its field {} of the key {} (HDEL) and set it again",
                     quote(name), quote(name), key);
}

}  // namespace

bool RedisEngine::note_alarm(uint32_t shard, const resp::Value& answer) {
  if (answer.type != resp::Value::Type::kArray || answer.items.size() < 3) return false;
  if (!note_topics(shard, answer)) return false;
  driving_.set_alarm(shard, redis::read_moment(answer.items[2].text));
  return true;
}

// ---- turns

void RedisEngine::turn(Moment now, std::span<const TurnRequest> requests,
                       Reply<std::vector<TurnAnswer>> reply) {
  if (!keys_.has_schedules()) {
    return answer<std::vector<TurnAnswer>>(
        reply, Error{ErrorCode::kUnavailable,
                     "schedule",
                     fmt::format("the jobs under the prefix \"{}\" are in {} shards of an earlier layout, "
                                 "which has no place for schedules: export them, and import them with "
                                 "another {}",
                                 options_.prefix, keys_.shards(), options_.prefix_name),
                     {}});
  }
  auto gather =
      Gather<std::vector<TurnAnswer>>::make(std::vector<TurnAnswer>(requests.size()), std::move(reply));
  const auto where = [this](const TurnRequest& request) {
    return std::pair(keys_.shard_of_schedule(request.name), std::string_view{});
  };
  for (const Bundle& bundle : redis::make_bundles(requests, where, bytes_of, false, kTurnsPerCall)) {
    Arguments arguments = arguments_for(now, bundle.shard, {});
    std::set<std::string> topics;
    for (const uint32_t item : bundle.items) {
      add_turn(arguments, requests[item], now);
      if (requests[item].job) expect_delayed(now, bundle.shard, requests[item].job->due);
      if (!requests[item].job || requests[item].job->due > now) continue;
      expect_ready(bundle.shard, requests[item].job->topic);
      topics.emplace(requests[item].job->topic);
    }
    auto read =
        gather->expect([this, shard = bundle.shard, items = bundle.items](resp::Value& value, auto& all) {
          return read_turns(shard, items, value, all);
        });
    run(redis::scripts::kTurn, keys_.schedules(bundle.shard).all(), arguments,
        [this, topics = std::move(topics), read = std::move(read)](Result<resp::Value> value) mutable {
          if (!value.ok()) {
            for (const std::string& topic : topics) note_asked(topic);
          }
          read(std::move(value));
        });
  }
  gather->close(answers_);
}

Status RedisEngine::read_turns(uint32_t shard, const std::vector<uint32_t>& items, const resp::Value& answer,
                               std::vector<TurnAnswer>& all) {
  constexpr size_t kFirst = 3;
  if (!note_alarm(shard, answer) || answer.items.size() != kFirst + items.size() * kTurnWords)
    return not_understood("turn");
  Status status;
  for (size_t i = 0; i < items.size(); ++i) {
    const resp::Value* said = &answer.items[kFirst + i * kTurnWords];
    if (said[0].integer < 0) {
      // Of this one nothing happened; the others are as they are.
      const std::string& tag = keys_.layout().tags[shard];
      status = heard(Error{ErrorCode::kInvalid, "turn", said[1].text, {}},
                     {"turn", tag, {}, options_.prefix, options_.prefix_name})
                   .error();
      continue;
    }
    all[items[i]] = {static_cast<TurnOutcome>(said[0].integer), static_cast<PushOutcome>(said[1].integer),
                     said[2].integer != 0};
  }
  return status;
}

// ---- looking at them

void RedisEngine::get_schedule(Moment now, std::string_view name,
                               Reply<std::optional<StoredSchedule>> reply) {
  const uint32_t shard = keys_.shard_of_schedule(name);
  Arguments arguments = arguments_for(now, shard, {});
  arguments.text(name);
  auto gather = Gather<std::optional<StoredSchedule>>::make(std::nullopt, std::move(reply));
  run(redis::scripts::kSchedule, keys_.schedules(shard).all(), arguments,
      gather->expect([name = std::string(name), key = keys_.in_shard(shard, "turn")](
                         resp::Value& value, std::optional<StoredSchedule>& found) -> Status {
        if (value.items.empty()) return {};
        if (value.items.size() != 2) return not_understood("schedule");
        StoredSchedule schedule;
        if (!redis::read_turn(value.items[0].text, schedule))
          return Error{ErrorCode::kCorrupt, "schedule", damaged_schedule(key, name), {}};
        schedule.name = name;
        schedule.definition = std::move(value.items[1].text);
        found = std::move(schedule);
        return {};
      }));
  gather->close(answers_);
}

/// A page that is merged by name from what the shards have.
struct RedisEngine::ScheduleListing {
  /// What a shard has said that is not in the page yet. It has more behind that, unless it is done.
  struct Source {
    std::deque<StoredSchedule> found;
    std::string after;
    bool is_done = false;
  };

  Moment now{};
  uint32_t limit = 0;
  uint64_t max_bytes = 0;
  Reply<SchedulePage> reply;
  std::vector<Source> sources;  ///< by shard
  SchedulePage page;
  uint64_t bytes = 0;  ///< of the page
  size_t calls = 0;    ///< not answered yet
  std::optional<Error> error;

  bool is_full() const { return page.schedules.size() >= limit || bytes >= max_bytes; }
  bool has_more() const {
    return std::any_of(sources.begin(), sources.end(),
                       [](const Source& source) { return !source.found.empty() || !source.is_done; });
  }

  /// Moves the first of all into the page. False: there is none.
  bool take_first() {
    Source* first = nullptr;
    for (Source& source : sources) {
      if (source.found.empty()) continue;
      if (first == nullptr || source.found.front().name < first->found.front().name) first = &source;
    }
    if (first == nullptr) return false;
    bytes += first->found.front().definition.size() + first->found.front().progress.size();
    page.schedules.push_back(std::move(first->found.front()));
    first->found.pop_front();
    return true;
  }
};

void RedisEngine::list_schedules(Moment now, const ScheduleListRequest& request, Reply<SchedulePage> reply) {
  auto listing = std::make_shared<ScheduleListing>();
  listing->now = now;
  listing->limit = request.limit;
  listing->max_bytes = request.max_bytes;
  listing->reply = std::move(reply);
  listing->sources.resize(keys_.shards());
  for (ScheduleListing::Source& source : listing->sources) source.after = request.after;
  for (uint32_t shard = 0; shard < keys_.shards(); ++shard) ask_for_schedules(listing, shard);
}

void RedisEngine::ask_for_schedules(const std::shared_ptr<ScheduleListing>& listing, uint32_t shard) {
  // Each shard gets its part of the bytes, so that hardly more is read than the page can have.
  const uint64_t part = (listing->max_bytes - listing->bytes) / keys_.shards();
  Arguments arguments = arguments_for(listing->now, shard, {});
  arguments.text(listing->sources[shard].after);
  arguments.number(std::min<size_t>(listing->limit - listing->page.schedules.size(), kSchedulesPerCall));
  arguments.number(std::clamp<uint64_t>(part, 1, kScheduleBytesPerCall));
  ++listing->calls;
  run(redis::scripts::kSchedules, keys_.schedules(shard).all(), arguments,
      [this, listing, shard](const Result<resp::Value>& answer) {
        ScheduleListing::Source& source = listing->sources[shard];
        if (!answer.ok()) {
          listing->error = answer.error();
        } else if (!read_schedules(*answer, 1, source.found)) {
          listing->error = not_understood("schedules");
        } else if (const std::string& last = answer->items[0].text; last.empty() || last > source.after) {
          source.after = last;
          source.is_done = last.empty();
        } else {
          listing->error = not_understood("schedules");  // it would be asked for ever
        }
        if (--listing->calls == 0) list_schedules_next(listing);
      });
}

void RedisEngine::list_schedules_next(const std::shared_ptr<ScheduleListing>& listing) {
  while (!listing->error && !listing->is_full()) {
    // The first of all is known when each shard has said its first.
    for (uint32_t shard = 0; shard < keys_.shards(); ++shard) {
      const ScheduleListing::Source& source = listing->sources[shard];
      if (source.found.empty() && !source.is_done) ask_for_schedules(listing, shard);
    }
    if (listing->calls > 0) return;
    if (!listing->take_first()) break;
  }
  if (listing->error) return listing->reply(std::move(*listing->error));
  listing->page.has_more = listing->has_more();
  listing->reply(std::move(listing->page));
}

// ---- running

void RedisEngine::look_at_schedules(uint32_t shard) {
  Arguments arguments = arguments_for(driving_.round_time(shard), shard, {});
  arguments.number(kDueSchedules).number(kDueScheduleBytes).number(kDueScheduleReminder.count());
  driving_.add_call(shard);
  run(redis::scripts::kAlarm, keys_.schedules(shard).all(), arguments,
      [this, shard](const Result<resp::Value>& answer) {
        // What is lost here is reported again: Redis was told to remind.
        if (!answer.ok() || !note_alarm(shard, *answer)) {
          driving_.note_failed(shard);
        } else {
          std::vector<StoredSchedule> due;
          if (!read_schedules(*answer, 3, due)) due.clear();
          const auto is_damaged = [this, shard](const StoredSchedule& schedule) {
            if (schedule.revision != 0) return false;
            problem_ = damaged_schedule(keys_.in_shard(shard, "turn"), schedule.name);
            return true;
          };
          std::erase_if(due, is_damaged);
          if (!due.empty()) due_schedules_.push_back(std::move(due));
        }
        end_call(shard);
      });
}

void RedisEngine::mend_schedules(Moment now, uint32_t shard, std::string_view from) {
  Arguments arguments = arguments_for(now, shard, {});
  arguments.text(from).number(kSchedulesPerCall).number(kScheduleBytesPerCall);
  run(redis::scripts::kMendSchedules, keys_.schedules(shard).all(), arguments,
      [this, now, shard, is_first = from.empty()](const Result<resp::Value>& answer) {
        if (!answer.ok() || answer->items.size() != 6 || !note_alarm(shard, *answer)) return;
        mended_schedules_ += static_cast<uint64_t>(answer->items[4].integer);
        const std::string& next = answer->items[3].text;
        // One server is enough, and what no walk mends is not walked through all the time.
        if (next.empty() || !driving_.is_mine(shard)) return;
        if (is_first && !begins_mending(now, shard, {})) return;
        mend_schedules(now, shard, next);
      });
}

}  // namespace delayq
