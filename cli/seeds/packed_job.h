#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"

namespace delayq::cli::seeds {

/// A job as go-delay-queue packs it: a MessagePack map with the keys "1" topic, "2" id, "3" delay and "4"
/// execution time in seconds, "5" body. Other keys are passed over.
struct PackedJob {
  std::string topic;
  std::string id;
  std::optional<double> delay{};
  std::optional<double> exec_time{};
  std::string body{};
};

/// kCorrupt, with what is wrong, for bytes that are no such map.
Result<PackedJob> unpack_job(std::string_view bytes);

}  // namespace delayq::cli::seeds
