#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/load/server_process.h"
#include "bench/load/temp_directory.h"

namespace delayq::bench {

/// A delayq server on a temporary directory of its own; both go with it.
class [[nodiscard]] OwnServer {
 public:
  /// `program` has `serve`; `durability` is "commit" or "interval".
  static Result<std::unique_ptr<OwnServer>> start(const std::string& program, const std::string& durability,
                                                  Deadline deadline);

  /// Asks the server to end, and waits for that.
  void stop() { process_.reset(); }
  /// After stop(): on the same data, at the same address. Answers when it accepts connections.
  Status start_again(Deadline deadline);

  Address address() const { return loopback(port_); }
  uint64_t resident_bytes() const { return process_->resident_bytes(); }

 private:
  OwnServer() = default;
  std::vector<std::string> command() const;

  TempDirectory directory_;
  uint16_t port_ = 0;
  std::string program_;
  std::unique_ptr<ServerProcess> process_;
};

}  // namespace delayq::bench
