#pragma once

#include <cstdint>
#include <span>
#include <sys/epoll.h>
#include <vector>

#include "bench/load/connection.h"
#include "bench/load/loopback.h"

namespace delayq::bench {

/// Many connections to one server, watched together.
class Lanes {
 public:
  /// Connects to the servers in turn. REQUIRES: at least one.
  static Result<Lanes> connect(const std::vector<Address>& servers, size_t count);

  size_t size() const { return connections_.size(); }
  Connection& operator[](size_t lane) { return connections_[lane]; }

  /// Sends what a lane has to send; the rest goes when its socket takes it.
  Status flush(size_t lane);

  /// The lanes that have something to read, or whose socket takes more, after at most `limit`. When nothing
  /// comes, every lane that waits for many bytes is named: what came may be less than it hoped for.
  Result<std::span<const uint32_t>> wait(Millis limit);

 private:
  struct State {
    bool is_sending = false;
  };

  std::vector<Connection> connections_;
  std::vector<State> states_;
  Descriptor poller_;
  std::vector<epoll_event> events_;
  std::vector<uint32_t> ready_;
};

}  // namespace delayq::bench
