#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "net/redis/options.h"
#include "resp/value.h"

namespace delayq::net::redis {

/// Slots of a cluster that one master has.
struct SlotRange {
  uint16_t first = 0;
  uint16_t last = 0;  ///< included
  Address master;

  bool operator==(const SlotRange&) const = default;
};

/// Reads the reply to CLUSTER SLOTS that `asked` gave. A node that does not know its own name leaves it out:
/// then it is the one by which it was asked.
Result<std::vector<SlotRange>> slot_ranges(const resp::Value& reply, const Address& asked);

}  // namespace delayq::net::redis
