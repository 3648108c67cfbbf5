#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/limits.h"
#include "queue/settings.h"

namespace delayq {

/// The Redis that jobs can be brought to.
struct RedisOutlet {
  /// Whether there is one; else a topic cannot have its jobs delivered there.
  bool is_there = false;
  /// Keys that begin so have another use there: no topic writes to them. Empty: all are free.
  std::string taken_prefix{};
};

/// Everything about a queue that is configuration. Bounds that are reached are told as kOverloaded (the
/// disk's as kDiskFull), with a time after which to try again; only pushes and pops are refused, never what
/// frees room.
struct QueueConfig {
  static constexpr uint64_t kUnbounded = std::numeric_limits<uint64_t>::max();

  Limits limits;
  Settings defaults;  ///< for all topics; settings stored under "*" go before these
  RedisOutlet redis;

  uint64_t unanswered_bytes = uint64_t{64} << 20;  ///< of pushes that are not durable yet
  uint64_t jobs = kUnbounded;
  uint64_t memory_bytes = kUnbounded;              ///< of the engine's tables
  uint64_t disk_free_bytes = uint64_t{256} << 20;  ///< pushes are refused when less than this is free

  Millis forget_topics_after = std::chrono::minutes{5};  ///< empty, unused, and without settings
};

}  // namespace delayq
