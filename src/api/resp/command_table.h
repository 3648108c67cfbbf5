#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace delayq::resp {

/// Everything that can be said.
enum class Verb : uint8_t {
  kPush,
  kPop,
  kAck,
  kNack,
  kExtend,
  kGet,
  kCancel,
  kCancelGroup,
  kReschedule,
  kRedrive,
  kPurge,
  kPause,
  kResume,
  kTopics,
  kStats,
  kList,
  kPing,
  kEcho,
  kAuth,
  kHello,
  kInfo,
  kCommand,
  kClient,
  kConfig,
  kSelect,
  kReset,
  kQuit,
};

/// One row per command: what COMMAND tells, and what an error quotes.
struct CommandSpec {
  Verb verb;
  std::string_view name;  ///< in capitals
  uint32_t min_arguments;
  uint32_t max_arguments;
  bool writes;
  std::string_view usage;
  std::string_view summary;
};

inline constexpr uint32_t kAnyNumber = UINT32_MAX;

std::span<const CommandSpec> all_commands();

/// Null when there is none of that name; capitals do not matter.
const CommandSpec* find_command(std::string_view name);

}  // namespace delayq::resp
