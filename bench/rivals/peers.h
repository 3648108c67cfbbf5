#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

/// Durable pushes of delayed jobs into each store, all with the same bodies and delay.
namespace delayq::bench {

inline constexpr size_t kBodySize = 128;
/// A peer that takes longer is stopped, and its rate is that of what it had answered.
inline constexpr std::chrono::seconds kPeerLimit{60};

struct Measurement {
  uint64_t jobs = 0;         ///< answered; fewer than asked for when the time was up
  double per_second = 0;     ///< answered pushes
  double bytes_per_job = 0;  ///< RAM that a pending job takes
};

/// beanstalkd with its binlog, synced at most 50 ms after the reply (its default). RAM: growth of its
/// resident set.
Result<Measurement> measure_beanstalkd(uint64_t jobs);

/// Redis with a script that does HSET + ZADD per job. `fsync` is its appendfsync: "always" syncs before the
/// reply, "everysec" within a second after it. RAM: growth of its used_memory.
Result<Measurement> measure_redis(uint64_t jobs, std::string_view fsync);

/// The journal engine in this process, without a wire; 2,048 jobs a commit, the reply after fdatasync. RAM:
/// growth of this process's resident set, so it must be measured before anything else has used and freed
/// memory here.
Result<Measurement> measure_ours(uint64_t jobs);

}  // namespace delayq::bench
