#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "resp/value.h"

namespace delayq::support {

/// A plain connection to a Redis on 127.0.0.1, one command at a time: how tests look at a server, and play
/// with it, without the client that they test. Its calls end after ten seconds.
class RedisWire {
 public:
  explicit RedisWire(uint16_t port);
  ~RedisWire();
  RedisWire(const RedisWire&) = delete;
  RedisWire& operator=(const RedisWire&) = delete;

  /// Whether the server has not hung up so far.
  bool is_open();
  /// Nothing when the connection is gone.
  std::optional<resp::Value> command(std::initializer_list<std::string_view> words);

 private:
  void close();

  int socket_;
  std::string input_;
};

}  // namespace delayq::support
