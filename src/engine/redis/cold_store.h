#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "engine/engine.h"

namespace delayq::redis {

/// Where a record is in the cold store. No other record ever has this place.
struct ColdPlace {
  uint32_t step = 0;  ///< which one, in the store's own numbers; not those of step_for()
  int32_t partition = 0;
  int64_t offset = 0;

  auto operator<=>(const ColdPlace&) const = default;
};

/// Keeps records, outside of Redis, for jobs that are due much later: in steps, each with its own waiting
/// time. All records of a step wait equally long, so they come back in the order in which they were stored.
///
/// It does not know the jobs: a record may come back although nobody needs it, and it may come back twice.
///
/// Replies and arrivals come only from poll() and arrivals(), never from inside another call. All methods are
/// called from one thread. A reply that is outstanding when the store is destroyed is never called.
class ColdStore {
 public:
  struct Record {
    ColdPlace place;
    std::string value;
  };

  virtual ~ColdStore() = default;

  /// The step for a job that is due after `left`; nullopt: it is due too soon, and stays in Redis.
  virtual std::optional<uint32_t> step_for(Millis left) const = 0;
  /// The shortest time for which step_for() returns a step.
  virtual Millis least() const = 0;

  /// Stores a record. It comes back when the step's time has passed, and not before. Replies when it is
  /// durable; kTooLarge or kInvalid: it never will be. After another error it may be there or not.
  virtual void put(Moment now, uint32_t step, std::string_view key, std::string_view value,
                   Reply<ColdPlace> reply) = 0;
  /// Reads a record at its place, before or after it has come back. nullopt: it is gone.
  virtual void fetch(const ColdPlace& place, Reply<std::optional<std::string>> reply) = 0;

  /// Returns records whose time has come, up to a bound. They come back again, to this server or another one,
  /// until finish() is called for them and all records of their partition before them.
  virtual std::vector<Record> arrivals(Moment now) = 0;
  virtual void finish(const ColdPlace& place) = 0;

  /// Returns when arrivals() may have something, if nothing happens before.
  virtual Moment tick(Moment now) = 0;
  /// Calls the replies that are pending. Returns whether anything has happened.
  virtual bool poll() = 0;
  /// Calls to put() and fetch() without a reply.
  virtual size_t outstanding() const = 0;
  /// Called from any thread when poll() has work.
  virtual void set_wakeup(std::function<void()> wakeup) = 0;
};

}  // namespace delayq::redis
