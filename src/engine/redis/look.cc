#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "engine/redis/lease.h"
#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"
#include "engine/redis/topic_rows.h"
#include "resp/value.h"

namespace delayq {

// ---- get, locate

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
  run(redis::scripts::kGet, keys.all(), arguments,
      [this, shard, topic = std::string(job.topic), id = std::string(job.id),
       reply = std::move(reply)](const Result<resp::Value>& value) mutable {
        if (!value.ok()) return reply(value.error());
        if (value->items.empty()) return reply(std::optional<FoundJob>());
        const auto record =
            value->items.size() == 2 ? redis::read_record(value->items[1].text) : std::nullopt;
        if (!record) return reply(not_understood("get"));
        auto found = std::make_shared<FoundJob>();
        found->job = redis::copy_job(*record, topic, id, true, found->storage);
        found->job.state = static_cast<JobState>(value->items[0].integer);
        if (record->state == JobState::kReserved)
          found->lease = found->storage.copy(redis::lease_text({shard, record->lease, record->nonce}));
        if (!record->cold) return reply(std::optional(std::move(*found)));
        fetch_bodies({{&found->job, *record->cold}}, found->storage,
                     [found, reply = std::move(reply)](const Status& status) mutable {
                       if (!status.ok()) return reply(status.error());
                       reply(std::optional(std::move(*found)));
                     });
      });
}

/// Look-ups of bodies for one verb.
struct RedisEngine::Bodies {
  size_t open = 0;
  std::optional<Error> error;
  absl::AnyInvocable<void(Status)> done;

  void end_one() {
    if (--open > 0) return;
    if (error) return done(std::move(*error));
    done({});
  }
};

void RedisEngine::fetch_bodies(const std::vector<ColdJob>& jobs, Arena& storage,
                               absl::AnyInvocable<void(Status)> done) {
  if (cold_ == nullptr) {
    return done(Error{ErrorCode::kUnavailable, "get",
                      "the body of this job is in Kafka, and this server does not use it: set "
                      "server.engine = \"kafka\""});
  }
  auto bodies = std::make_shared<Bodies>();
  bodies->open = 1;
  bodies->done = std::move(done);
  for (const ColdJob& each : jobs) {
    ++bodies->open;
    cold_->fetch(each.body, std::string(each.job->topic), std::string(each.job->id),
                 [bodies, &storage, job = each.job](const Result<std::string>& body) {
                   if (body.ok()) {
                     job->body = storage.copy(*body);
                   } else {
                     bodies->error = Error{ErrorCode::kUnavailable, "get", body.error().detail};
                   }
                   bodies->end_one();
                 });
  }
  bodies->end_one();
}

struct RedisEngine::Locating {
  Moment now{};
  uint32_t shard = 0;
  std::string id;
  Among among = Among::kLive;
  std::string after;  ///< the last topic that was searched
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

// ---- list

using redis::Arguments;
using redis::ListCursor;

namespace {

// Bounds of one call: while a script runs, Redis does nothing else.
constexpr uint32_t kJobsPerCall = 1'000;
constexpr uint32_t kBytesPerCall = 4U << 20;
constexpr size_t kPlaceWords = 3;

}  // namespace

struct RedisEngine::Listing {
  Moment now{};
  std::string topic;
  JobState state{};
  std::string id_prefix;
  std::string outcome_contains;
  DueWindow due;
  uint32_t limit = 0;
  bool with_bodies = false;
  Reply<JobPage> reply;
  ListCursor cursor;
  JobPage page;
  size_t bytes = 0;                        ///< of the records in it, with bodies in the cold store
  std::map<size_t, redis::ColdBody> cold;  ///< by position in the page

