#include "app/kafka.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/duration.h"
#include "kafka/producer.h"
#include "net/loop.h"

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
/// The same problem of the ladder is logged again after this time at the earliest.
constexpr Millis kColdProblemPause = std::chrono::seconds{10};

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

namespace {

/// Dead letters are rare, and read in small numbers.
constexpr uint32_t kMostLetters = 10'000;

std::string group_of(const std::string& name, const Config::KafkaIntake& said) {
  return said.group.empty() ? fmt::format("delayq-{}", name) : said.group;
}

/// The parts of the configuration that a running intake cannot change.
Config::KafkaIntake fixed_part(Config::KafkaIntake said) {
  const Config::KafkaIntake initial;
  said.topic = initial.topic;
  said.delay = initial.delay;
  said.delay_from = initial.delay_from;
  said.on_conflict = initial.on_conflict;
  said.carries = initial.carries;
  said.retries = initial.retries;
  said.backoff = initial.backoff;
  said.headers = initial.headers;
  return said;
}

intake::IntakeOptions intake_options(const std::string& name, const Config::KafkaIntake& said) {
  intake::IntakeOptions options{.name = name};
  options.rules = intake_rules(said);
  options.dead_letter_topic = said.dead_letter_topic;
  options.most_records = said.in_flight;
  options.most_bytes = said.in_flight_bytes;
  options.commit_interval = said.commit_interval;
  return options;
}

}  // namespace

intake::Rules intake_rules(const Config::KafkaIntake& said) {
  intake::Rules rules;
  rules.topic = said.topic;
  rules.delay = said.delay;
  rules.delays_from_arrival = said.delay_from == Config::KafkaIntake::DelayFrom::kArrival;
  rules.on_conflict = said.on_conflict;
  rules.carries = said.carries;
  if (said.retries > 0 && said.backoff) rules.retry = intake::RetryRule{said.retries, *said.backoff};
  const Config::KafkaHeaders& names = said.headers;
  rules.headers = {names.delay, names.at,       names.topic,    names.id,     names.target,
                   names.group, names.priority, names.attempts, names.retries};
  return rules;
}

Result<std::unique_ptr<KafkaIntakes>> KafkaIntakes::open(Queue& queue, Options options) {
  std::unique_ptr<KafkaIntakes> intakes(new KafkaIntakes(queue, std::move(options)));
  for (const auto& [name, said] : intakes->options_.wanted) {
    if (Status status = intakes->start(name, said); !status.ok()) return status.error();
  }
  return intakes;
}

Status KafkaIntakes::start(const std::string& name, const Config::KafkaIntake& said) {
  kafka::ConsumerOptions reading;
  reading.client = options_.client;
  reading.group = group_of(name, said);
  reading.topics = said.topics;
  reading.starts_at_end = said.start == Config::KafkaIntake::Start::kLatest;
  reading.session_timeout = said.session_timeout;
  reading.buffer_bytes = said.prefetch_bytes;
  reading.wakeup = options_.wakeup;
  auto consumer = kafka::open_consumer(std::move(reading));
  if (!consumer.ok()) {
    Error error = consumer.error();
    error.detail = fmt::format("kafka.intake.{}: {}", name, error.detail);
    return error;
  }
  kafka::ProducerOptions writing;
  writing.client = options_.client;
  writing.max_records = kMostLetters;
  writing.max_bytes = std::max(said.in_flight_bytes, uint64_t{128} << 20);
  writing.wakeup = options_.wakeup;
  running_[name] = {said, std::make_unique<intake::Intake>(
                              queue_, std::move(*consumer),
                              [writing = std::move(writing)] { return kafka::open_producer(writing); },
                              intake_options(name, said), options_.tell)};
  return {};
}

bool KafkaIntakes::poll(Moment now) {
  bool is_busy = false;
  for (auto& [name, each] : running_) is_busy |= each.intake->poll(now);
  for (const auto& each : ending_) is_busy |= each->poll(now);
  if (!is_stopping_) std::erase_if(ending_, [](const auto& each) { return each->is_stopped(); });
  return is_busy;
}

Moment KafkaIntakes::tick(Moment now) {
  Moment next = kNever;
  for (auto& [name, each] : running_) next = std::min(next, each.intake->tick(now));
  for (const auto& each : ending_) next = std::min(next, each->tick(now));
  return next;
}

void KafkaIntakes::change(Wanted wanted, Moment now, Millis grace) {
  if (is_stopping_) return;
  for (auto each = running_.begin(); each != running_.end();) {
    if (wanted.contains(each->first)) {
      ++each;
      continue;
    }
    options_.tell(false, fmt::format("kafka intake {}: no longer in the configuration: stops", each->first));
    each->second.intake->stop(now, grace);
    ending_.push_back(std::move(each->second.intake));
    each = running_.erase(each);
  }
  for (const auto& [name, said] : wanted) {
    const auto found = running_.find(name);
    if (found == running_.end()) {
      const Status status = options_.client.brokers.empty()
                                ? Status{invalid("kafka.brokers is set only by a restart")}
                                : start(name, said);
      if (!status.ok()) options_.tell(true, fmt::format("kafka intake {}: {}", name, status.error().detail));
      continue;
    }
    if (fixed_part(found->second.said) != fixed_part(said))
      options_.tell(true,
                    fmt::format("kafka intake {}: topics, group, start, dead_letter_topic, timeouts and "
                                "limits are changed only by a restart",
                                name));
    found->second.intake->set_rules(intake_rules(said));
  }
}

