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
  /// Logs what an operator should know: Redis cannot be reached, is back, or is the wrong one.
  DeliveryWatch::Tell tell = [](bool, std::string_view) {};
};

/// Returns where jobs are written to: the Redis of the URL, else that of the engine, over a connection of its
/// own, so that neither waits for the other; nothing when there is neither. REQUIRES: a valid URL, or an
/// empty one.
std::optional<net::redis::ClientOptions> redis_target(const RedisDeliveryOptions& said,
                                                      const net::redis::ClientOptions* engine);

/// The Redis that jobs are written to, if there is one, and the sink that writes them.
class RedisDelivery {
 public:
  /// The loop must outlive it. `engine` says how the engine's Redis is reached; null: it has none. Fails for
  /// an invalid URL, but not for a Redis that cannot be reached now.
  static Result<std::unique_ptr<RedisDelivery>> open(net::Loop& loop, const RedisDeliveryOptions& options,
                                                     const net::redis::ClientOptions* engine, uint64_t seed);
  /// Once in each turn of the loop: logs what has changed.
  void look(DeliveryWatch::Clock::time_point now);

  /// Another Redis, or none, from now on. Commands that were sent to the previous one are still answered by
  /// it. With an error nothing changes.
  Status change(const RedisDeliveryOptions& options, const net::redis::ClientOptions* engine, uint64_t seed);

  delivery::RedisSink& sink() { return sink_; }
  /// Returns nothing when there is no Redis.
  std::optional<delivery::RedisSinkFigures> figures() const;

 private:
  /// The clients as one target: the current one gets the commands, previous ones may still have to answer.
  class ClientTarget final : public delivery::RedisTarget {
   public:
    explicit ClientTarget(DeliveryWatch& watch) : watch_(watch) {}
    void call(std::string_view key, std::span<const std::string_view> words, Answer answer) override;
    bool poll() override;
    bool is_connected() const override { return client_ != nullptr && client_->is_connected(); }
    bool is_there() const { return client_ != nullptr; }
    void replace(std::unique_ptr<net::redis::Client> client);
    /// Reports the connection to the watch, and sends HELLO on each new one.
    void look(DeliveryWatch::Clock::time_point now);

   private:
    DeliveryWatch& watch_;
    std::unique_ptr<net::redis::Client> client_;
    uint64_t greeted_ = 0;  ///< how many connections it had made when HELLO was sent last
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
