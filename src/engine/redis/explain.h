#pragma once

#include <string>
#include <string_view>

#include "core/error.h"

namespace delayq::redis {

/// A call that Redis refused, for messages about it.
struct Refused {
  std::string_view script;       ///< its name; empty: a plain command
  std::string_view tag;          ///< of the shard; empty: of none
  std::string_view key;          ///< that was asked about; empty: one of several
  std::string_view prefix;       ///< of all keys
  std::string_view prefix_name;  ///< where an operator chooses the prefix
};

struct Explained {
  Error error;          ///< for who asked: what it means to them, and nothing of a script
  std::string problem;  ///< for the log: what is wrong with the keys and what to do; empty: nothing is
};

/// What Redis's error means. A key that another program has is kUnavailable, any other failure of a script
/// kCorrupt: nothing that who asked could do better. A full memory stays kOverloaded, and what is not about
/// keys stays as it is, without the name and line of a script.
Explained explain(Error error, const Refused& call);

/// Redis accepts no new jobs: what a push is told, and who asks whether one would be accepted.
Error out_of_memory(std::string_view op);

}  // namespace delayq::redis
