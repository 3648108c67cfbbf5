#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/metrics.h"
#include "api/resp/conversation.h"
#include "core/result.h"
#include "engine/engine.h"
#include "engine/journal/journal_engine.h"
#include "engine/kafka/ladder.h"
#include "net/loop.h"
#include "net/redis/options.h"
#include "ops/config.h"
#include "queue/queue.h"
#include "resp/value.h"

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

/// The errors in the configuration of the redis engine, besides those of single values: the URL, and settings
/// that conflict with it.
std::vector<std::string> check_redis(const Config::Redis& said);

/// Returns that configuration. Reads the file with the password. REQUIRES: check_redis() found nothing.
Result<RedisStorageOptions> redis_storage_options(const Config::Redis& said);

/// Whether the problem is the user, the password or permissions; waiting does not help.
bool is_login_problem(std::string_view problem);

/// Whether the version of Redis is too old; waiting does not help either.
bool is_version_problem(std::string_view problem);

/// What an operator can do about a Redis that cannot be used, as the end of a sentence; empty if `problem`,
/// the text of Redis or of the client, is clear enough.
std::string advice_on(std::string_view problem, const RedisStorageOptions& options);

/// The same for any Redis that is named by a URL.
std::string advice_on_reaching(std::string_view problem, net::redis::Mode mode, const RedisNames& names);

/// Connects, and waits at most `start_wait` for a Redis that is not there yet. Fails with what an operator
/// can do about it: there is no answer, the password is wrong, the Redis is too old, the deployment has
/// another number of shards. With `only_looks` no permission to write is needed.
Result<std::unique_ptr<Storage>> open_redis_storage(const StorageOptions& options, net::Loop& loop);

/// A data directory that no server uses, or the Redis of the redis engine, with the commands and replies of a
/// server, but without a socket. No jobs are handed over here.
class LocalServer final : private net::Connection {
 public:
  struct Access {
    bool only_looks = false;  ///< nothing is written, and only TOPICS may be asked
    bool only_reads = false;  ///< nothing is written to a directory; for commands that change nothing
    bool must_exist = false;  ///< a place that was never used fails with kNotFound
  };
  /// The place is a directory, or redis://... with ?prefix=NAME&shards=N behind it. kUnavailable while a
  /// server has the directory, and when Redis does not answer; kNotFound when there is no directory. `option`
  /// is where an operator named it, for advice.
  static Result<std::shared_ptr<LocalServer>> open(const std::string& place, const std::string& option,
                                                   const Access& access);
  ~LocalServer() override;

  /// As in Storage.
  bool is_new() const { return storage_->is_new(); }
  uint32_t shards() const { return storage_->shards(); }

  /// Blocks until there are replies, one for each command in their order; those that are errors are among
  /// them. What is asked together is durable together.
  Result<std::vector<resp::Value>> ask_all(std::span<const std::vector<std::string>> commands);

 private:
  LocalServer() = default;
  Status start();
  void on_output() override {}
  void on_resume() override {}
  /// Moves replies that are complete out of what the conversation has written.
  Status take_replies(std::vector<resp::Value>& replies);
  /// One turn of the queue; waits for the disk when there was nothing to do.
  void turn();
  Moment now() const { return storage_->now(); }

  net::Loop loop_;  // the storage uses it, and is destroyed first
  bool has_sockets_ = false;
  std::mutex mutex_;
  std::condition_variable awake_;
  bool is_awake_ = false;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<resp::Endpoint> host_;
  std::shared_ptr<resp::Conversation> conversation_;
};

}  // namespace delayq
