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

/// One conversation with a server: commands, and their replies in the same order. Blocks, but never longer
/// than it was told. Not for several threads.
class Connection {
 public:
  using Clock = Stream::Clock;

  /// Authenticates if there is a token. kUnavailable, with what to do about it, if there is no answer within
  /// `patience`; kUnauthorized if the token is refused.
  static Result<Connection> open(const Server& server, Millis patience);
  /// Over TCP, without a token.
  static Result<Connection> open(const Address& address, Millis patience);

  /// Sends a command and waits for its reply. After an error the conversation is over: a reply may still
  /// come, and would be taken for the next one's.
  Result<resp::Value> ask(std::span<const std::string_view> command, Millis patience);
  /// The same for several that are sent together. Their replies have to fit into what a server keeps for a
  /// client that is not reading, which is a megabyte.
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
