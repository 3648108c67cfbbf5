#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/server.h"
#include "cli/stream.h"
#include "core/result.h"
#include "resp/value.h"

namespace delayq::cli {

/// One connection to a server: sends commands and returns their replies in the same order. Blocks, but never
/// longer than the given time. Not thread-safe.
class Connection {
 public:
  using Clock = Stream::Clock;

  /// Authenticates if there is a token. kUnavailable, with what to do about it, if there is no answer within
  /// `patience`; kUnauthorized if the token is refused.
  static Result<Connection> open(const Server& server, Millis patience);
  /// Over TCP, without a token.
  static Result<Connection> open(const Address& address, Millis patience);

  /// Sends a command and waits for its reply. After an error the connection cannot be used any more: a late
  /// reply would be taken for the next one.
  Result<resp::Value> ask(std::span<const std::string_view> command, Millis patience);
  /// The same for several that are sent together. Their replies must fit into the megabyte that a server
  /// keeps for a client that does not read.
  Result<std::vector<resp::Value>> ask_all(std::span<const std::vector<std::string>> commands,
                                           Millis patience);

 private:
  explicit Connection(Stream stream) : stream_(std::move(stream)) {}

  Status introduce(const std::string& token, Millis patience);
  Result<resp::Value> read_reply(Clock::time_point deadline, Millis patience);

  Stream stream_;
  std::string input_;
};

}  // namespace delayq::cli
