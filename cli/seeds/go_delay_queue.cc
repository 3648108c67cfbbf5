// go-delay-queue: `delay_job:<id>` is the job, `dq_bucket_1..N` (in its example of a configuration) or
// `delay_bucket_1..N` (without one) are zsets of ids by the second at which they are due, and ids that are
// due are in the list that is named like their topic. With -t kafka the ids wait in topics in Kafka instead
// of the buckets, and `delay_partition_[0,1]` is the claim of a running one.
#include <set>

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include "cli/seeds/layout.h"
#include "cli/seeds/seed_job.h"
#include "core/siphash.h"

namespace delayq::cli::seeds {

namespace {

constexpr std::string_view kGoJobPrefix = "delay_job:";
constexpr std::string_view kGoClaimPrefix = "delay_partition_";
constexpr size_t kRecordsPerPage = 256;

std::string job_key(const std::string& id) { return std::string(kGoJobPrefix) + id; }

/// The ids that were read, as hashes: there may be millions.
class Seen {
 public:
  /// Returns whether the id is new.
  bool add(std::string_view id) {
    const Hash128 hash = siphash128({}, id);
    return ids_.insert({hash.low, hash.high}).second;
  }

 private:
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> ids_;
};

class GoDelayQueue final : public Layout {
 public:
  GoDelayQueue(const BucketOptions& buckets, DelayRecords records)
      : buckets_({"dq_bucket_", "delay_bucket_"}, 1, buckets), records_(std::move(records)) {}

  Result<uint64_t> total(const RedisReader& redis) const override { return buckets_.total(redis); }

  Status read(const RedisReader& redis, Sink& sink) const override {
    const auto buckets = buckets_.keys(redis);
    if (!buckets) return buckets.error();
    // Before anything is removed: topics whose last job waits in a bucket must be known as well.
    std::set<std::string> topics;
    if (Status status = find_topics(redis, topics); !status) return status;
    Reading reading{redis, sink, *buckets, {}};
    Status status =
        buckets_.read(redis, [&](const std::string& bucket, const std::vector<RedisReader::Pair>& page) {
          return read_bucket(reading, bucket, page);
        });
    for (auto topic = topics.begin(); status && topic != topics.end(); ++topic) {
      status = redis.walk_list(*topic,
                               [&](const RedisReader::Page& ids) { return read_list(reading, *topic, ids); });
    }
    if (status && records_) status = read_records(reading);
    if (!status) return status;
    return redis.scan_keys(kGoJobPrefix, "string",
                           [&](const RedisReader::Page& keys) { return read_left(reading, keys); });
  }

 private:
  struct Reading {
    const RedisReader& redis;
    Sink& sink;
    const std::vector<std::string>& buckets;
    Seen seen;

    /// An id that was added twice may be in two of them.
    std::vector<Words> out_of_buckets(const std::string& id) const {
      std::vector<Words> commands;
      for (const std::string& bucket : buckets) commands.push_back({"ZREM", bucket, id});
      return commands;
    }
  };

  static Result<std::vector<std::optional<std::string>>> jobs_of(const RedisReader& redis,
                                                                 const std::vector<std::string>& ids) {
    std::vector<std::string> keys;
    for (const std::string& id : ids) keys.push_back(job_key(id));
    return redis.get(keys);
  }

  static Status read_bucket(Reading& reading, const std::string& bucket,
                            const std::vector<RedisReader::Pair>& page) {
    std::vector<std::string> ids;
    for (const auto& [id, score] : page) ids.push_back(id);
    const auto jobs = jobs_of(reading.redis, ids);
    if (!jobs) return jobs.error();
    for (size_t i = 0; i < page.size(); ++i) {
      if (!reading.seen.add(ids[i])) continue;
      const std::string where = fmt::format("{} {}", bucket, ids[i]);
      const Found found{ids[i], (*jobs)[i], where, moment_of_seconds(page[i].second), true};
      if (Status status = hand_over(found, reading.out_of_buckets(ids[i]), reading.sink); !status)
        return status;
    }
    return {};
  }

  static Status read_list(Reading& reading, const std::string& topic, const RedisReader::Page& ids) {
    const auto jobs = jobs_of(reading.redis, ids);
    if (!jobs) return jobs.error();
    for (size_t i = 0; i < ids.size(); ++i) {
      if (!reading.seen.add(ids[i])) continue;
      const std::string where = fmt::format("{} {}", topic, ids[i]);
      const Found found{ids[i], (*jobs)[i], where, {}, false};
      if (Status status = hand_over(found, {{"LREM", topic, "0", ids[i]}}, reading.sink); !status)
        return status;
    }
    return {};
  }

