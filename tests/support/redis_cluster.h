#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/redis_process.h"

namespace delayq::support {

/// Three masters with a third of the slots each, and a replica of each: nodes 0 to 2 and 3 to 5. A master
/// that is gone for half a second is replaced.
class RedisCluster {
 public:
  explicit RedisCluster(const std::vector<std::string>& arguments = {});

  const std::vector<std::unique_ptr<RedisProcess>>& nodes() const { return nodes_; }
  std::vector<uint16_t> ports() const;
  /// The index of the node that has the slot, by what a running node says.
  size_t owner_of(uint16_t slot);
  /// As CLUSTER knows node `index`: 40 hexadecimal digits.
  static std::string id_of(size_t index);
  /// Until every running node says that all is well.
  void wait_until_well();
  /// Until the masters know the same owner and epoch of every slot. A slot that is moved on before that may
  /// fall back to its former owner, and Redis deletes its keys. REQUIRES: all masters run.
  void wait_until_agreed();

 private:
  void start(const std::vector<std::string>& arguments);
  void write_file(size_t index) const;

  std::vector<std::unique_ptr<RedisProcess>> nodes_;
  std::vector<uint16_t> bus_ports_;
};

}  // namespace delayq::support
