#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/seeds/redis_reader.h"
#include "cli/seeds/seed_job.h"

namespace delayq::cli::seeds {

/// Receives what a layout finds.
class Sink {
 public:
  virtual ~Sink() = default;

  /// The time by which jobs are due or not.
  virtual Moment now() const = 0;
  /// An error ends the reading.
  virtual Status job(SeedJob job) = 0;
  /// Something waits there that cannot be taken over. `why` is the same for all of a kind; `where` is the
  /// key, or the key and what is in it.
  virtual void unreadable(std::string where, std::string why) = 0;
  /// A job that still exists, but is finished.
  virtual void over() = 0;
  /// An entry of a queue whose job does not exist any more. Two of the systems leave it behind when a job is
  /// removed.
  virtual void gone() = 0;
};

/// How one of the other systems keeps its jobs in Redis.
class Layout {
 public:
  virtual ~Layout() = default;

  /// About how many jobs there are, for a progress bar.
  virtual Result<uint64_t> total(const RedisReader& redis) const = 0;
  /// Finds all that wait: delayed, due, and being worked on. Changes nothing. Some may be found twice.
  virtual Status read(const RedisReader& redis, Sink& sink) const = 0;
};

inline constexpr std::array<std::string_view, 4> kSystems{"go-delay-queue", "callback", "DelayQ", "delayq"};

/// The delay buckets of the systems that have several, as they were configured.
struct BucketOptions {
  uint32_t count = 0;  ///< 0: as many as there are
  std::string name{};  ///< as "my_bucket_%d"; empty: the names that the system has by default
};

/// A record of a topic in Kafka that names a waiting job.
struct DelayRecord {
  std::string where;  ///< topic, partition and offset, for messages
  std::string id;
  std::optional<Moment> due{};
};
/// Calls its argument with each record. An error of it ends the reading.
using DelayRecords = std::function<Status(const std::function<Status(const DelayRecord&)>& take)>;

/// The layout of one of kSystems; null for any other name. `records`: of go-delay-queue; may be empty.
std::unique_ptr<Layout> layout_of(std::string_view system, const BucketOptions& buckets,
                                  DelayRecords records = {});

/// The claims of a go-delay-queue that reads its topics in Kafka now, for messages: each with the time for
/// which it lasts. It deletes them when it stops; after a crash they expire within a minute.
Result<std::vector<std::string>> live_claims(const RedisReader& redis);

/// Looks for keys of any of the systems, if the named system has no waiting jobs in this Redis. Returns a
/// line for each kind, with an example and what to do; empty when there are none.
Result<std::vector<std::string>> look_alikes(const RedisReader& redis);

/// Each system's own; layout_of() knows them by name.
std::unique_ptr<Layout> go_delay_queue_layout(const BucketOptions& buckets, DelayRecords records);
std::unique_ptr<Layout> callback_layout(const BucketOptions& buckets);
std::unique_ptr<Layout> delayq_server_layout();
std::unique_ptr<Layout> delayq_library_layout();

/// The delay buckets of a system that has several: zsets named by a prefix and a number. go-delay-queue has 1
/// to N, as its source says; of delay_queue_callback it is known only that there is a number (neither
/// document speaks of buckets), so number 0 is tried as well if a count is given. A missing bucket is an
/// empty one.
class Buckets {
 public:
  using Take = std::function<Status(const std::string& bucket, const std::vector<RedisReader::Pair>& page)>;

  /// From `first` to `options.count`; a count of 0: all that are there with a number. `prefixes` are those of
  /// the system's own names.
  Buckets(std::vector<std::string> prefixes, uint32_t first, const BucketOptions& options);

  Result<std::vector<std::string>> keys(const RedisReader& redis) const;
  /// Members of all of them together.
  Result<uint64_t> total(const RedisReader& redis) const;
  /// All members with their scores, page by page.
  Status read(const RedisReader& redis, const Take& take) const;

 private:
  Status add_numbered(const RedisReader& redis, const std::string& prefix,
                      std::vector<std::string>& keys) const;

  std::vector<std::string> prefixes_;
  uint32_t first_;
  uint32_t count_;
};

/// Seconds or milliseconds as a lease, clamped to the limits of a lease; empty for none.
std::string lease_of_seconds(int64_t seconds);
std::string lease_of_millis(int64_t millis);

}  // namespace delayq::cli::seeds
