#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/histogram.h"

namespace delayq::webhook {

/// How calls ended, in a fixed number of classes, whatever receivers answer.
enum class CallClass : uint8_t {
  k1xx,
  k2xx,
  k3xx,
  k4xx,
  k5xx,
  kRefused,
  kResolve,
  kConnect,
  kTls,
  kTimeout,
  kOther
};
inline constexpr size_t kCallClassCount = 11;
inline constexpr std::array<std::string_view, kCallClassCount> kCallClassNames{
    "1xx", "2xx", "3xx", "4xx", "5xx", "refused_address", "resolve", "connect", "tls", "timeout", "other"};

/// What the webhook sink has done since the start, and does now.
struct WebhookFigures {
  std::array<uint64_t, kCallClassCount> calls{};
  uint64_t delivered = 0;   ///< jobs whose call was a success
  uint64_t failed = 0;      ///< to be tried again, or dead, as the queue decides
  uint64_t given_back = 0;  ///< taken and not called: a full or dead host, a stop
  uint64_t in_flight = 0;   ///< now
  uint64_t waiting = 0;     ///< now: taken, and waiting for a place at their host
  uint64_t open_hosts = 0;  ///< now
  Histogram<28> micros;     ///< how long calls took
};

}  // namespace delayq::webhook

namespace delayq::delivery {

/// What was written to Redis since the start, and is being written now.
struct RedisSinkFigures {
  uint64_t delivered = 0;   ///< jobs that Redis has
  uint64_t failed = 0;      ///< refused by Redis: to be tried again, or dead, as the queue decides
  uint64_t given_back = 0;  ///< taken and not known to be written: Redis was away, or a stop
  uint64_t in_flight = 0;   ///< now
  bool connected = false;   ///< now
};

}  // namespace delayq::delivery
