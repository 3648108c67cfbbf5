#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cli/seeds/redis_reader.h"
#include "cli/seeds/seed_job.h"

namespace delayq::cli::seeds {

/// Takes what a layout finds.
class Sink {
 public:
  virtual ~Sink() = default;

  /// An error ends the reading.
  virtual Status job(SeedJob job) = 0;
  /// Something waits there that cannot be taken over. `why` is the same for all of a kind; `where` is the
  /// key, or the key and what is in it.
  virtual void unreadable(std::string where, std::string why) = 0;
  /// A job that is still there, but waits for nothing any more.
  virtual void over() = 0;
  /// Something waits whose job is not there any more. Two of the systems leave it behind when a job is
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

/// The layout of one of kSystems; null for any other name. `buckets` is how many delay buckets the systems
/// that have several were configured with; 0: as many as there are.
std::unique_ptr<Layout> layout_of(std::string_view system, uint32_t buckets);

/// Each system's own; layout_of() knows them by name.
std::unique_ptr<Layout> go_delay_queue_layout(uint32_t buckets);
std::unique_ptr<Layout> callback_layout(uint32_t buckets);
std::unique_ptr<Layout> delayq_server_layout();
std::unique_ptr<Layout> delayq_library_layout();

/// The delay buckets of a system that has several: zsets with a number behind a prefix. go-delay-queue has 1
/// to N, as its source says; of delay_queue_callback it is known only that there is a number (neither
/// document speaks of buckets), so that where they are counted, one with the number 0 is looked for as well.
/// A bucket that is not there is an empty one.
class Buckets {
 public:
  using Take = std::function<Status(const std::string& bucket, const std::vector<RedisReader::Pair>& page)>;

  /// From `first` to `count`; a count of 0: all that are there with a number.
  Buckets(std::string_view prefix, uint32_t first, uint32_t count)
      : prefix_(prefix), first_(first), count_(count) {}

  Result<std::vector<std::string>> keys(const RedisReader& redis) const;
  /// Members of all of them together.
  Result<uint64_t> total(const RedisReader& redis) const;
  /// All members with their scores, page by page.
  Status read(const RedisReader& redis, const Take& take) const;

 private:
  std::string_view prefix_;
  uint32_t first_;
  uint32_t count_;
};

/// Seconds as a lease, within what a lease may be.
std::string lease_of_seconds(int64_t seconds);

}  // namespace delayq::cli::seeds
