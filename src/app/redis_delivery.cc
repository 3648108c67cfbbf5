#include "app/redis_delivery.h"

#include <cassert>
#include <utility>

#include "net/redis/url.h"

namespace delayq {

namespace {

/// The lease is longer than connecting and writing together, so that no job is handed out again meanwhile.
constexpr Millis kLeaseMargin = std::chrono::seconds{10};

delivery::RedisSinkOptions sink_options(const RedisDeliveryOptions& said) {
  delivery::RedisSinkOptions options;
  options.in_flight = said.in_flight;
  options.lease = 2 * said.timeout + kLeaseMargin;
  return options;
}

/// The length of a list, the id of a stream's entry.
std::string text_of(const resp::Value& value) {
  return value.type == resp::Value::Type::kInteger ? std::to_string(value.integer) : value.text;
}

/// A key that the user may not write is a matter of its topic. The others need not wait for it, as they do
/// when Redis itself is away.
Error refusal_of(Error error) {
  if (error.detail.starts_with("NOPERM ")) error.code = ErrorCode::kForbidden;
  return error;
}

}  // namespace

std::optional<net::redis::ClientOptions> redis_target(const RedisDeliveryOptions& said,
                                                      const net::redis::ClientOptions* engine) {
  std::optional<net::redis::ClientOptions> where;
  if (!said.url.empty()) {
    if (auto parsed = net::redis::parse_url(said.url); parsed.ok()) where = std::move(*parsed);
  } else if (engine != nullptr) {
    where = *engine;
    where->connections = 1;
    where->wait = Millis::zero();  // jobs wait in the queue
  }
  if (!where) return where;
  where->connect_timeout = said.timeout;
  where->reply_timeout = said.timeout;
  where->seed = 0;
  return where;
}

void RedisDelivery::ClientTarget::call(std::string_view key, std::span<const std::string_view> words,
                                       Answer answer) {
  assert(client_ != nullptr);  // nothing is written while it is not connected
  client_->call(key, words,
                [answer = std::move(answer), &watch = watch_, command = std::string(words.front()),
                 name = std::string(key)](const Result<resp::Value>& reply) mutable {
                  if (!reply.ok()) watch.refused(command, name, reply.error().detail);
                  answer(reply.ok() ? Result<std::string>(text_of(*reply))
                                    : Result<std::string>(refusal_of(reply.error())));
                });
}

bool RedisDelivery::ClientTarget::poll() {
  size_t heard = client_ == nullptr ? 0 : client_->poll();
  for (const auto& client : retired_) heard += client->poll();
  std::erase_if(retired_, [](const auto& client) { return client->outstanding() == 0; });
  return heard > 0;
}

void RedisDelivery::ClientTarget::replace(std::unique_ptr<net::redis::Client> client) {
  if (client_ != nullptr && client_->outstanding() > 0) retired_.push_back(std::move(client_));
  client_ = std::move(client);
  greeted_ = 0;
}

void RedisDelivery::ClientTarget::look(DeliveryWatch::Clock::time_point now) {
  if (client_ == nullptr) return;
  watch_.look(now, client_->is_connected(), client_->last_error());
  const uint64_t connects = client_->figures().connects;
  if (connects == greeted_ || !client_->is_connected()) return;
  greeted_ = connects;
  client_->call({}, {"HELLO"}, [&watch = watch_](const Result<resp::Value>& hello) {
    if (hello.ok()) watch.greeted(*hello);
  });
}

RedisDelivery::RedisDelivery(net::Loop& loop, RedisDeliveryOptions options)
    : loop_(loop), watch_(std::move(options.tell)), sink_(target_, sink_options(options)) {
  sink_.set_log([this](std::string_view why) { watch_.wrote(why); });
}

void RedisDelivery::look(DeliveryWatch::Clock::time_point now) { target_.look(now); }

Result<std::unique_ptr<RedisDelivery>> RedisDelivery::open(net::Loop& loop,
                                                           const RedisDeliveryOptions& options,
                                                           const net::redis::ClientOptions* engine,
                                                           uint64_t seed) {
  std::unique_ptr<RedisDelivery> delivery(new RedisDelivery(loop, options));
  if (Status status = delivery->change(options, engine, seed); !status.ok()) return status.error();
  return delivery;
}

Status RedisDelivery::change(const RedisDeliveryOptions& options, const net::redis::ClientOptions* engine,
                             uint64_t seed) {
  if (!options.url.empty()) {
    if (const auto parsed = net::redis::parse_url(options.url); !parsed.ok()) return parsed.error();
  }
  std::optional<net::redis::ClientOptions> where = redis_target(options, engine);
  if (where != where_) {
    std::unique_ptr<net::redis::Client> client;
    if (where) {
      net::redis::ClientOptions seeded = *where;
      seeded.seed = seed;
      auto opened = net::redis::open_client(loop_, std::move(seeded));
      if (!opened.ok()) return opened.error();
      client = std::move(*opened);
    }
    target_.replace(std::move(client));
    if (where)
      watch_.begin(where->mode, options.url.empty() ? RedisNames{} : RedisNames{"redis_delivery.url", true});
    where_ = std::move(where);
  }
  sink_.set_options(sink_options(options));
  return {};
}

std::optional<delivery::RedisSinkFigures> RedisDelivery::figures() const {
  return target_.is_there() ? std::optional(sink_.figures()) : std::nullopt;
}

}  // namespace delayq