  Status read_records(Reading& reading) const {
    std::vector<DelayRecord> page;
    const auto read_page = [&]() -> Status {
      std::vector<std::string> ids;
      for (const DelayRecord& record : page) ids.push_back(record.id);
      const auto jobs = jobs_of(reading.redis, ids);
      if (!jobs) return jobs.error();
      for (size_t i = 0; i < page.size(); ++i) {
        if (!reading.seen.add(ids[i])) continue;
        const Found found{ids[i], (*jobs)[i], page[i].where, page[i].due, page[i].due.has_value()};
        if (Status status = hand_over(found, {}, reading.sink); !status) return status;
      }
      page.clear();
      return {};
    };
    const Status status = records_([&](const DelayRecord& record) {
      page.push_back(record);
      return page.size() < kRecordsPerPage ? Status{} : read_page();
    });
    return status ? read_page() : status;
  }

  /// Jobs that are in no bucket, list or record. One with a due time in the future is in a bucket with
  /// another name, or lost its entry; the others were fetched by consumers, and expire.
  static Status read_left(Reading& reading, const RedisReader::Page& keys) {
    const auto jobs = reading.redis.get(keys);
    if (!jobs) return jobs.error();
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::string id = keys[i].substr(kGoJobPrefix.size());
      if (!(*jobs)[i] || !reading.seen.add(id)) continue;
      const auto packed = unpack_job(*(*jobs)[i]);
      const auto due = packed && packed->exec_time ? moment_of_seconds(fmt::format("{}", *packed->exec_time))
                                                   : std::nullopt;
      if (due && *due <= reading.sink.now()) {
        reading.sink.over();
        continue;
      }
      const Found found{id, (*jobs)[i], keys[i], {}, false};
      if (Status status = hand_over(found, {}, reading.sink); !status) return status;
    }
    return {};
  }

  struct Found {
    const std::string& id;
    const std::optional<std::string>& bytes;
    const std::string& where;
    std::optional<Moment> score;
    bool has_score;
  };

  /// The due time is that of the job itself: an id that was added twice keeps its first entry in a bucket,
  /// but not its first due time. The score is used for jobs without a due time.
  static Status hand_over(const Found& found, std::vector<Words> removal, Sink& sink) {
    if (found.has_score && !found.score) {
      sink.unreadable(found.where, "its score is not a time");
      return {};
    }
    if (!found.bytes) {
      sink.gone();
      return {};
    }
    Result<PackedJob> packed = unpack_job(*found.bytes);
    if (packed && packed->id != found.id) packed = Error{ErrorCode::kCorrupt, {}, "the job has another id"};
    if (!packed) {
      sink.unreadable(found.where, packed.error().detail);
      return {};
    }
    std::optional<Moment> due = found.score;
    if (packed->exec_time) due = moment_of_seconds(fmt::format("{}", *packed->exec_time));
    if (!due) {
      sink.unreadable(found.where, "the job does not say when it is due");
      return {};
    }
    SeedJob job;
    job.topic = std::move(packed->topic);
    job.id = found.id;
    job.body = std::move(packed->body);
    job.due = *due;
    if (packed->exec_time && packed->delay)
      job.pushed = moment_of_seconds(fmt::format("{}", *packed->exec_time - *packed->delay));
    removal.push_back({"DEL", job_key(found.id)});
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
  DelayRecords records_;  ///< empty: it does not use Kafka
};

}  // namespace

std::unique_ptr<Layout> go_delay_queue_layout(const BucketOptions& buckets, DelayRecords records) {
  return std::make_unique<GoDelayQueue>(buckets, std::move(records));
}

Result<std::vector<std::string>> live_claims(const RedisReader& redis) {
  std::vector<std::string> claims;
  const Status status =
      redis.scan_keys(kGoClaimPrefix, "string", [&](const RedisReader::Page& keys) -> Status {
        for (const std::string& key : keys) {
          const auto left = redis.ask_one({"PTTL", key});
          if (!left) return left.error();
          // Without an expiry it is no claim.
          if (left->integer > 0)
            claims.push_back(fmt::format("{} for {} s", key, (left->integer + 999) / 1000));
        }
        return {};
      });
  if (!status) return status.error();
  return claims;
}

}  // namespace delayq::cli::seeds
