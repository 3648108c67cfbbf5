#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "net/redis/options.h"

namespace delayq::net::redis {

/// The kinds of error replies, by what the client does next.
enum class Refusal : uint8_t {
  kFinal,       ///< the command was wrong, or failed
  kNotNow,      ///< Redis did nothing, and cannot at the moment: BUSY, MISCONF, NOREPLICAS, ...
  kTryAgain,    ///< Redis did nothing, and can soon: TRYAGAIN, CLUSTERDOWN, LOADING
  kNoScript,    ///< it does not know the script
  kMoved,       ///< another node has the slot
  kAsk,         ///< another node has the key, this once
  kNotMaster,   ///< this is a replica: READONLY
  kOutOfMemory  ///< of Redis
};

Refusal refusal_of(std::string_view text);

/// The error that a caller gets for an error reply.
Error error_of(std::string_view text);

/// Where a MOVED or an ASK points: "MOVED 3999 127.0.0.1:6381". A node that does not know its own name writes
/// ":6381"; then the host is that of `asked`.
struct Redirection {
  uint16_t slot = 0;
  Address to;
};
std::optional<Redirection> redirection_of(std::string_view text, const Address& asked);

}  // namespace delayq::net::redis
