#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/random.h"
#include "engine/engine.h"
#include "engine/redis/arguments.h"
#include "engine/redis/cold_store.h"
#include "engine/redis/record.h"
#include "net/redis/client.h"

namespace delayq::redis {

/// What a ColdTier has done since the start.
struct ColdFigures {
  uint64_t written = 0;        ///< records that the store has confirmed
  uint64_t written_bytes = 0;  ///< of them
  uint64_t returned = 0;       ///< records that came back when their step was over
  uint64_t returned_bytes = 0;
  uint64_t cooled = 0;       ///< bodies moved from Redis to the store
  uint64_t moved = 0;        ///< records moved within the store
  uint64_t warmed = 0;       ///< bodies moved back
  uint64_t fetched = 0;      ///< records read at their place: look-ups, and bodies that were needed early
  uint64_t stale = 0;        ///< records that came back and were not needed: cancelled, replaced, doubled
  uint64_t foreign = 0;      ///< records that are not of this deployment
  uint64_t put_errors = 0;   ///< records that the store did not take
  uint64_t lost_bodies = 0;  ///< reads that found no record where a job's body should be
};

/// Moves the bodies of jobs between Redis and a cold store.
///
/// The head of a job stays in Redis, so a job in the cold store differs from others only in its record. The
/// order of the steps is such that a crash between any two loses nothing, and that doing a step twice changes
/// nothing (docs/internals/kafka-engine.md):
///
///   cool    read the job, store a record, wait until it is durable, replace the body by its place
///   move    a record has come back, and its job is not due soon: store it again, note the place, finish
///   warm    a record has come back, and its job is due soon: put the body back into Redis, finish
///   fulfil  a body is needed early (rescheduled, or due and not back): read the record at its place, put
///           the body back; its record is stale when it comes back
///
/// If a step fails, because Redis or the store is away, it is tried again. Used by RedisEngine; for one
/// thread.
class ColdTier {
 public:
  /// How scripts about a whole shard are called.
  struct Redis {
    std::string deployment;  ///< the prefix of the keys
    uint32_t shards = 1;
    std::function<uint32_t(std::string_view id)> shard_of;
    /// The arguments that each script gets first.
    std::function<Arguments(Moment now, uint32_t shard)> arguments;
    std::function<void(const net::redis::Script&, uint32_t shard, const Arguments&, net::redis::Answer)> run;
  };

  /// The store must outlive this. No call of `redis` may be answered after this is destroyed.
  ColdTier(ColdStore& store, Redis redis, uint64_t seed);

  Millis least() const { return store_.least(); }

  /// Moves bodies of the shard to the store. Called by the server that drives it.
  void cool(Moment now, uint32_t shard);
  /// Brings back bodies of the shard that are needed now. Called by the server that drives it.
  void fulfil(Moment now, uint32_t shard);

  /// Reads a body where it is, for a look-up. kUnavailable: the store does not answer. kNotFound: there is no
  /// such record; if the job has moved meanwhile, its record says where.
  void fetch(const ColdBody& where, std::string topic, std::string id, Reply<std::string> reply);

  /// Handles the records that have come back. Returns when to be called next.
  Moment tick(Moment now);
  /// Calls pending replies. Returns whether anything has happened.
  bool poll();
  size_t outstanding() const { return store_.outstanding(); }
  void set_wakeup(std::function<void()> wakeup) { store_.set_wakeup(std::move(wakeup)); }

  const ColdFigures& figures() const { return figures_; }
  /// Records that have come back or were fetched, and are not done.
  size_t open() const { return open_; }
  /// The last thing that went wrong and may need an operator; empty: nothing so far.
  std::string_view problem() const { return problem_; }

 private:
  struct Cooling;
  struct Arrival;
  using Arriving = std::shared_ptr<Arrival>;
  struct Shard {
    bool is_cooling = false;
    bool is_asking = false;  ///< for wishes
    // Sent by flush().
    std::vector<Arriving> to_peek;
    std::vector<Arriving> to_warm;
    std::vector<Arriving> to_note_moved;
  };

  void candidates_came(uint32_t shard, const Result<resp::Value>& answer);
  void put_candidate(const std::shared_ptr<Cooling>& cooling, const std::string& topic, const std::string& id,
                     std::string_view bytes);
  void finish_cooling(const std::shared_ptr<Cooling>& cooling);

  /// Reads the record of a job at its place, and checks that it is that.
  void read_at(const ColdBody& where, std::string topic, std::string id, Reply<Arriving> reply);
  void wishes_came(uint32_t shard, const Result<resp::Value>& answer);

  void arrived(ColdStore::Record record);
  void move(const Arriving& arrival, uint32_t step);
  /// Calls a script for all of them. `read` is called with each, and what the script said of it; those of a
  /// call that failed are tried again.
  template <class Add, class Read>
  void send(const net::redis::Script& script, uint32_t shard, const std::vector<Arriving>& arrivals, Add add,
            Read read);
  void send_peek(uint32_t shard, const std::vector<Arriving>& arrivals);
  void send_moved(uint32_t shard, const std::vector<Arriving>& arrivals);
  void send_warm(uint32_t shard, const std::vector<Arriving>& arrivals);
  bool is_full() const;
  void begin(const Arriving& arrival);
  void count_put(const Result<ColdPlace>& place, size_t bytes);
  /// Done with it: frees its share of the bounds, and lets the store go on.
  void finish(const Arriving& arrival);
  /// It is tried again after a moment.
  void retry(const Arriving& arrival);
  /// Sends what has been collected, in few calls.
  void flush();
  uint32_t new_version() { return static_cast<uint32_t>(random_.between(1, UINT32_MAX)); }

  ColdStore& store_;
  Redis redis_;
  Random random_;
  Moment now_{};  ///< of the last call that had one
  std::vector<Shard> shards_;
  /// Records that have come back or were fetched, and are not done. Bounded by number and bytes.
  size_t open_ = 0;
  size_t open_bytes_ = 0;
  std::multimap<Moment, Arriving> retries_;
  ColdFigures figures_;
  std::string problem_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace delayq::redis
