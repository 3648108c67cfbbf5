#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "resp/value.h"

namespace delayq::support {

/// A plain connection to a Redis on 127.0.0.1, one command at a time. Tests use it to inspect and change a
/// server without the client that they test. Its calls end after ten seconds.
class RedisWire {
 public:
  explicit RedisWire(uint16_t port);
  ~RedisWire();
  RedisWire(const RedisWire&) = delete;
  RedisWire& operator=(const RedisWire&) = delete;

  /// Whether the server has not closed the connection.
  bool is_open();
  /// nullopt if the connection is closed.
  std::optional<resp::Value> command(std::initializer_list<std::string_view> words);

 private:
  void close();

  int socket_;
  std::string input_;
};

}  // namespace delayq::support
