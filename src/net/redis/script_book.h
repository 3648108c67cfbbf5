#pragma once

#include <absl/container/node_hash_map.h>

#include "net/redis/request.h"

namespace delayq::net::redis {

/// The scripts that were run so far, with their SHA1.
class ScriptBook {
 public:
  /// The reference stays good as long as the book does.
  const KnownScript& know(const Script& script);

 private:
  absl::node_hash_map<const char*, KnownScript> scripts_;  ///< by the place of the source
};

}  // namespace delayq::net::redis
