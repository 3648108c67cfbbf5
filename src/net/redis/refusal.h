#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "net/redis/options.h"

namespace delayq::net::redis {

/// What follows from an error reply.
enum class Refusal : uint8_t {
  kFinal,       ///< the command was wrong, or failed
  kNotNow,      ///< Redis did nothing and cannot now: BUSY, MISCONF, NOREPLICAS, ...
  kTryAgain,    ///< it did nothing and will soon: TRYAGAIN, CLUSTERDOWN, LOADING
  kNoScript,    ///< it does not know the script
  kMoved,       ///< another node has the slot
  kAsk,         ///< another node has the key, this once
  kNotMaster,   ///< this is a replica: READONLY
  kOutOfMemory  ///< of Redis
};

Refusal refusal_of(std::string_view text);

/// The error that a caller gets for an error reply.
Error error_of(std::string_view text);

/// Where a MOVED or an ASK points: "MOVED 3999 127.0.0.1:6381". A node that does not know its own name says
/// ":6381", which is `asked`'s host.
struct Redirection {
  uint16_t slot = 0;
  Address to;
};
std::optional<Redirection> redirection_of(std::string_view text, const Address& asked);

}  // namespace delayq::net::redis