  /// Adds the reply of a shard. Returns false if it is malformed.
  bool read(const resp::Value& answer) {
    const std::vector<resp::Value>& said = answer.items;
    if (said.size() < 3 || said.size() % 2 == 0) return false;
    for (size_t i = 3; i + 1 < said.size(); i += 2) {
      const std::optional<redis::Record> record = redis::read_record(said[i + 1].text);
      if (!record) return false;
      page.jobs.push_back(redis::copy_job(*record, topic, said[i].text, with_bodies, page.storage));
      page.jobs.back().state = state;
      bytes += said[i + 1].text.size();
      if (!with_bodies || !record->cold) continue;
      cold[page.jobs.size() - 1] = *record->cold;
      bytes += record->cold->bytes;
    }
    cursor.place.clear();
    for (const resp::Value& word : said[2].items)
      cursor.place.push_back(word.type == resp::Value::Type::kInteger ? std::to_string(word.integer)
                                                                      : word.text);
    return true;
  }
};

void RedisEngine::list(Moment now, const ListRequest& request, Reply<JobPage> reply) {
  std::optional<ListCursor> cursor = ListCursor{};
  if (!request.cursor.empty()) cursor = redis::read_cursor(request.cursor, request.state, keys_.shards());
  if (!cursor) {
    return answer<JobPage>(
        reply,
        in_verb("list", invalid("cursor", "cursor: not a cursor of this listing; start again without one")));
  }
  auto listing = std::make_shared<Listing>();
  listing->now = now;
  listing->topic = request.topic;
  listing->state = request.state;
  listing->id_prefix = request.id_prefix;
  listing->outcome_contains = request.outcome_contains;
  listing->due = request.due;
  listing->limit = request.limit;
  listing->with_bodies = request.with_bodies;
  listing->reply = std::move(reply);
  listing->cursor = std::move(*cursor);
  list_next(listing);
}

void RedisEngine::list_next(const std::shared_ptr<Listing>& listing) {
  const uint32_t shard = listing->cursor.shard;
  const redis::TopicKeys keys = keys_.topic(shard, listing->topic);
  Arguments arguments = arguments_for(listing->now, shard, listing->topic);
  arguments.number(static_cast<int>(listing->state)).number(listing->limit - listing->page.jobs.size());
  arguments.number(listing->with_bodies ? 1 : 0).text(listing->id_prefix).text(listing->outcome_contains);
  arguments.number(kJobsPerCall).number(kBytesPerCall);
  for (size_t i = 0; i < kPlaceWords; ++i) {
    arguments.text(i < listing->cursor.place.size() ? std::string_view(listing->cursor.place[i])
                                                    : std::string_view{});
  }
  if (!listing->due.is_all()) arguments.moment(listing->due.from).moment(listing->due.before);
  run(redis::scripts::kList, keys.all(), arguments,
      [this, listing, shard](const Result<resp::Value>& answer) {
        if (!answer.ok()) return listing->reply(answer.error());
        if (!note(shard, listing->topic, *answer) || !listing->read(*answer))
          return listing->reply(not_understood("list"));
        ListCursor& cursor = listing->cursor;
        const bool is_shard_done = cursor.place.empty();
        if (is_shard_done && ++cursor.shard == keys_.shards()) return finish_listing(listing);
        // The same bound applies to a page: with a nearly empty shard before, it is not much larger.
        const bool has_room = listing->page.jobs.size() < listing->limit && listing->bytes < kBytesPerCall;
        if (is_shard_done && has_room) return list_next(listing);
        listing->page.cursor = redis::write_cursor(listing->state, cursor);
        finish_listing(listing);
      });
}

void RedisEngine::finish_listing(const std::shared_ptr<Listing>& listing) {
  if (listing->cold.empty()) return listing->reply(std::move(listing->page));
  std::vector<ColdJob> jobs;
  for (const auto& [place, body] : listing->cold) jobs.push_back({&listing->page.jobs[place], body});
  fetch_bodies(jobs, listing->page.storage, [listing](const Status& status) {
    if (!status.ok()) return listing->reply(status.error());
    listing->reply(std::move(listing->page));
  });
}

// ---- counts, topics, forecast

using redis::Arguments;
using redis::Gather;
using redis::TopicRows;

namespace {

/// How many due jobs of a topic may become ready, or be removed, before it is counted.
constexpr uint32_t kCaughtUp = 100;
constexpr uint32_t kListedPerCall = 200;
/// Bins times topics in one call.
constexpr uint32_t kBinsPerCall = 2'000;

}  // namespace

bool RedisEngine::note_topics(uint32_t shard, const resp::Value& answer) {
  if (answer.items.size() < 2) return false;
  note_next(shard, answer.items[0]);
  const std::vector<resp::Value>& told = answer.items[1].items;
  for (size_t i = 0; i + 1 < told.size(); i += 2) {
    if ((told[i + 1].integer & 1) != 0) note_ready(shard, told[i].text, Outlet::kTopic);
    if ((told[i + 1].integer & 2) != 0) note_ready(shard, told[i].text, Outlet::kCallback);
  }
  return true;
}

void RedisEngine::counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) {
  if (topic.empty()) {
    auto all = Gather<TopicCounts>::make({}, std::move(reply));
    for (uint32_t shard = 0; shard < keys_.shards(); ++shard) count_next(now, shard, {}, all);
    return all->close(answers_);
  }
  auto rows = Gather<TopicRows>::make(
      {}, [reply = std::move(reply), topic = std::string(topic)](const Result<TopicRows>& summed) mutable {
        if (!summed.ok()) return reply(summed.error());
        reply(summed->counts_of(topic));
      });
  for (uint32_t shard = 0; shard < keys_.shards(); ++shard) {
    Arguments arguments = arguments_for(now, shard, topic);
    arguments.number(kCaughtUp);
    run(redis::scripts::kCounts, keys_.topic(shard, topic).all(), arguments,
        rows->expect([this, shard, topic = std::string(topic)](resp::Value& value, TopicRows& sum) -> Status {
          if (!note(shard, topic, value) || !sum.add(topic, value, 2)) return not_understood("counts");
          return {};
        }));
  }
  rows->close(answers_);
}

