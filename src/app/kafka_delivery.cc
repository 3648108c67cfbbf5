#include "app/kafka_delivery.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace delayq {

namespace {

/// A broker that restarts, or a leader that moves, is back within this time: not worth a log line.
constexpr std::chrono::seconds kBrokerPatience{1};
/// How many reasons are logged while no broker can be reached.
constexpr size_t kMostReasons = 4;
/// What librdkafka appends to many of its texts, and what differs each time: "(after 3ms in state CONNECT)".
constexpr std::string_view kDuration = " (after ";
/// How often a broken producer is replaced at most.
constexpr std::chrono::seconds kBetweenReplacements{5};
/// Of records that wait in the library. The sink stops at a fraction of it; a batch of large jobs may exceed
/// that.
constexpr uint64_t kBufferBytes = uint64_t{256} << 20;

}  // namespace

kafka::ClientOptions kafka_client_options(const Config::Kafka& said) {
  kafka::ClientOptions options;
  options.brokers = said.brokers;
  options.client_id = said.client_id;
  options.uses_tls = said.tls;
  options.ca_file = said.ca_file;
  options.certificate = said.certificate;
  options.key = said.key;
  options.key_password = said.key_password;
  options.skips_tls_check = said.insecure;
  switch (said.sasl) {
    case Config::Kafka::Sasl::kNone:
      break;
    case Config::Kafka::Sasl::kPlain:
      options.sasl = kafka::Sasl::kPlain;
      break;
    case Config::Kafka::Sasl::kScramSha256:
      options.sasl = kafka::Sasl::kScramSha256;
      break;
    case Config::Kafka::Sasl::kScramSha512:
      options.sasl = kafka::Sasl::kScramSha512;
      break;
  }
  options.user = said.user;
  options.password = said.password;
  options.settings.assign(said.settings.begin(), said.settings.end());
  return options;
}

std::string check_kafka(const Config::Kafka& said) {
  if (said == Config::Kafka{}) return {};
  if (said.brokers.empty()) return "kafka.brokers: is missing: HOST:PORT of some brokers";
  const Status status = kafka::check_options(kafka_client_options(said));
  return status.ok() ? std::string() : "kafka." + status.error().detail;
}

// ---- what is logged

void KafkaWatch::look(Clock::time_point now, bool is_connected, std::string_view last_error) {
  if (is_connected) {
    away_since_.reset();
    if (!std::exchange(told_, {}).empty()) tell_(false, "kafka delivery: a broker can be reached again");
    return;
  }
  if (!away_since_) away_since_ = now;
  if (now - *away_since_ < kBrokerPatience || told_.size() == kMostReasons) return;
  const std::string_view reason = last_error.substr(0, last_error.find(kDuration));
  if (std::find(told_.begin(), told_.end(), reason) != told_.end()) return;
  told_.emplace_back(reason);
  if (told_.size() > 1) return tell_(true, fmt::format("kafka delivery: still no broker: {}", last_error));
  tell_(true,
        fmt::format("kafka delivery: jobs wait until a broker can be reached: {}; is kafka.brokers right?",
                    last_error.empty() ? "none answers" : last_error));
}

void KafkaWatch::wrote(std::string_view kafka_topic, std::string_view why) {
  if (why.empty()) {
    tell_(false, fmt::format("kafka delivery: topic {} can be written to again", kafka_topic));
  } else {
    tell_(true, fmt::format("kafka delivery: jobs for topic {} wait, its brokers do not confirm them: {}",
                            kafka_topic, why));
  }
}

// ---- the producer and the sink

KafkaDelivery::KafkaDelivery(KafkaDeliveryOptions options)
    : options_(std::move(options)),
      watch_(options_.tell),
      sink_(delivery::KafkaSinkOptions{.in_flight = options_.in_flight}) {
  sink_.set_log([this](std::string_view topic, std::string_view why) { watch_.wrote(topic, why); });
}

KafkaDelivery::~KafkaDelivery() { sink_.set_producer(nullptr); }

Result<std::unique_ptr<KafkaDelivery>> KafkaDelivery::open(KafkaDeliveryOptions options) {
  std::unique_ptr<KafkaDelivery> delivery(new KafkaDelivery(std::move(options)));
  if (delivery->options_.client.brokers.empty()) return delivery;
  if (Status status = delivery->open_producer(); !status.ok()) return status.error();
  return delivery;
}

Status KafkaDelivery::open_producer() {
  kafka::ProducerOptions options;
  options.client = options_.client;
  options.max_records = options_.in_flight;
  options.max_bytes = kBufferBytes;
  options.timeout = options_.timeout;
  options.wakeup = options_.wakeup;
  auto opened = kafka::open_producer(std::move(options));
  if (!opened.ok()) {
    Error error = opened.error();
    error.detail = "kafka." + error.detail;
    return error;
  }
  producer_ = std::move(*opened);
  sink_.set_producer(producer_.get());
  return {};
}

void KafkaDelivery::look(Clock::time_point now) {
  if (producer_ == nullptr) return;
  watch_.look(now, producer_->is_connected(), producer_->last_error());
  if (producer_->is_broken()) replace_broken(now);
}

void KafkaDelivery::replace_broken(Clock::time_point now) {
  if (producer_->outstanding() > 0) return;  // the jobs come back first
  if (replaced_at_ && now - *replaced_at_ < kBetweenReplacements) return;
  replaced_at_ = now;
  options_.tell(true, fmt::format("kafka delivery: starts anew after an error: {}", producer_->last_error()));
  sink_.set_producer(nullptr);
  producer_.reset();
  if (const Status status = open_producer(); !status.ok()) options_.tell(true, status.error().detail);
}

std::optional<delivery::SinkFigures> KafkaDelivery::figures() const {
  return options_.client.brokers.empty() ? std::nullopt : std::optional(sink_.figures());
}

}  // namespace delayq
