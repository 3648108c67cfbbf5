#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "resp/value.h"
#include "tests/support/redis_wire.h"
#include "tests/support/temporary_directory.h"

namespace delayq::support {

/// A port of 127.0.0.1 on which nobody listens now.
uint16_t free_port();

/// Asks `is_so` again and again until it says yes. Throws after `seconds`, naming `what`; so a test that went
/// wrong fails instead of hanging.
void wait_until(std::string_view what, const std::function<bool()>& is_so, int seconds = 20);

/// A redis-server of its own on 127.0.0.1, in a directory that goes with it. It is killed by its pid when
/// this goes, and by the kernel should the test die first. Whoever makes one must outlive it: it is bound to
/// that thread.
///
///   RedisProcess redis;                          // no persistence
///   RedisProcess redis({"--appendonly", "yes"}); // and it has its data again after kill() and start()
class RedisProcess {
 public:
  explicit RedisProcess(std::vector<std::string> arguments = {});
  ~RedisProcess();
  RedisProcess(const RedisProcess&) = delete;
  RedisProcess& operator=(const RedisProcess&) = delete;

  uint16_t port() const { return port_; }
  const TemporaryDirectory& directory() const { return directory_; }

  /// kill -9, and waits for its end.
  void kill();
  /// On the same port with the same files. Answers when it answers to PING.
  void start();
  /// SIGSTOP: connections stay, nothing is answered.
  void pause();
  void resume();
  bool is_running() const { return pid_ > 0; }

  /// Runs a command on a connection that is kept for this. Throws when there is no reply; an error reply is a
  /// value.
  resp::Value command(std::initializer_list<std::string_view> words);
  /// Closes the connections of all clients but this one.
  void kill_clients();

 protected:
  /// For servers that are started with a file: `write_files` makes it, once the port is known.
  struct Later {};
  RedisProcess(Later, uint16_t port, std::vector<std::string> arguments);

 private:
  friend class RedisSentinels;
  friend class RedisCluster;

  void launch();
  bool has_ended();
  void wait_for_ping();

  TemporaryDirectory directory_;
  uint16_t port_ = 0;
  std::vector<std::string> arguments_;
  int pid_ = 0;
  int pid_file_descriptor_ = -1;
  std::unique_ptr<RedisWire> wire_;
};

/// A master, two replicas and three sentinels that notice within half a second when the master is gone.
class RedisSentinels {
 public:
  static constexpr std::string_view kMasterName = "jobs";

  explicit RedisSentinels(const std::vector<std::string>& arguments = {});

  /// The servers; the first begins as the master.
  const std::vector<std::unique_ptr<RedisProcess>>& servers() const { return servers_; }
  const std::vector<std::unique_ptr<RedisProcess>>& sentinels() const { return sentinels_; }
  std::vector<uint16_t> sentinel_ports() const;
  /// The one that the first running sentinel names.
  RedisProcess& master();

 private:
  void write_file(RedisProcess& sentinel, size_t index);

  std::vector<std::unique_ptr<RedisProcess>> servers_;
  std::vector<std::unique_ptr<RedisProcess>> sentinels_;
};

/// Three masters with a third of the slots each, and a replica of each: nodes 0 to 2 and 3 to 5.
class RedisCluster {
 public:
  explicit RedisCluster(const std::vector<std::string>& arguments = {});

  const std::vector<std::unique_ptr<RedisProcess>>& nodes() const { return nodes_; }
  std::vector<uint16_t> ports() const;
  /// The node that has the key's slot, by what a running node says.
  RedisProcess& owner_of(uint16_t slot);
  /// As CLUSTER knows node `index`: 40 hexadecimal digits.
  static std::string id_of(size_t index);
  /// Every running node says that all is well.
  void wait_until_well();

 private:
  void write_file(size_t index);

  std::vector<std::unique_ptr<RedisProcess>> nodes_;
  std::vector<uint16_t> bus_ports_;
};

}  // namespace delayq::support