void RedisEngine::count_next(Moment now, uint32_t shard, std::string_view after,
                             std::shared_ptr<Gather<TopicCounts>> gather) {
  Arguments arguments = arguments_for(now, shard, {});
  arguments.text(after).number(kListedPerCall).number(kCaughtUp);
  Gather<TopicCounts>& all = *gather;
  run(redis::scripts::kTopics, shard_keys(shard).all(), arguments,
      all.expect(
          [this, now, shard, gather = std::move(gather)](resp::Value& value, TopicCounts& sum) -> Status {
            TopicRows rows;
            if (!note_topics(shard, value) || !rows.add_all(value)) return not_understood("topics");
            rows.add_to(sum);
            const std::string_view last = value.items[2].text;
            if (!last.empty()) count_next(now, shard, last, gather);
            return {};
          }));
}

void RedisEngine::topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicPage> reply) {
  const uint32_t most = std::min(limit, kListedPerCall);
  if (most == 0) return answer<TopicPage>(reply, TopicPage{});
  auto rows =
      Gather<TopicRows>::make({}, [reply = std::move(reply), most](const Result<TopicRows>& merged) mutable {
        if (!merged.ok()) return reply(merged.error());
        reply(merged->page(most));
      });
  for (uint32_t shard = 0; shard < keys_.shards(); ++shard) {
    Arguments arguments = arguments_for(now, shard, {});
    arguments.text(cursor).number(most).number(options_.only_looks ? 0 : kCaughtUp);
    run(redis::scripts::kTopics, shard_keys(shard).all(), arguments,
        rows->expect([this, shard](resp::Value& value, TopicRows& merged) -> Status {
          if (!note_topics(shard, value) || !merged.add_all(value)) return not_understood("topics");
          return {};
        }));
  }
  rows->close(answers_);
}

struct RedisEngine::Forecasting {
  Moment now{};
  std::string topic;
  std::vector<Moment> edges;
  uint32_t topics_per_call = 1;
};

void RedisEngine::forecast(Moment now, const ForecastRequest& request, Reply<Forecast> reply) {
  Forecast empty;
  empty.bins.resize(request.bins);
  if (request.bins == 0 || request.from >= request.to) return answer<Forecast>(reply, std::move(empty));
  auto forecasting = std::make_shared<Forecasting>();
  forecasting->now = now;
  forecasting->topic = request.topic;
  forecasting->topics_per_call = std::clamp(kBinsPerCall / request.bins, 1U, kListedPerCall);
  // The bin of a time is its distance from the start, times the number of bins, divided by the span.
  const auto span = static_cast<uint64_t>((request.to - request.from).count());
  for (uint64_t bin = 0; bin <= request.bins; ++bin) {
    const uint64_t offset = (span * bin + request.bins - 1) / request.bins;
    forecasting->edges.push_back(request.from + Millis{static_cast<int64_t>(offset)});
  }
  auto gather = Gather<Forecast>::make(std::move(empty), std::move(reply));
  for (uint32_t shard = 0; shard < keys_.shards(); ++shard) forecast_next(forecasting, shard, {}, gather);
  gather->close(answers_);
}

