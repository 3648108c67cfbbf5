#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "bench/load/server_process.h"
#include "bench/load/temp_directory.h"

/// The peers from Debian, each on a directory of its own.
namespace delayq::bench {

inline constexpr size_t kBodySize = 128;

/// A peer that runs, and its files; both go with it.
class [[nodiscard]] Peer {
 public:
  Address address() const { return loopback(port_); }
  const std::string& directory() const { return directory_.path(); }
  const ServerProcess& process() const { return *process_; }

  /// beanstalkd with its binlog, synced at most 50 ms after the reply: its default.
  static Result<std::unique_ptr<Peer>> beanstalkd(Deadline deadline);

  /// Redis with its append-only file. `fsync` is its appendfsync: "always" syncs before the reply, "everysec"
  /// within a second after it.
  static Result<std::unique_ptr<Peer>> redis(std::string_view fsync, Deadline deadline);

  /// Asks the peer to end, and waits for that.
  void stop() { process_.reset(); }
  /// After stop(): on the same files, at the same address.
  Status start_again(Deadline deadline);

 private:
  Peer() = default;
  static Result<std::unique_ptr<Peer>> start(std::vector<std::string> command, std::unique_ptr<Peer> peer,
                                             uint16_t port, Deadline deadline);

  TempDirectory directory_;
  uint16_t port_ = 0;
  std::vector<std::string> command_;
  std::unique_ptr<ServerProcess> process_;
};

}  // namespace delayq::bench
