#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/metrics.h"
#include "api/kafka/intake.h"
#include "app/storage.h"
#include "core/result.h"
#include "delivery/kafka_sink.h"
#include "engine/kafka/ladder.h"
#include "engine/redis/cold_tier.h"
#include "kafka/client_options.h"
#include "kafka/producer.h"
#include "net/redis/client.h"
#include "ops/config.h"

namespace delayq {

/// Logs what an operator should know about the brokers, each message once, so that a wrong address or
/// password is seen at the start, and not when the first job is due.
class KafkaWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Tell = std::function<void(bool is_bad, std::string_view what)>;

  explicit KafkaWatch(Tell tell) : tell_(std::move(tell)) {}

  /// Reports the state of the connections. A short loss is not logged. While none works, a new reason is
  /// logged too: a broker that was restarted may refuse the password.
  void look(Clock::time_point now, bool is_connected, std::string_view last_error);
  /// A topic in Kafka cannot be written to, for that reason; empty: it can again.
  void wrote(std::string_view kafka_topic, std::string_view why);

 private:
  Tell tell_;
  std::optional<Clock::time_point> away_since_;
  std::vector<std::string> told_;  ///< the reasons since then, without what differs each time
};

struct KafkaDeliveryOptions {
  kafka::ClientOptions client;  ///< without brokers: jobs cannot be delivered to Kafka
  Millis timeout = std::chrono::seconds{30};
  uint32_t in_flight = 50'000;
  /// Logs what an operator should know: no broker can be reached, they are back.
  KafkaWatch::Tell tell = [](bool, std::string_view) {};
  /// Called from other threads when the server should look at it.
  std::function<void()> wakeup{};
};

/// How the clients of Kafka reach the brokers.
kafka::ClientOptions kafka_client_options(const Config::Kafka& said);

/// What is wrong with [kafka], as "kafka.KEY: ..."; empty: nothing.
std::string check_kafka(const Config::Kafka& said);

/// The producer that jobs are written with, if brokers are configured, and the sink that uses it.
class KafkaDelivery {
 public:
  using Clock = KafkaWatch::Clock;

  /// Fails for wrong options, but not for brokers that cannot be reached now.
  static Result<std::unique_ptr<KafkaDelivery>> open(KafkaDeliveryOptions options);
  ~KafkaDelivery();

  /// Call it once in each turn of the loop: logs what has changed, and opens a new producer in the place of a
  /// broken one.
  void look(Clock::time_point now);

  delivery::KafkaSink& sink() { return sink_; }
  /// Returns nothing when there is no Kafka.
  std::optional<delivery::SinkFigures> figures() const;

 private:
  explicit KafkaDelivery(KafkaDeliveryOptions options);
  Status open_producer();
  void replace_broken(Clock::time_point now);

  KafkaDeliveryOptions options_;
  KafkaWatch watch_;
  delivery::KafkaSink sink_;
  std::unique_ptr<kafka::Producer> producer_;
  std::optional<Clock::time_point> replaced_at_;
};

/// How records of an intake become jobs, as the configuration says.
intake::Rules intake_rules(const Config::KafkaIntake& said);

/// The intakes of the configuration: a consumer group each.
class KafkaIntakes {
 public:
  using Wanted = std::map<std::string, Config::KafkaIntake>;
  struct Options {
    kafka::ClientOptions client;  ///< without brokers there can be no intakes
    Wanted wanted;
    /// Gets what an operator should know.
    intake::Intake::Tell tell = [](bool, const std::string&) {};
    /// Called from other threads when the server should look at them.
    std::function<void()> wakeup{};
  };

  /// `queue` must outlive it, and be started. Fails for wrong options, but not for brokers that cannot be
  /// reached now.
  static Result<std::unique_ptr<KafkaIntakes>> open(Queue& queue, Options options);

  /// Both are called in each turn of the loop: see Intake.
  bool poll(Moment now);
  Moment tick(Moment now);

  /// Replaces how records become jobs, starts new intakes and stops those that are gone. Of the others
  /// everything else needs a restart; that is reported.
  void change(Wanted wanted, Moment now, Millis grace);
  void stop(Moment now, Millis grace);
  bool is_stopped() const;

  std::vector<intake::IntakeFigures> figures() const;

 private:
  struct Running {
    Config::KafkaIntake said;
    std::unique_ptr<intake::Intake> intake;
  };

  KafkaIntakes(Queue& queue, Options options) : queue_(queue), options_(std::move(options)) {}
  Status start(const std::string& name, const Config::KafkaIntake& said);

  Queue& queue_;
  Options options_;
  std::map<std::string, Running> running_;
  std::vector<std::unique_ptr<intake::Intake>> ending_;  ///< no longer in the configuration
  bool is_stopping_ = false;
};

/// What the kafka engine has besides the redis engine: the ladder in Kafka with its clients, and what is
/// logged about it.
class ColdStorage {
 public:
  /// Makes the topics that are missing and checks all of them; waits at most `patience` for a broker.
  /// `redis_prefix` is that of the keys. `redis` must outlive it. `wakeup` is called from other threads.
  static Result<std::unique_ptr<ColdStorage>> open(ColdStorageOptions options, net::redis::Client& redis,
                                                   std::string_view redis_prefix, Millis patience,
                                                   std::function<void()> wakeup);

  kafka::Ladder& ladder() { return *ladder_; }
  /// For the start-up line.
  std::string describe() const;
  /// Reports to `tell` that Kafka cannot be used, and that it is back. Call it in each turn of the loop.
  void look(const redis::ColdTier& tier, const std::function<void(bool, std::string_view)>& tell);
  http::LadderFigures figures(const redis::ColdTier& tier) const;

 private:
  explicit ColdStorage(ColdStorageOptions options) : options_(std::move(options)) {}

  ColdStorageOptions options_;
  std::unique_ptr<kafka::Ladder> ladder_;
  std::string told_;
  std::chrono::steady_clock::time_point told_at_{};
};

}  // namespace delayq
