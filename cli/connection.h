#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "ops/address.h"
#include "resp/value.h"

namespace delayq::cli {

/// One conversation with a server over a socket, a command at a time. Blocks, but never longer than it was
/// told. Not for several threads.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  /// kUnavailable, with what to do about it, when nobody answers there within `patience`.
  static Result<Connection> open(const Address& address, Millis patience);

  ~Connection();
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&&) = delete;

  /// Sends a command and waits for its reply. After an error the conversation is over: a reply may still
  /// come, and would be taken for the next one's.
  Result<resp::Value> ask(std::span<const std::string_view> command, Millis patience);

 private:
  Connection(int socket, std::string name) : socket_(socket), name_(std::move(name)) {}

  Status send(std::string_view bytes, Clock::time_point deadline);
  /// Appends what comes to `input_`.
  Status receive(Clock::time_point deadline);

  int socket_;
  std::string name_;  ///< of the other end, for messages
  std::string input_;
};

}  // namespace delayq::cli
