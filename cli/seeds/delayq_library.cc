// The library delayq: for each topic the hash `delayq:jp:<topic>` of jobs as JSON, the zset
// `delayq:dq:<topic>` of ids by the second at which they are due, the list `delayq:rq:<topic>` of those that
// are, and the set `delayq:process:<topic>` of those that are being worked on.
#include <fmt/format.h>

#include "cli/seeds/json_job.h"
#include "cli/seeds/layout.h"
#include "core/base64.h"
#include "core/limits.h"

namespace delayq::cli::seeds {

namespace {

constexpr std::string_view kPoolPrefix = "delayq:jp:";
constexpr std::string_view kDelayPrefix = "delayq:dq:";
constexpr std::string_view kReadyPrefix = "delayq:rq:";
constexpr std::string_view kProcessPrefix = "delayq:process:";
/// It waits 2^n seconds before the n-th retry, n at most 12.
constexpr std::string_view kBackoff = "exponential:2s:2:4096s:0";
/// A duration of Go is written in nanoseconds; nobody means a timeout of so many seconds.
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

std::string lease_of(const JsonJob& found) {
  int64_t timeout = found.number("timeout").value_or(found.number("ttr").value_or(0));
  if (timeout >= kLeastNanoseconds)
    timeout = timeout / kNanosecondsPerSecond + (timeout % kNanosecondsPerSecond == 0 ? 0 : 1);
  return lease_of_seconds(timeout);
}

class DelayqLibrary final : public Layout {
 public:
  Result<uint64_t> total(const RedisReader& redis) const override {
    uint64_t jobs = 0;
    const Status status = each_pool(redis, [&](const std::string& key) {
      jobs += redis.count("HLEN", key);
      return Status{};
    });
    if (!status) return status.error();
    return jobs;
  }

  Status read(const RedisReader& redis, Sink& sink) const override {
    return each_pool(redis, [&](const std::string& key) {
      const std::string topic = key.substr(kPoolPrefix.size());
      return redis.scan_hash(key, [&](const std::vector<RedisReader::Pair>& page) {
        return read_pool(redis, topic, page, sink);
      });
    });
  }

 private:
  static Status each_pool(const RedisReader& redis, const std::function<Status(const std::string&)>& take) {
    return redis.scan_keys(kPoolPrefix, "hash", [&](const RedisReader::Page& keys) {
      for (const std::string& key : keys) {
        if (Status status = take(key); !status) return status;
      }
      return Status{};
    });
  }

  static Status read_pool(const RedisReader& redis, const std::string& topic,
                          const std::vector<RedisReader::Pair>& page, Sink& sink) {
    std::vector<Words> commands;
    for (const auto& [id, text] : page) commands.push_back({"ZSCORE", in(kDelayPrefix, topic), id});
    const auto scores = redis.ask_each(commands);
    if (!scores) return scores.error();
    for (const resp::Value& score : *scores) {
      if (score.is_error() && !score.text.starts_with("WRONGTYPE"))
        return Error{ErrorCode::kUnavailable, {}, fmt::format("Redis says: {}", score.text)};
    }
    for (size_t i = 0; i < page.size(); ++i) {
      Status status = read_job(topic, page[i].first, page[i].second, (*scores)[i], sink);
      if (!status) return status;
    }
    return {};
  }

  static Status read_job(const std::string& topic, const std::string& id, const std::string& text,
                         const resp::Value& score, Sink& sink) {
    const std::string where = fmt::format("{} {}", in(kPoolPrefix, topic), id);
    if (score.is_error()) {
      sink.unreadable(where, "the delay queue of its topic is not a sorted set");
      return {};
    }
    const Result<JsonJob> found = JsonJob::parse(text);
    if (!found) {
      sink.unreadable(where, found.error().detail);
      return {};
    }
    const bool is_delayed = score.type != resp::Value::Type::kNull;
    // What is ready, or being worked on, says in itself when it was due; or it was never delayed.
    const auto due =
        moment_of_seconds(is_delayed ? score.text : std::to_string(found->number("delay").value_or(0)));
    if (!due) {
      sink.unreadable(where, is_delayed ? "its score is not a time" : "its delay is not a time");
      return {};
    }
    SeedJob job;
    job.topic = topic;
    job.id = id;
    job.due = *due;
    job.body = body_of(*found);
    job.lease = lease_of(*found);
    job.backoff = kBackoff;
    // So many retries come after the first try; none said: for ever.
    const int64_t retries = found->number("retry").value_or(0);
    const auto most = static_cast<int64_t>(Limits::kMaxAttempts);
    job.max_attempts = retries <= 0 ? 0 : static_cast<uint32_t>(std::min(retries, most - 1) + 1);
    if (is_delayed) {
      job.removal = {{"ZREM", in(kDelayPrefix, topic), id}};
    } else {
      job.removal = {{"LREM", in(kReadyPrefix, topic), "0", id}, {"SREM", in(kProcessPrefix, topic), id}};
    }
    job.removal.push_back({"HDEL", in(kPoolPrefix, topic), id});
    return sink.job(std::move(job));
  }
};

}  // namespace

std::unique_ptr<Layout> delayq_library_layout() { return std::make_unique<DelayqLibrary>(); }

}  // namespace delayq::cli::seeds
