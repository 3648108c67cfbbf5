#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/redis_process.h"

namespace delayq::support {

/// A master, two replicas and three sentinels that notice within half a second if the master fails.
class RedisSentinels {
 public:
  static constexpr std::string_view kMasterName = "jobs";

  /// The arguments are for the servers, not for the sentinels.
  explicit RedisSentinels(const std::vector<std::string>& arguments = {});

  /// The first one starts as the master.
  const std::vector<std::unique_ptr<RedisProcess>>& servers() const { return servers_; }
  const std::vector<std::unique_ptr<RedisProcess>>& sentinels() const { return sentinels_; }
  std::vector<uint16_t> sentinel_ports() const;
  /// The master according to the first running sentinel.
  RedisProcess& master();
  /// Waits until this many replicas of `master` have all its data.
  static void wait_for_replicas(RedisProcess& master, int count);

 private:
  void write_file(size_t index) const;

  std::vector<std::unique_ptr<RedisProcess>> servers_;
  std::vector<std::unique_ptr<RedisProcess>> sentinels_;
};

}  // namespace delayq::support
