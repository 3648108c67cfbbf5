#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/limits.h"
#include "queue/settings.h"

namespace delayq {

/// The Redis that jobs can be delivered to.
struct RedisOutlet {
  /// Whether a Redis is configured. Without one, settings that deliver to Redis are refused.
  bool is_there = false;
  /// Keys with this prefix are used by the engine: no topic may write to them. Empty: all keys are allowed.
  std::string taken_prefix{};
};

/// The configuration of a queue. When a bound is reached, pushes and pops fail with kOverloaded (for the
/// disk: kDiskFull) and a `retry_after`. Verbs that free room are never refused.
struct QueueConfig {
  static constexpr uint64_t kUnbounded = std::numeric_limits<uint64_t>::max();

  Limits limits{};
  Settings defaults{};  ///< for all topics; settings stored under "*" override them
  RedisOutlet redis{};
  /// Whether brokers of Kafka are configured. Without, settings that deliver to Kafka are refused.
  bool has_kafka = false;

  uint64_t unanswered_bytes = uint64_t{64} << 20;  ///< bytes of pushes that are not durable yet
  uint64_t jobs = kUnbounded;
  uint64_t schedules = 100'000;
  /// False: schedules are stored and read but make no jobs. For programs that only copy what is stored.
  bool makes_occurrences = true;
  uint64_t memory_bytes = kUnbounded;              ///< memory of the engine's tables
  uint64_t disk_free_bytes = uint64_t{256} << 20;  ///< pushes are refused when less than this is free

  Millis forget_topics_after = std::chrono::minutes{5};  ///< if empty, unused, and without settings
};

}  // namespace delayq