void KafkaIntakes::stop(Moment now, Millis grace) {
  is_stopping_ = true;
  for (auto& [name, each] : running_) each.intake->stop(now, grace);
}

bool KafkaIntakes::is_stopped() const {
  return std::all_of(running_.begin(), running_.end(),
                     [](const auto& each) { return each.second.intake->is_stopped(); }) &&
         std::all_of(ending_.begin(), ending_.end(), [](const auto& each) { return each->is_stopped(); });
}

std::vector<intake::IntakeFigures> KafkaIntakes::figures() const {
  std::vector<intake::IntakeFigures> figures;
  for (const auto& [name, each] : running_) figures.push_back(each.intake->figures());
  return figures;
}

Result<std::unique_ptr<ColdStorage>> ColdStorage::open(ColdStorageOptions options, net::redis::Client& redis,
                                                       std::string_view redis_prefix, Millis patience,
                                                       std::function<void()> wakeup) {
  std::unique_ptr<ColdStorage> cold(new ColdStorage(std::move(options)));
  const kafka::ClientOptions& client = cold->options_.client;
  const kafka::LadderOptions& ladder = cold->options_.ladder;
  auto admin = kafka::open_admin(client);
  if (!admin.ok()) return admin.error();
  if (Status status = kafka::prepare_topics(**admin, ladder, patience); !status.ok()) return status.error();
  kafka::ClientOptions writer = client;
  writer.settings.emplace_back("message.max.bytes", std::to_string(ladder.record_bytes));
  auto producer =
      kafka::open_producer({.client = writer, .timeout = cold->options_.timeout, .wakeup = wakeup});
  if (!producer.ok()) return producer.error();
  auto reader = kafka::open_reader({.client = client, .wakeup = wakeup});
  if (!reader.ok()) return reader.error();
  kafka::Ladder::Clients clients{
      .producer = std::move(*producer), .consumer = {}, .reader = std::move(*reader)};
  const kafka::ConsumerOptions reading{.client = client,
                                       .group = fmt::format("{}.delay", ladder.prefix),
                                       .topics = kafka::ladder_topics(ladder),
                                       .wakeup = std::move(wakeup)};
  if (ladder.partition_groups.empty()) {
    auto consumer = kafka::open_consumer(reading);
    if (!consumer.ok()) return consumer.error();
    clients.consumer = std::move(*consumer);
  } else {
    auto consumer = kafka::open_assigned_consumer(reading);
    if (!consumer.ok()) return consumer.error();
    clients.claims = std::make_unique<kafka::PartitionClaims>(
        redis, **consumer,
        kafka::ClaimOptions{.prefix = std::string(redis_prefix),
                            .server = fmt::format("{:016x}", random_seed()),
                            .topics = reading.topics,
                            .groups = ladder.partition_groups});
    clients.consumer = std::move(*consumer);
  }
  cold->ladder_ = std::make_unique<kafka::Ladder>(ladder, std::move(clients));
  return cold;
}

std::string ColdStorage::describe() const {
  return fmt::format("bodies of jobs due in more than {} in Kafka at {}", format_duration(ladder_->least()),
                     options_.client.brokers);
}

void ColdStorage::look(const redis::ColdTier& tier, const std::function<void(bool, std::string_view)>& tell) {
  const std::string_view trouble = ladder_->trouble().empty() ? tier.problem() : ladder_->trouble();
  const auto now = net::Loop::steady_now();
  if (trouble == told_ || (!told_.empty() && now - told_at_ < kColdProblemPause)) return;
  told_ = trouble;
  told_at_ = now;
  if (trouble.empty()) return tell(false, fmt::format("Kafka at {} is back", options_.client.brokers));
  tell(true, fmt::format(
                 "Kafka at {}: {}; new bodies stay in Redis, and jobs whose bodies are in Kafka may be late",
                 options_.client.brokers, trouble));
}

http::LadderFigures ColdStorage::figures(const redis::ColdTier& tier) const {
  const redis::ColdFigures& figures = tier.figures();
  http::LadderFigures told;
  told.is_connected = ladder_->is_connected();
  told.partitions = ladder_->partitions();
  told.lag = ladder_->lag();
  told.in_work = ladder_->outstanding() + tier.open();
  told.written = figures.written;
  told.written_bytes = figures.written_bytes;
  told.returned = figures.returned;
  told.returned_bytes = figures.returned_bytes;
  told.cooled = figures.cooled;
  told.moved = figures.moved;
  told.warmed = figures.warmed;
  told.fetched = figures.fetched;
  told.stale = figures.stale;
  told.foreign = figures.foreign;
  told.refused = figures.put_errors;
  told.lost = figures.lost_bodies;
  return told;
}

}  // namespace delayq
