#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

#include "bench/rivals/descriptor.h"
#include "bench/rivals/loopback.h"
#include "core/result.h"

namespace delayq::bench {

/// Whether `program` is on the PATH.
bool is_installed(const std::string& program);

/// A server as a child process: it ends with this object, and with this process should that be killed.
class [[nodiscard]] PeerProcess {
 public:
  /// Starts `command` and waits until it accepts connections on 127.0.0.1:`port`. What it prints goes to a
  /// file in `directory`, and its end into the error when it does not come up.
  static Result<std::unique_ptr<PeerProcess>> start(std::vector<std::string> command, uint16_t port,
                                                    const std::string& directory, Deadline deadline);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  uint16_t port() const { return port_; }
  /// Resident memory of the peer now.
  uint64_t resident_bytes() const;

 private:
  PeerProcess(pid_t pid, Descriptor handle, uint16_t port);
  bool exited_within(Millis wait) const;

  pid_t pid_;
  Descriptor handle_;  // becomes readable when the process has ended
  uint16_t port_;
};

}  // namespace delayq::bench
