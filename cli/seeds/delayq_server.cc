// DelayQ: the hash `dqjobs:<id>` is the job, with its state; `dqbucket` is the zset of ids by the second at
// which they are due, `dqready:<topic>` and `dqreserved` are the lists of those that are due and being worked
// on; the latter are in the bucket, too.
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "cli/seeds/layout.h"

namespace delayq::cli::seeds {

namespace {

constexpr std::string_view kJobPrefix = "dqjobs:";
constexpr std::string_view kBucket = "dqbucket";
constexpr std::string_view kServerReadyPrefix = "dqready:";
constexpr std::string_view kReserved = "dqreserved";
constexpr int64_t kLastLiveState = 2;  // 0 delayed, 1 ready, 2 reserved, 3 finished, 4 failed

using Fields = std::map<std::string, std::string, std::less<>>;

Fields fields_of(const resp::Value& reply) {
  Fields fields;
  for (size_t i = 0; i + 1 < reply.items.size(); i += 2)
    fields[reply.items[i].text] = reply.items[i + 1].text;
  return fields;
}

std::string text(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string() : found->second;
}

std::optional<int64_t> number(const Fields& fields, std::string_view name) {
  const std::string digits = text(fields, name);
  int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || error != std::errc{} || stop != end || value < 0) return std::nullopt;
  return value;
}

class DelayqServer final : public Layout {
 public:
  Result<uint64_t> total(const RedisReader& redis) const override {
    return redis.count("ZCARD", std::string(kBucket)) + redis.count("LLEN", std::string(kReserved));
  }

  Status read(const RedisReader& redis, Sink& sink) const override {
    return redis.scan_keys(kJobPrefix, "hash",
                           [&](const RedisReader::Page& keys) { return read_jobs(redis, keys, sink); });
  }

 private:
  static Status read_jobs(const RedisReader& redis, const RedisReader::Page& keys, Sink& sink) {
    std::vector<Words> commands;
    for (const std::string& key : keys) {
      commands.push_back({"HGETALL", key});
      commands.push_back({"ZSCORE", std::string(kBucket), key.substr(kJobPrefix.size())});
    }
    const auto replies = redis.ask(commands);
    if (!replies) return replies.error();
    for (size_t i = 0; i < keys.size(); ++i) {
      const Fields fields = fields_of((*replies)[2 * i]);
      if (fields.empty()) continue;  // gone meanwhile
      if (Status status = read_job(keys[i], fields, (*replies)[2 * i + 1], sink); !status) return status;
    }
    return {};
  }

  static Status read_job(const std::string& key, const Fields& fields, const resp::Value& score, Sink& sink) {
    const auto refuse = [&](std::string why) {
      sink.unreadable(key, std::move(why));
      return Status{};
    };
    const bool is_delayed = score.type != resp::Value::Type::kNull;
    const std::optional<int64_t> state = number(fields, "state");
    if (!is_delayed && !state) return refuse("its state is not a number");
    if (!is_delayed && *state > kLastLiveState) {
      sink.over();
      return {};
    }
    SeedJob job;
    job.id = text(fields, "jobid");
    job.topic = text(fields, "topic");
    if (job.id != key.substr(kJobPrefix.size())) return refuse("the job has another id");
    if (job.topic.empty()) return refuse("the job has no topic");
    const auto due = moment_of_seconds(is_delayed ? score.text : text(fields, "exectime"));
    if (!due) return refuse(is_delayed ? "its score is not a time" : "its exectime is not a time");
    job.due = *due;
    job.pushed = moment_of_seconds(text(fields, "addtime"));
    job.body = text(fields, "data");
    job.name = text(fields, "name");
    job.attempts = static_cast<uint32_t>(std::min<int64_t>(number(fields, "tryes").value_or(0), 1'000'000));
    job.lease = lease_of_seconds(number(fields, "ttr").value_or(0));
    job.removal = {{"ZREM", std::string(kBucket), job.id}};
    // A job that is being worked on is in the bucket as well, with the time of its next attempt.
    if (!is_delayed || state != 0) {
      job.removal.push_back({"LREM", std::string(kServerReadyPrefix) + job.topic, "0", job.id});
      job.removal.push_back({"LREM", std::string(kReserved), "0", job.id});
    }
    job.removal.push_back({"DEL", key});
    return sink.job(std::move(job));
  }
};

}  // namespace

std::unique_ptr<Layout> delayq_server_layout() { return std::make_unique<DelayqServer>(); }

}  // namespace delayq::cli::seeds
