// How much there is: figures that are asked for now and then, so that usage() need not wait for them.
#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"
#include "resp/value.h"

namespace delayq {

using redis::Arguments;

namespace {

/// For each call to a shard that it takes to have them: the figures of very many topics are asked for less
/// often, so that they cost Redis about the same.
constexpr Millis kFreshFor{1'000};
constexpr uint32_t kMeasuredPerCall = 1'000;

uint64_t to_number(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Whether a Redis of that INFO answers with OOM to who would store something.
bool is_out_of_memory(std::string_view info) {
  const uint64_t most = to_number(resp::info_line(info, "maxmemory"));
  const uint64_t used = to_number(resp::info_line(info, "used_memory"));
  const uint64_t uncounted = to_number(resp::info_line(info, "mem_not_counted_for_evict"));
  // The others evict keys instead; those of jobs never expire, so "volatile" finds none.
  const bool evicts = resp::info_line(info, "maxmemory_policy").starts_with("allkeys");
  return most != 0 && !evicts && used > most + uncounted;
}

}  // namespace

/// One asking. All shards are walked through in step, topic by topic in the order of their names, since a
/// topic may be in several of them.
struct RedisEngine::Measuring {
  uint64_t number = 0;
  Reply<bool> reply;
  std::string after;  ///< all topics up to this one are counted

  // Of one step.
  size_t calls = 0;
  std::map<std::string, uint64_t, std::less<>> jobs;
  std::optional<std::string> known_to;  ///< beyond this name some shard has more than it said
  std::optional<Error> error;

  std::map<std::string, uint64_t, std::less<>> memory;  ///< by server: several shards may be on one
  bool is_full = false;                                 ///< one of them takes no new jobs
  uint64_t jobs_so_far = 0;
  uint64_t topics_so_far = 0;
  uint32_t steps = 0;

  void read_sizes(const resp::Value& answer) {
    if (answer.items.size() % 2 != 1) {
      error = not_understood("sizes");
      return;
    }
    for (size_t i = 1; i + 1 < answer.items.size(); i += 2)
      jobs[answer.items[i].text] += static_cast<uint64_t>(answer.items[i + 1].integer);
    const std::string& last = answer.items[0].text;
    if (!last.empty() && (!known_to || last < *known_to)) known_to = last;
  }

  /// Counts what all shards have told of. Answers whether that was all there is.
  bool finish_step() {
    for (const auto& [topic, count] : jobs) {
      if (known_to && topic > *known_to) break;
      jobs_so_far += count;
      topics_so_far += count > 0 ? 1 : 0;
    }
    jobs.clear();
    if (!known_to) return true;
    after = std::move(*known_to);
    known_to.reset();
    return false;
  }

  EngineUsage usage() const {
    EngineUsage usage;
    usage.jobs = jobs_so_far;
    usage.topics = topics_so_far;
    for (const auto& [server, bytes] : memory) usage.memory_bytes += bytes;
    return usage;
  }
};

void RedisEngine::refresh_usage(Moment now) {
  // A clock that was set back does not make the figures fresh for longer.
  const bool is_fresh = now >= usage_asked_ && now - usage_steps_ * kFreshFor < usage_asked_;
  // One walk at a time: through very many topics it takes longer.
  if (is_fresh || measured_ != measurings_) return;
  usage_asked_ = now;
  measure([](const Result<bool>&) {});
}

void RedisEngine::measure(Reply<bool> reply) {
  auto measuring = std::make_shared<Measuring>();
  measuring->number = ++measurings_;
  measuring->reply = std::move(reply);
  for (uint32_t shard = 0; shard < keys_.shards(); ++shard) {
    ++measuring->calls;
    call(keys_.in_shard(shard, "topics"), {"INFO"}, [this, measuring](const Result<resp::Value>& answer) {
      if (answer.ok()) {
        measuring->memory[std::string(resp::info_line(answer->text, "run_id"))] =
            to_number(resp::info_line(answer->text, "used_memory"));
        measuring->is_full |= is_out_of_memory(answer->text);
      }
      if (--measuring->calls == 0) measure_next(measuring);
    });
  }
}

void RedisEngine::measure_next(const std::shared_ptr<Measuring>& measuring) {
  ++measuring->steps;
  for (uint32_t shard = 0; shard < keys_.shards(); ++shard) {
    Arguments arguments = arguments_for(Moment{}, shard, {});
    arguments.text(measuring->after).number(kMeasuredPerCall);
    ++measuring->calls;
    run(redis::scripts::kSizes, shard_keys(shard).all(), arguments,
        [this, measuring](const Result<resp::Value>& answer) {
          if (answer.ok()) {
            measuring->read_sizes(*answer);
          } else {
            measuring->error = answer.error();
          }
          if (--measuring->calls > 0) return;
          if (!measuring->error && !measuring->finish_step()) return measure_next(measuring);
          const bool is_latest = measuring->number > measured_;
          measured_ = std::max(measured_, measuring->number);
          if (measuring->error) return measuring->reply(std::move(*measuring->error));
          if (is_latest) {
            usage_ = measuring->usage();
            is_out_of_memory_ = measuring->is_full;
            usage_steps_ = measuring->steps;
          }
          measuring->reply(true);
        });
  }
}

EngineUsage RedisEngine::usage() const {
  EngineUsage usage = usage_;
  usage.disk_free = std::numeric_limits<uint64_t>::max();
  return usage;
}

CommitFigures RedisEngine::commits() const { return {}; }

void RedisEngine::flush(Reply<bool> reply) {
  // Redis answers in order, so the figures come after all that was asked before; it has made durable by then
  // what it makes durable before it answers.
  measure(std::move(reply));
}

}  // namespace delayq
