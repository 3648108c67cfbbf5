#pragma once

#include <string>
#include <string_view>

#include "core/error.h"

namespace delayq::redis {

/// A call that Redis refused, as context for messages.
struct Refused {
  std::string_view script;       ///< its name; empty: a plain command
  std::string_view tag;          ///< of the shard; empty: no shard
  std::string_view key;          ///< that the call used; empty: one of several
  std::string_view prefix;       ///< of all keys
  std::string_view prefix_name;  ///< name of the setting that chooses the prefix
};

struct Explained {
  Error error;          ///< for the client: what it means, without details of scripts
  std::string problem;  ///< for the log: what is wrong with the keys and what to do; empty: nothing
};

/// Explains an error of Redis. If another program uses a key, the code is kUnavailable; any other failure of
/// a script is kCorrupt, because the client cannot do anything about it. Full memory stays kOverloaded.
/// Errors that are not about keys stay as they are, without name and line of the script.
Explained explain(Error error, const Refused& call);

/// The error of a push, real or empty, while Redis accepts no new jobs.
Error out_of_memory(std::string_view op);

}  // namespace delayq::redis
