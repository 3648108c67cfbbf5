#pragma once

#include <functional>
#include <memory>
#include <string>

#include "delivery/redis/pusher.h"
#include "net/loop.h"
#include "net/redis/open_client.h"

namespace delayq {

struct RedisDeliveryOptions {
  std::string url;  ///< empty: none
  Millis timeout = std::chrono::seconds{5};
  uint32_t in_flight = 4'096;
  /// Told when Redis goes away, with the reason, and when it is back, with nothing; may be empty.
  std::function<void(std::string_view why)> log;
};

/// The Redis that jobs are written to, and who writes them.
class RedisDelivery {
 public:
  /// All must outlive it. Fails for a URL that is none; a Redis that is away is waited for.
  static Result<std::unique_ptr<RedisDelivery>> open(net::Loop& loop, Queue& queue,
                                                     RedisDeliveryOptions options, uint64_t seed);

  redis_delivery::Pusher& pusher() { return pusher_; }

 private:
  /// A client as the pusher sees it.
  class ClientTarget final : public redis_delivery::Target {
   public:
    explicit ClientTarget(net::redis::Client& client) : client_(client) {}
    void call(std::string_view key, std::span<const std::string_view> words, Answer answer) override;
    bool poll() override { return client_.poll() > 0; }
    bool is_connected() const override { return client_.is_connected(); }

   private:
    net::redis::Client& client_;
  };

  RedisDelivery(std::unique_ptr<net::redis::Client> client, Queue& queue, RedisDeliveryOptions options,
                uint64_t seed);

  std::unique_ptr<net::redis::Client> client_;
  ClientTarget target_;
  redis_delivery::Pusher pusher_;
};

}  // namespace delayq
