#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/redis_process.h"

namespace delayq::support {

/// Three masters with a third of the slots each, and a replica of each: nodes 0 to 2 and 3 to 5. A master
/// that does not reply for half a second is replaced.
class RedisCluster {
 public:
  explicit RedisCluster(const std::vector<std::string>& arguments = {});

  const std::vector<std::unique_ptr<RedisProcess>>& nodes() const { return nodes_; }
  std::vector<uint16_t> ports() const;
  /// The index of the node that has the slot, according to a running node.
  size_t owner_of(uint16_t slot);
  /// The id of node `index` in CLUSTER commands: 40 hexadecimal digits.
  static std::string id_of(size_t index);
  /// Waits until every running node reports that the cluster is healthy.
  void wait_until_well();
  /// Waits until the masters agree on the owner and epoch of every slot. If a slot is moved before that, it
  /// may return to its former owner, and Redis deletes its keys. REQUIRES: all masters run.
  void wait_until_agreed();

 private:
  void start(const std::vector<std::string>& arguments);
  void write_file(size_t index) const;

  std::vector<std::unique_ptr<RedisProcess>> nodes_;
  std::vector<uint16_t> bus_ports_;
};

}  // namespace delayq::support
