#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "api/http/metrics.h"
#include "core/result.h"
#include "engine/engine.h"
#include "engine/journal/journal_engine.h"
#include "engine/kafka/ladder.h"
#include "net/redis/options.h"

namespace delayq::net {
class Loop;
}

namespace delayq {

/// An unpredictable number, for what must differ from one start to the next.
inline uint64_t random_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32) ^ device();
}

enum class EngineKind : uint8_t { kJournal, kMemory, kRedis };

/// The names of the settings that locate a Redis, for messages.
struct RedisNames {
  std::string url = "redis.url";
  bool is_all_in_url = false;  ///< user, password, prefix: there are no settings beside the URL
};

/// Where the kafka engine keeps the bodies of jobs that are due much later.
struct ColdStorageOptions {
  kafka::ClientOptions client;
  Millis timeout = std::chrono::seconds{30};  ///< for a record to be confirmed
  kafka::LadderOptions ladder;
};

struct RedisStorageOptions {
  net::redis::ClientOptions client;
  std::string where;  ///< for the log: "redis at 127.0.0.1:6379"
  std::string prefix = "delayq";
  uint32_t shards = 0;   ///< 0: as the deployment has it; a new one gets 1, a Cluster 16
  Millis start_wait{0};  ///< for a Redis that is not there yet
  RedisNames names;
  std::optional<ColdStorageOptions> cold{};  ///< the kafka engine has it
};

struct StorageOptions {
  /// Writes nothing at all, to Redis or to a disk; only topics and settings can be read. Not for the memory
  /// engine.
  bool only_looks = false;
  /// A place that was never used fails with kNotFound and is not changed.
  bool must_exist = false;
  EngineKind engine = EngineKind::kJournal;
  std::string directory = "data";  ///< the journal's
  std::string backups;             ///< empty: "backups" beside the directory
  journal::JournalOptions journal;
  RedisStorageOptions redis;
  /// Called with what an operator should know about the storage: it cannot be reached, it is back.
  std::function<void(bool is_bad, std::string_view what)> tell = [](bool, std::string_view) {};
};

/// The message for a place that must exist and was never used.
inline constexpr std::string_view kNeverUsed = "has no jobs of delayq, and never had";

/// kInvalid for the directory of a backup that was not finished: it looks like a data directory, and jobs are
/// missing.
Status check_not_partial(const std::string& directory);

/// An engine with its directory, connection or memory.
class Storage {
 public:
  /// The loop is for engines that use sockets; the journal and the memory engine need none. It must outlive
  /// the storage.
  static Result<std::unique_ptr<Storage>> open(const StorageOptions& options, Moment now,
                                               net::Loop* loop = nullptr);
  virtual ~Storage() = default;

  virtual Engine& engine() = 0;
  /// For the start-up line: "journal in data, 12 jobs".
  virtual std::string describe() = 0;
  /// Whether nothing was ever stored there. Only known with `only_looks`.
  virtual bool is_new() const { return false; }
  /// The number of parts the jobs are in, or will be; 0: this engine has no parts.
  virtual uint32_t shards() const { return 0; }
  /// The time by which jobs fall due: servers that share their jobs share a clock as well.
  virtual Moment now() const;
  /// now() minus this machine's clock.
  virtual Millis clock_offset() const { return Millis{0}; }
  /// Call it once in each turn of the loop: reports changes to `tell`.
  virtual void look() {}
  /// Figures of the connection to Redis; nothing for engines on this machine.
  virtual std::optional<http::RedisFigures> redis_figures() const { return std::nullopt; }
  /// Figures of the kafka engine; nothing for others.
  virtual std::optional<http::LadderFigures> ladder_figures() const { return std::nullopt; }
};

}  // namespace delayq
