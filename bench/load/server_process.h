#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

#include "bench/load/descriptor.h"
#include "bench/load/loopback.h"
#include "core/result.h"

namespace delayq::bench {

/// Whether `program` is on the PATH.
bool is_installed(const std::string& program);

/// A server as a child process: it ends with this object, and with this process should that be killed.
class [[nodiscard]] ServerProcess {
 public:
  /// Starts `command` and waits until it accepts connections on 127.0.0.1:`port`. What it prints goes to a
  /// file in `directory`, and its end into the error when it does not come up.
  static Result<std::unique_ptr<ServerProcess>> start(std::vector<std::string> command, uint16_t port,
                                                      const std::string& directory, Deadline deadline);
  /// Asks it to end (SIGTERM), and does not ask twice: it is killed after a while.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  uint16_t port() const { return port_; }
  pid_t pid() const { return pid_; }
  /// Resident memory of the server now.
  uint64_t resident_bytes() const;

 private:
  ServerProcess(pid_t pid, Descriptor handle, uint16_t port);
  bool exited_within(Millis wait) const;

  pid_t pid_;
  Descriptor handle_;  // becomes readable when the process has ended
  uint16_t port_;
};

}  // namespace delayq::bench
