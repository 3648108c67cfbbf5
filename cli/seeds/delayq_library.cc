// The library delayq: for each topic the hash `delayq:jp:<topic>` of jobs as JSON, the zset
// `delayq:dq:<topic>` of ids by the second at which they are due, the list `delayq:rq:<topic>` of those that
// are, and the set `delayq:process:<topic>` of those that are being worked on. Its older versions call the
// first three `delayQ_job_pool_<topic>`, `delayQ_delay_queue_<topic>` and `delayQ_ready_queue_<topic>`.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/seeds/layout.h"
#include "cli/seeds/seed_job.h"
#include "core/encoding.h"
#include "core/limits.h"

namespace delayq::cli::seeds {

namespace {

/// The prefixes of a version's keys; the topic follows.
struct Names {
  std::string_view pool, delay, ready;
  std::string_view process;  ///< empty: it has none
};
constexpr std::array kVersions{
    Names{"delayq:jp:", "delayq:dq:", "delayq:rq:", "delayq:process:"},
    Names{"delayQ_job_pool_", "delayQ_delay_queue_", "delayQ_ready_queue_", ""},
};
/// It waits 2^n seconds before the n-th retry, n at most 12.
constexpr std::string_view kBackoff = "exponential:2s:2:4096s:0";
/// Durations of Go are in nanoseconds; a number this large cannot mean seconds.
constexpr int64_t kLeastNanoseconds = 1'000'000;
constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

std::string in(std::string_view prefix, const std::string& topic) { return std::string(prefix) + topic; }

/// Go writes bytes in base64.
std::string body_of(const JsonJob& found) {
  for (const std::string_view name : {"boday", "body"}) {  // the library itself writes the first
    if (found.find(name) == nullptr) continue;
    const std::string text = found.text(name);
    return from_base64(text).value_or(text);
  }
  return {};
}

/// Timeout(d) is stored as `TTR`, in milliseconds.
std::string lease_of(const JsonJob& found) {
  if (const auto millis = found.number("ttr"); millis && *millis > 0) return lease_of_millis(*millis);
  int64_t timeout = found.number("timeout").value_or(0);
  if (timeout >= kLeastNanoseconds)
    timeout = timeout / kNanosecondsPerSecond + (timeout % kNanosecondsPerSecond == 0 ? 0 : 1);
  return lease_of_seconds(timeout);
}

/// Retry(n) is stored as `MaxRetry`: the number of retries after the first attempt; not set: no limit.
uint32_t attempts_of(const JsonJob& found) {
  const int64_t retries = found.number("maxretry").value_or(found.number("retry").value_or(0));
  const auto most = static_cast<int64_t>(Limits::kMaxAttempts);
  return retries <= 0 ? 0 : static_cast<uint32_t>(std::min(retries, most - 1) + 1);
}

class DelayqLibrary final : public Layout {
 public:
  Result<uint64_t> total(const RedisReader& redis) const override {
    uint64_t jobs = 0;
    const Status status = each_pool(redis, [&](const Names&, const std::string& key) {
      jobs += redis.count("HLEN", key);
      return Status{};
    });
    if (!status) return status.error();
    return jobs;
  }

  Status read(const RedisReader& redis, Sink& sink) const override {
    return each_pool(redis, [&](const Names& names, const std::string& key) {
      const std::string topic = key.substr(names.pool.size());
      return redis.scan_hash(key, [&](const std::vector<RedisReader::Pair>& page) {
        return read_pool(redis, names, topic, page, sink);
      });
    });
  }

 private:
  static Status each_pool(const RedisReader& redis,
                          const std::function<Status(const Names&, const std::string&)>& take) {
    for (const Names& names : kVersions) {
      Status status = redis.scan_keys(names.pool, "hash", [&](const RedisReader::Page& keys) {
        for (const std::string& key : keys) {
          if (Status taken = take(names, key); !taken) return taken;
        }
        return Status{};
      });
      if (!status) return status;
    }
    return {};
  }

  static Status read_pool(const RedisReader& redis, const Names& names, const std::string& topic,
                          const std::vector<RedisReader::Pair>& page, Sink& sink) {
    std::vector<Words> commands;
    for (const auto& [id, text] : page) commands.push_back({"ZSCORE", in(names.delay, topic), id});
    const auto scores = redis.ask_each(commands);
    if (!scores) return scores.error();
    for (const resp::Value& score : *scores) {
      if (score.is_error() && !score.text.starts_with("WRONGTYPE"))
        return Error{ErrorCode::kUnavailable, {}, fmt::format("Redis says: {}", score.text)};
    }
    for (size_t i = 0; i < page.size(); ++i) {
      std::optional<SeedJob> job = job_of(names, topic, page[i], (*scores)[i], sink);
      if (!job) continue;
      if (Status status = sink.job(std::move(*job)); !status) return status;
    }
    return {};
  }

  /// Returns nothing when it cannot be read, and reports that to the sink.
  static std::optional<SeedJob> job_of(const Names& names, const std::string& topic,
                                       const RedisReader::Pair& entry, const resp::Value& score, Sink& sink) {
    const auto& [id, text] = entry;
    const auto refuse = [&, &job_id = id](std::string why) {
      sink.unreadable(fmt::format("{} {}", in(names.pool, topic), job_id), std::move(why));
      return std::nullopt;
    };
    if (score.is_error()) return refuse("the delay queue of its topic is not a sorted set");
    const Result<JsonJob> found = JsonJob::parse(text);
    if (!found) return refuse(found.error().detail);
    const bool is_delayed = score.type != resp::Value::Type::kNull;
    // A job that is ready, or being worked on, has its own due time, or was never delayed.
    const auto due =
        moment_of_seconds(is_delayed ? score.text : std::to_string(found->number("delay").value_or(0)));
    if (!due) return refuse(is_delayed ? "its score is not a time" : "its delay is not a time");
    SeedJob job;
    job.topic = topic;
    job.id = id;
    job.due = *due;
    job.body = body_of(*found);
    job.lease = lease_of(*found);
    job.backoff = kBackoff;
    job.max_attempts = attempts_of(*found);
    if (is_delayed) {
      job.removal = {{"ZREM", in(names.delay, topic), id}};
    } else {
      job.removal = {{"LREM", in(names.ready, topic), "0", id}};
      if (!names.process.empty()) job.removal.push_back({"SREM", in(names.process, topic), id});
    }
    job.removal.push_back({"HDEL", in(names.pool, topic), id});
    return job;
  }
};

}  // namespace

std::unique_ptr<Layout> delayq_library_layout() { return std::make_unique<DelayqLibrary>(); }

}  // namespace delayq::cli::seeds
