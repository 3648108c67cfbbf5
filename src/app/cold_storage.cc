#include "app/cold_storage.h"

#include <utility>

#include <fmt/format.h>

#include "core/duration.h"
#include "net/loop.h"

namespace delayq {

namespace {

/// The same problem is logged again after this time at the earliest.
constexpr Millis kColdProblemPause = std::chrono::seconds{10};

}  // namespace

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
