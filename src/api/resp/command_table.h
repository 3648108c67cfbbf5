#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/token.h"

namespace delayq::resp {

/// All commands.
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
  kUnset,
  kForget,
  kTopics,
  kStats,
  kList,
  kExport,
  kImport,
  kBackup,
  kMulti,
  kExec,
  kDiscard,
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

/// Where a command names its topics, for callers that may not use all of them.
enum class Topics : uint8_t {
  kNone,        ///< nowhere, or the verb itself checks each
  kFirst,       ///< the first argument
  kFirstOfTwo,  ///< the first argument when there is a second; else it is about any topic
  kFirstIfAny,  ///< the first argument when there is one; else it is about all
  kFirstLease,  ///< in the lease that is the first argument
  kLeases,      ///< in leases: all arguments
  kAll,         ///< it is about all of them
};

/// No token is needed.
inline constexpr Scopes kForEverybody = 0;

/// One row per command: the source of the reply to COMMAND, of error messages and of the reference page.
struct CommandSpec {
  Verb verb;
  std::string_view name;  ///< in capitals
  uint32_t min_arguments;
  uint32_t max_arguments;
  bool writes;
  Scopes scopes;  ///< one of these is needed
  Topics topics;
  std::string_view usage;
  std::string_view summary;
};

inline constexpr uint32_t kAnyNumber = UINT32_MAX;

std::span<const CommandSpec> all_commands();

/// Returns null for an unknown name. Upper and lower case are the same.
const CommandSpec* find_command(std::string_view name);

/// docs/reference/resp.md, written from the command table and the error table.
std::string command_reference();

}  // namespace delayq::resp
