// go-delay-queue: `delay_job:<id>` is the job, `dq_bucket_1..N` are zsets of ids by the second at which they
// are due, and ids that are due are in the list that is named like their topic.
#include <set>

#include <fmt/format.h>

#include "cli/seeds/layout.h"
#include "cli/seeds/packed_job.h"

namespace delayq::cli::seeds {

namespace {

constexpr std::string_view kGoJobPrefix = "delay_job:";
constexpr std::string_view kGoBucketPrefix = "dq_bucket_";

std::string job_key(const std::string& id) { return std::string(kGoJobPrefix) + id; }

class GoDelayQueue final : public Layout {
 public:
  explicit GoDelayQueue(uint32_t buckets) : buckets_(kGoBucketPrefix, 1, buckets) {}

  Result<uint64_t> total(const RedisReader& redis) const override { return buckets_.total(redis); }

  Status read(const RedisReader& redis, Sink& sink) const override {
    // Before anything is taken out: topics whose last job waits in a bucket have to be known as well.
    std::set<std::string> topics;
    if (Status status = find_topics(redis, topics); !status) return status;
    Status status =
        buckets_.read(redis, [&](const std::string& bucket, const std::vector<RedisReader::Pair>& page) {
          return read_bucket(redis, bucket, page, sink);
        });
    for (auto topic = topics.begin(); status && topic != topics.end(); ++topic) {
      status = redis.walk_list(
          *topic, [&](const RedisReader::Page& ids) { return read_list(redis, *topic, ids, sink); });
    }
    return status;
  }

 private:
  static Result<std::vector<std::optional<std::string>>> jobs_of(const RedisReader& redis,
                                                                 const std::vector<std::string>& ids) {
    std::vector<std::string> keys;
    for (const std::string& id : ids) keys.push_back(job_key(id));
    return redis.get(keys);
  }

  static Status read_bucket(const RedisReader& redis, const std::string& bucket,
                            const std::vector<RedisReader::Pair>& page, Sink& sink) {
    std::vector<std::string> ids;
    for (const auto& [id, score] : page) ids.push_back(id);
    const auto jobs = jobs_of(redis, ids);
    if (!jobs) return jobs.error();
    for (size_t i = 0; i < page.size(); ++i) {
      const std::optional<Moment> due = moment_of_seconds(page[i].second);
      const std::string where = fmt::format("{} {}", bucket, ids[i]);
      if (!due) {
        sink.unreadable(where, "its score is not a time");
        continue;
      }
      if (Status status = hand_over(ids[i], (*jobs)[i], due, where, {{"ZREM", bucket, ids[i]}}, sink);
          !status)
        return status;
    }
    return {};
  }

  static Status read_list(const RedisReader& redis, const std::string& topic, const RedisReader::Page& ids,
                          Sink& sink) {
    const auto jobs = jobs_of(redis, ids);
    if (!jobs) return jobs.error();
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::string where = fmt::format("{} {}", topic, ids[i]);
      if (Status status = hand_over(ids[i], (*jobs)[i], {}, where, {{"LREM", topic, "1", ids[i]}}, sink);
          !status)
        return status;
    }
    return {};
  }

  /// Without `due`, as the job itself has it.
  static Status hand_over(const std::string& id, const std::optional<std::string>& bytes,
                          std::optional<Moment> due, const std::string& where, std::vector<Words> removal,
                          Sink& sink) {
    if (!bytes) {
      sink.gone();
      return {};
    }
    Result<PackedJob> packed = unpack_job(*bytes);
    if (packed && packed->id != id) packed = Error{ErrorCode::kCorrupt, {}, "the job has another id"};
    if (!packed) {
      sink.unreadable(where, packed.error().detail);
      return {};
    }
    if (!due && packed->exec_time) due = moment_of_seconds(fmt::format("{}", *packed->exec_time));
    if (!due) {
      sink.unreadable(where, "the job does not say when it is due");
      return {};
    }
    SeedJob job;
    job.topic = std::move(packed->topic);
    job.id = id;
    job.body = std::move(packed->body);
    job.due = *due;
    if (packed->exec_time && packed->delay)
      job.pushed = moment_of_seconds(fmt::format("{}", *packed->exec_time - *packed->delay));
    removal.push_back({"DEL", job_key(id)});
    job.removal = std::move(removal);
    return sink.job(std::move(job));
  }

  static Status find_topics(const RedisReader& redis, std::set<std::string>& topics) {
    return redis.scan_keys(kGoJobPrefix, "string", [&](const RedisReader::Page& keys) {
      const auto jobs = redis.get(keys);
      if (!jobs) return Status{jobs.error()};
      for (const std::optional<std::string>& bytes : *jobs) {
        const auto packed = bytes ? unpack_job(*bytes) : Result<PackedJob>(PackedJob{});
        if (packed && !packed->topic.empty()) topics.insert(packed->topic);
      }
      return Status{};
    });
  }

  Buckets buckets_;
};

}  // namespace

std::unique_ptr<Layout> go_delay_queue_layout(uint32_t buckets) {
  return std::make_unique<GoDelayQueue>(buckets);
}

}  // namespace delayq::cli::seeds
