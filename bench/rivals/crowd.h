#pragma once

#include <vector>

#include "bench/load/loopback.h"

namespace delayq::bench {

/// Connections that do nothing, some of them in a POP that waits, each on a topic of its own. They are closed
/// with it.
class [[nodiscard]] Crowd {
 public:
  static Result<Crowd> gather(const Address& server, size_t connections, size_t waiting);

  /// Whether nobody was sent away: an idle connection that can be read from was closed or answered.
  bool is_undisturbed() const;

 private:
  std::vector<Descriptor> sockets_;
};

}  // namespace delayq::bench
