#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/delivery_watch.h"
#include "delivery/redis_sink.h"
#include "net/loop.h"
#include "net/redis/open_client.h"

namespace delayq {

struct RedisDeliveryOptions {
  std::string url;  ///< empty: the engine's own Redis, if it has one
  Millis timeout = std::chrono::seconds{5};
  uint32_t in_flight = 4'096;
  /// Told what an operator should know of it: it cannot be reached, it is back, it is the wrong one.
  DeliveryWatch::Tell tell = [](bool, std::string_view) {};
};

/// Where jobs are written to: the URL's Redis, else the one that the engine has, over a connection of its
/// own, so that neither waits for the other; nothing when there is neither. REQUIRES: a URL that can be read,
/// or none.
std::optional<net::redis::ClientOptions> redis_target(const RedisDeliveryOptions& said,
                                                      const net::redis::ClientOptions* engine);

/// The Redis that jobs are written to, if there is one, and the sink that writes them.
class RedisDelivery {
 public:
  /// All must outlive it. `engine` is how its Redis is reached; null: it has none. Fails for a URL that is
  /// none; a Redis that is away is waited for.
  static Result<std::unique_ptr<RedisDelivery>> open(net::Loop& loop, const RedisDeliveryOptions& options,
                                                     const net::redis::ClientOptions* engine, uint64_t seed);
  /// Once in each turn of the loop: tells what has changed.
  void look(DeliveryWatch::Clock::time_point now);

  /// Another Redis, or none, from now on. What was sent to the one before is still answered by that one. With
  /// an error everything stays as it is.
  Status change(const RedisDeliveryOptions& options, const net::redis::ClientOptions* engine, uint64_t seed);

  delivery::RedisSink& sink() { return sink_; }
  /// Nothing: there is no Redis.
  std::optional<delivery::RedisSinkFigures> figures() const;

 private:
  /// Clients as the sink sees them: one takes what is new, those before it may owe answers.
  class ClientTarget final : public delivery::RedisTarget {
   public:
    explicit ClientTarget(DeliveryWatch& watch) : watch_(watch) {}
    void call(std::string_view key, std::span<const std::string_view> words, Answer answer) override;
    bool poll() override;
    bool is_connected() const override { return client_ != nullptr && client_->is_connected(); }
    bool is_there() const { return client_ != nullptr; }
    void replace(std::unique_ptr<net::redis::Client> client);
    /// Tells the watch how the connection is, and asks each new one who it is with.
    void look(DeliveryWatch::Clock::time_point now);

   private:
    DeliveryWatch& watch_;
    std::unique_ptr<net::redis::Client> client_;
    uint64_t greeted_ = 0;  ///< its connections so far, when it was asked last
    std::vector<std::unique_ptr<net::redis::Client>> retired_;
  };

  RedisDelivery(net::Loop& loop, RedisDeliveryOptions options);

  net::Loop& loop_;
  std::optional<net::redis::ClientOptions> where_;
  DeliveryWatch watch_;
  ClientTarget target_{watch_};
  delivery::RedisSink sink_;
};

}  // namespace delayq
