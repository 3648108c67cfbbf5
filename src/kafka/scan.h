#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "kafka/client_options.h"
#include "kafka/consumer.h"

namespace delayq::kafka {

struct ScanOptions {
  ClientOptions client;
  std::vector<std::string> topics;
  /// The scan begins where this group has got to. Empty, or without a committed offset: at the first record.
  std::string group;
  Millis patience = std::chrono::seconds{30};  ///< if no broker answers for so long, the scan fails
};

struct ScanReport {
  uint64_t records = 0;
  std::vector<std::string> missing;  ///< topics that do not exist
};

/// Reads topics once, to the ends that they had at the beginning. `take` gets each record; an error of it
/// ends the scan. The scan is no member of the group and commits nothing. Blocks. Errors: kUnavailable,
/// kForbidden, kInvalid for options that check_options() refuses.
Result<ScanReport> scan(const ScanOptions& options, const std::function<Status(const InputRecord&)>& take);

/// The groups that have committed offsets in any of these topics. Blocks.
Result<std::vector<std::string>> groups_of(const ClientOptions& client, std::span<const std::string> topics,
                                           Millis patience);

}  // namespace delayq::kafka
