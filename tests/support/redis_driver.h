#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "net/loop.h"
#include "net/redis/client.h"

namespace delayq::support {

/// A client in its own loop, run by the test's thread: sends a command and runs the loop until the reply is
/// there. All waits end after twenty seconds with an exception.
class RedisDriver {
 public:
  using Reply = Result<resp::Value>;

  explicit RedisDriver(net::redis::ClientOptions options) {
    Result<std::unique_ptr<net::redis::Client>> opened = net::redis::open_client(loop_, std::move(options));
    if (!opened.ok()) throw std::runtime_error(to_string(opened.error()));
    client_ = std::move(*opened);
  }

  net::redis::Client& client() { return *client_; }

  /// One turn: sends, waits for an event, delivers replies.
  void turn() {
    loop_.finish_turn();
    loop_.wait_until(net::Loop::now() + Millis{20});
    client_->poll();
  }
  void turn_until(std::string_view what, const std::function<bool()>& is_so) {
    const auto deadline = net::Loop::steady_now() + std::chrono::seconds{20};
    while (!is_so()) {
      if (net::Loop::steady_now() > deadline)
        throw std::runtime_error("waited in vain: " + std::string(what) + "; " +
                                 std::string(client_->last_error()));
      turn();
    }
  }
  void connect() {
    turn_until("the client is connected", [&] { return client_->is_connected(); });
  }
  Reply call(std::string_view key, std::initializer_list<std::string_view> words) {
    std::optional<Reply> reply;
    client_->call(key, words, [&](Reply came) { reply = std::move(came); });
    turn_until("a reply", [&] { return reply.has_value(); });
    return std::move(*reply);
  }
  Reply run(const net::redis::Script& script, std::vector<std::string_view> keys,
            std::vector<std::string_view> arguments = {}) {
    std::optional<Reply> reply;
    client_->run(script, keys, arguments, [&](Reply came) { reply = std::move(came); });
    turn_until("a script's reply", [&] { return reply.has_value(); });
    return std::move(*reply);
  }
  /// Repeats the command until the reply is not an error.
  resp::Value insist(std::string_view key, std::initializer_list<std::string_view> words) {
    std::optional<resp::Value> value;
    turn_until("an answer", [&] {
      Reply reply = call(key, words);
      if (reply.ok()) value = std::move(*reply);
      return value.has_value();
    });
    return std::move(*value);
  }

 private:
  net::Loop loop_;
  std::unique_ptr<net::redis::Client> client_;
};

/// Options for a client of the servers at these local ports that reconnects soon.
inline net::redis::ClientOptions to_all(const std::vector<uint16_t>& ports) {
  net::redis::ClientOptions options;
  for (const uint16_t port : ports) options.addresses.push_back({"127.0.0.1", port});
  options.backoff = Millis{5};
  options.backoff_cap = Millis{50};
  return options;
}
inline net::redis::ClientOptions to(uint16_t port) { return to_all({port}); }

/// A reply as text: "OK", "7", "[a 1]", "nil", or the error's code and detail.
inline std::string text_of(const resp::Value& value) {
  switch (value.type) {
    case resp::Value::Type::kNull:
      return "nil";
    case resp::Value::Type::kInteger:
    case resp::Value::Type::kBoolean:
      return std::to_string(value.integer);
    case resp::Value::Type::kArray:
    case resp::Value::Type::kMap: {
      std::string text = "[";
      for (const resp::Value& item : value.items) text += (text.size() > 1 ? " " : "") + text_of(item);
      return text + "]";
    }
    default:
      return value.text;
  }
}
inline std::string text_of(const RedisDriver::Reply& reply) {
  return reply.ok() ? text_of(*reply) : to_string(reply.error());
}

}  // namespace delayq::support
