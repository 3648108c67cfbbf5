// What there is in a Redis in which nothing of the system that was named waits.
#include <map>

#include <fmt/format.h>

#include "cli/seeds/layout.h"
#include "core/quote.h"

namespace delayq::cli::seeds {

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