void RedisEngine::forecast_next(const std::shared_ptr<Forecasting>& forecasting, uint32_t shard,
                                std::string_view after, std::shared_ptr<Gather<Forecast>> gather) {
  Arguments arguments = arguments_for(forecasting->now, shard, forecasting->topic);
  arguments.text(after).number(forecasting->topics_per_call);
  for (const Moment edge : forecasting->edges) arguments.moment(edge);
  Gather<Forecast>& all = *gather;
  run(redis::scripts::kForecast, shard_keys(shard).all(), arguments,
      all.expect([this, forecasting, shard, gather = std::move(gather)](resp::Value& value,
                                                                        Forecast& sum) -> Status {
        if (value.items.size() != sum.bins.size() + 1) return not_understood("forecast");
        for (size_t bin = 0; bin < sum.bins.size(); ++bin)
          sum.bins[bin] += static_cast<uint64_t>(value.items[bin + 1].integer);
        const std::string_view last = value.items[0].text;
        if (!last.empty()) forecast_next(forecasting, shard, last, gather);
        return {};
      }));
}

// ---- usage: figures that are requested from time to time, so that usage() need not wait for them

using redis::Arguments;

namespace {

/// For each call to a shard that a request takes: with very many topics the figures are requested less often,
/// so that the cost for Redis is about the same.
constexpr Millis kFreshFor{1'000};
constexpr uint32_t kMeasuredPerCall = 1'000;

uint64_t to_number(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Whether a Redis with this INFO replies OOM to a write.
bool is_out_of_memory(std::string_view info) {
  const uint64_t most = to_number(resp::info_line(info, "maxmemory"));
  const uint64_t used = to_number(resp::info_line(info, "used_memory"));
  const uint64_t uncounted = to_number(resp::info_line(info, "mem_not_counted_for_evict"));
  // The other policies evict keys instead. Keys of jobs never expire, so "volatile" policies find none.
  const bool evicts = resp::info_line(info, "maxmemory_policy").starts_with("allkeys");
  return most != 0 && !evicts && used > most + uncounted;
}

}  // namespace

/// One request for usage figures. It walks through all shards in parallel, topic by topic in the order of
/// their names, because a topic may be in several shards.
struct RedisEngine::Measuring {
  uint64_t number = 0;
  Reply<bool> reply;
  std::string after;  ///< all topics up to this one are counted

  // Of one step.
  size_t calls = 0;
  std::map<std::string, uint64_t, std::less<>> jobs;
  std::optional<std::string> known_to;  ///< beyond this name some shard has more topics than its reply
  std::optional<Error> error;

  std::map<std::string, uint64_t, std::less<>> memory;  ///< by server: several shards may be on one
  bool is_full = false;                                 ///< one of them accepts no new jobs
  uint64_t jobs_so_far = 0;
  uint64_t topics_so_far = 0;
  uint64_t schedules = 0;
  std::optional<uint64_t> cold_bodies;
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

  /// Counts the topics that the replies of all shards cover. Returns whether these were all.
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
    usage.schedules = schedules;
    usage.cold_bodies = cold_bodies;
    for (const auto& [server, bytes] : memory) usage.memory_bytes += bytes;
    return usage;
  }
};

void RedisEngine::refresh_usage(Moment now) {
  // A clock that was set back must not keep the figures longer.
  const bool is_fresh = now >= usage_asked_ && now - usage_steps_ * kFreshFor < usage_asked_;
  // One request at a time: with very many topics it takes longer.
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
    if (cold_ != nullptr) {
      ++measuring->calls;
      const std::string cold = keys_.in_shard(shard, "cold");
      call(cold, {"GET", cold}, [this, measuring](const Result<resp::Value>& answer) {
        // Below 0 when somebody deleted the key.
        const uint64_t bodies = answer.ok() && !answer->text.starts_with('-') ? to_number(answer->text) : 0;
        measuring->cold_bodies = measuring->cold_bodies.value_or(0) + bodies;
        if (--measuring->calls == 0) measure_next(measuring);
      });
    }
    if (!keys_.has_schedules()) continue;
    ++measuring->calls;
    const std::string turns = keys_.in_shard(shard, "turn");
    call(turns, {"HLEN", turns}, [this, measuring](const Result<resp::Value>& answer) {
      if (answer.ok()) measuring->schedules += static_cast<uint64_t>(answer->integer);
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
  // Redis replies in order, so the figures come after all earlier calls. By then Redis has made durable what
  // it makes durable before it replies.
  measure(std::move(reply));
}

}  // namespace delayq
