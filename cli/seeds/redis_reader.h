#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/seeds/seed_job.h"
#include "core/result.h"
#include "resp/value.h"

namespace delayq::cli::seeds {

/// Reads a Redis page by page, so that neither it nor we hold much at a time, and nothing blocks it: SCAN,
/// HSCAN, ZSCAN, never KEYS. What changes meanwhile may be found twice or missed, as SCAN documents.
class RedisReader {
 public:
  /// Sends commands together and returns their replies, including errors.
  using Ask = std::function<Result<std::vector<resp::Value>>(std::span<const Words> commands)>;
  using Page = std::vector<std::string>;
  using Pair = std::pair<std::string, std::string>;

  explicit RedisReader(Ask ask) : ask_(std::move(ask)) {}

  /// The replies; fails with the first error reply.
  Result<std::vector<resp::Value>> ask(std::span<const Words> commands) const;
  /// The replies, including errors.
  Result<std::vector<resp::Value>> ask_each(std::span<const Words> commands) const;
  Result<resp::Value> ask_one(const Words& command) const;

  /// Keys with this prefix and type ("zset", "hash", ...).
  Status scan_keys(std::string_view prefix, std::string_view type,
                   const std::function<Status(const Page&)>& take) const;
  /// Members with their scores; fields with their values. A missing key has none; a key of another type is an
  /// error.
  Status scan_zset(const std::string& key, const std::function<Status(const std::vector<Pair>&)>& take) const;
  Status scan_hash(const std::string& key, const std::function<Status(const std::vector<Pair>&)>& take) const;
  /// The items of a list, in their order.
  Status walk_list(const std::string& key, const std::function<Status(const Page&)>& take) const;
  /// The values of string keys; nullopt where there is none, or something else.
  Result<std::vector<std::optional<std::string>>> get(const std::vector<std::string>& keys) const;

  /// How many a key has: ZCARD, LLEN, HLEN; 0 for a key that is not there or of another type.
  uint64_t count(const std::string& command, const std::string& key) const;

 private:
  Status scan_pairs(const std::string& command, const std::string& key,
                    const std::function<Status(const std::vector<Pair>&)>& take) const;

  Ask ask_;
};

/// The moment of a score or a number of seconds; nullopt for other texts.
std::optional<Moment> moment_of_seconds(std::string_view text);
/// Escapes the special characters of SCAN's patterns.
std::string escaped_pattern(std::string_view text);

}  // namespace delayq::cli::seeds
