#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/redis/redis_engine.h"
#include "net/loop.h"
#include "net/redis/client.h"
#include "tests/support/redis_process.h"

namespace delayq::contract {

/// A redis engine with its loop and its client: the part of a delayq server that uses Redis.
class RedisServer {
 public:
  RedisServer(uint16_t port, RedisEngineOptions options) : RedisServer(to(port), std::move(options)) {}
  RedisServer(net::redis::ClientOptions client, RedisEngineOptions options) : options_(std::move(options)) {
    auto opened = net::redis::open_client(loop_, std::move(client));
    if (!opened.ok()) throw std::runtime_error(to_string(opened.error()));
    client_ = std::move(*opened);
    support::wait_until("a connection to Redis", [&] {
      turn();
      return client_->is_connected();
    });
    open();
  }

  static net::redis::ClientOptions to(uint16_t port) {
    net::redis::ClientOptions client;
    client.addresses = {{"127.0.0.1", port}};
    return client;
  }

  /// Closes the engine cleanly, if it is open, and opens it again.
  void open() {
    engine_.reset();
    engine_ = std::make_unique<RedisEngine>(*client_, options_);
  }
  void set_options(RedisEngineOptions options) { options_ = std::move(options); }

  RedisEngine& engine() { return *engine_; }
  net::redis::Client& client() { return *client_; }
  const RedisEngineOptions& options() const { return options_; }

  /// One turn of the loop. It waits a moment if replies are outstanding. Returns whether there were any.
  bool pump() {
    const bool has_work = client_->outstanding() > 0;
    turn();
    return has_work;
  }

 private:
  void turn() {
    // Far longer than a reply takes; a turn ends with the first one.
    constexpr Millis kTurn{100};
    loop_.finish_turn();
    const bool is_waiting = client_->outstanding() > 0 || !client_->is_connected();
    loop_.wait_until(net::Loop::now() + (is_waiting ? kTurn : Millis{0}));
  }

  RedisEngineOptions options_;
  net::Loop loop_;
  std::unique_ptr<net::redis::Client> client_;
  std::unique_ptr<RedisEngine> engine_;
};

}  // namespace delayq::contract
