#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/storage.h"
#include "delivery/redis_sink.h"
#include "net/loop.h"
#include "net/redis/client.h"
#include "net/redis/options.h"
#include "resp/value.h"

namespace delayq {

/// Logs what an operator should know about the Redis that jobs are written to, each message once. So a wrong
/// URL is seen at the start, and not when the first job is due.
class DeliveryWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Tell = std::function<void(bool is_bad, std::string_view what)>;

  explicit DeliveryWatch(Tell tell) : tell_(std::move(tell)) {}

  /// Another Redis from now on, and the names of its settings. For the engine's own Redis the state of the
  /// connection is not logged here: the engine's storage does that.
  void begin(net::redis::Mode mode, RedisNames names);

  /// Reports the state of the connection. A short loss without a lasting reason is not logged.
  void look(Clock::time_point now, bool is_connected, std::string_view last_error);
  /// Redis accepts no jobs, for that reason; empty: it accepts them again.
  void wrote(std::string_view why);
  /// Redis refused a command; `text` is its error message.
  void refused(std::string_view command, std::string_view key, std::string_view text);
  /// The answer to HELLO, a command that every user may send.
  void greeted(const resp::Value& hello);

 private:
  void say(std::string_view why);
  void say_if_over();

  Tell tell_;
  net::redis::Mode mode_ = net::redis::Mode::kStandalone;
  RedisNames names_;
  std::optional<Clock::time_point> away_since_;
  bool is_cut_off_ = false;     ///< reported by look()
  bool takes_nothing_ = false;  ///< reported by wrote()
  std::set<std::string> told_;  ///< refusals
};

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
  /// Call it once in each turn of the loop: logs what has changed.
  void look(DeliveryWatch::Clock::time_point now);

  /// Uses another Redis, or none, from now on. Commands that were sent to the previous one are still answered
  /// by it. On an error nothing changes.
  Status change(const RedisDeliveryOptions& options, const net::redis::ClientOptions* engine, uint64_t seed);

  delivery::RedisSink& sink() { return sink_; }
  /// Returns nothing when there is no Redis.
  std::optional<delivery::SinkFigures> figures() const;

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
