#include "cli/seeds/layout.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/limits.h"

namespace delayq::cli::seeds {

std::unique_ptr<Layout> layout_of(std::string_view system, const BucketOptions& buckets) {
  if (system == kSystems[0]) return go_delay_queue_layout(buckets);
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

}  // namespace delayq::cli::seeds
