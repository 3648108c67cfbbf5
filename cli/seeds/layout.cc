#include "cli/seeds/layout.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/limits.h"
#include "core/text.h"

namespace delayq::cli::seeds {

std::unique_ptr<Layout> layout_of(std::string_view system, const BucketOptions& buckets,
                                  DelayRecords records) {
  if (system == kSystems[0]) return go_delay_queue_layout(buckets, std::move(records));
  if (system == kSystems[1]) return callback_layout(buckets);
  if (system == kSystems[2]) return delayq_server_layout();
  if (system == kSystems[3]) return delayq_library_layout();
  return nullptr;
}

Buckets::Buckets(std::vector<std::string> prefixes, uint32_t first, const BucketOptions& options)
    : prefixes_(std::move(prefixes)), first_(first), count_(options.count) {
  if (!options.name.empty()) prefixes_ = {options.name.substr(0, options.name.find("%d"))};
}

Status Buckets::add_numbered(const RedisReader& redis, const std::string& prefix,
                             std::vector<std::string>& keys) const {
  return redis.scan_keys(prefix, "zset", [&](const RedisReader::Page& page) {
    for (const std::string& key : page) {
      const std::string_view number = std::string_view(key).substr(prefix.size());
      if (!number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos)
        keys.push_back(key);
    }
    return Status{};
  });
}

Result<std::vector<std::string>> Buckets::keys(const RedisReader& redis) const {
  std::vector<std::string> keys;
  for (const std::string& prefix : prefixes_) {
    for (uint32_t i = first_; count_ > 0 && i <= count_; ++i) keys.push_back(fmt::format("{}{}", prefix, i));
    if (count_ > 0) continue;
    if (Status status = add_numbered(redis, prefix, keys); !status) return status.error();
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

Result<uint64_t> Buckets::total(const RedisReader& redis) const {
  const auto found = keys(redis);
  if (!found) return found.error();
  uint64_t total = 0;
  for (const std::string& key : *found) total += redis.count("ZCARD", key);
  return total;
}

Status Buckets::read(const RedisReader& redis, const Take& take) const {
  const auto found = keys(redis);
  if (!found) return found.error();
  for (const std::string& key : *found) {
    Status status =
        redis.scan_zset(key, [&](const std::vector<RedisReader::Pair>& page) { return take(key, page); });
    if (!status) return status;
  }
  return {};
}

std::string lease_of_seconds(int64_t seconds) {
  constexpr auto kMost = std::chrono::duration_cast<std::chrono::seconds>(Limits::kMaxLease).count();
  return seconds <= 0 ? std::string() : fmt::format("{}s", std::min<int64_t>(seconds, kMost));
}

std::string lease_of_millis(int64_t millis) {
  constexpr int64_t kMost = Limits::kMaxLease.count();
  return millis <= 0 ? std::string() : fmt::format("{}ms", std::min(millis, kMost));
}

// What else is in a Redis that has no waiting jobs of the named system.

namespace {

struct Look {
  std::string_view prefix;
  std::string_view type;
  std::string_view what;
};

constexpr std::array kLooks{
    Look{"delay_job:", "string", "jobs of go-delay-queue: --from go-delay-queue"},
    Look{"dq_bucket_", "zset", "buckets of go-delay-queue: --from go-delay-queue"},
    Look{"delay_bucket_", "zset", "buckets of go-delay-queue: --from go-delay-queue"},
    Look{"dqc_bucket_", "zset", "buckets of delay_queue_callback: --from callback"},
    Look{"dqjobs:", "hash", "jobs of DelayQ: --from DelayQ"},
    Look{"delayq:jp:", "hash", "jobs of the delayq library: --from delayq"},
    Look{"delayq:dq:", "zset", "delay queues of the delayq library: --from delayq"},
    Look{"delayq:rq:", "list", "ready queues of the delayq library: --from delayq"},
    Look{"delayQ_", "", "keys of an older delayq library: --from delayq"},
};

/// A sorted set that may be a bucket under a name of its own.
constexpr std::string_view kBucketWord = "bucket";

struct Kind {
  uint64_t count = 0;
  std::string example;
};

std::string_view what_of(const std::string& key, std::string_view type) {
  for (const Look& look : kLooks) {
    if (key.starts_with(look.prefix) && (look.type.empty() || look.type == type)) return look.what;
  }
  if (type == "zset" && key.find(kBucketWord) != std::string::npos)
    return "sorted sets that may be buckets: --bucket-name NAME_%d reads those";
  return {};
}

}  // namespace

Result<std::vector<std::string>> look_alikes(const RedisReader& redis) {
  std::map<std::string_view, Kind> kinds;
  for (const std::string_view type : {"string", "zset", "hash", "list"}) {
    const Status status = redis.scan_keys("", type, [&](const RedisReader::Page& page) {
      for (const std::string& key : page) {
        const std::string_view what = what_of(key, type);
        if (what.empty()) continue;
        Kind& kind = kinds[what];
        if (kind.count++ == 0) kind.example = key;
      }
      return Status{};
    });
    if (!status) return status.error();
  }
  std::vector<std::string> lines;
  for (const auto& [what, kind] : kinds)
    lines.push_back(fmt::format("{} as {} look like {}", kind.count, quote(kind.example), what));
  return lines;
}

}  // namespace delayq::cli::seeds
