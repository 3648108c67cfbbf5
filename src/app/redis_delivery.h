#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delivery/redis/pusher.h"
#include "net/loop.h"
#include "net/redis/open_client.h"

namespace delayq {

struct RedisDeliveryOptions {
  std::string url;  ///< empty: the engine's own Redis, if it has one
  Millis timeout = std::chrono::seconds{5};
  uint32_t in_flight = 4'096;
  /// Told when Redis goes away, with the reason, and when it is back, with nothing; may be empty.
  std::function<void(std::string_view why)> log;
};

/// Where jobs are written to: the URL's Redis, else the one that the engine has, over a connection of its
/// own, so that neither waits for the other; nothing when there is neither. REQUIRES: a URL that can be read,
/// or none.
std::optional<net::redis::ClientOptions> redis_target(const RedisDeliveryOptions& said,
                                                      const net::redis::ClientOptions* engine);

/// The Redis that jobs are written to, if there is one, and who writes them.
class RedisDelivery {
 public:
  /// All must outlive it. `engine` is how its Redis is reached; null: it has none. Fails for a URL that is
  /// none; a Redis that is away is waited for.
  static Result<std::unique_ptr<RedisDelivery>> open(net::Loop& loop, Queue& queue,
                                                     RedisDeliveryOptions options,
                                                     const net::redis::ClientOptions* engine, uint64_t seed);

  /// Another Redis, or none, from now on. What was sent to the one before is still answered by that one. With
  /// an error everything stays as it is.
  Status change(const RedisDeliveryOptions& options, const net::redis::ClientOptions* engine, uint64_t seed);

  redis_delivery::Pusher& pusher() { return pusher_; }
  /// Nothing: there is no Redis.
  std::optional<redis_delivery::Figures> figures() const;

 private:
  /// Clients as the pusher sees them: one takes what is new, those before it may owe answers.
  class ClientTarget final : public redis_delivery::Target {
   public:
    void call(std::string_view key, std::span<const std::string_view> words, Answer answer) override;
    bool poll() override;
    bool is_connected() const override { return client_ != nullptr && client_->is_connected(); }
    bool is_there() const { return client_ != nullptr; }
    void replace(std::unique_ptr<net::redis::Client> client);

   private:
    std::unique_ptr<net::redis::Client> client_;
    std::vector<std::unique_ptr<net::redis::Client>> retired_;
  };

  RedisDelivery(net::Loop& loop, Queue& queue, RedisDeliveryOptions options, uint64_t seed);

  net::Loop& loop_;
  std::optional<net::redis::ClientOptions> where_;
  ClientTarget target_;
  redis_delivery::Pusher pusher_;
};

}  // namespace delayq
