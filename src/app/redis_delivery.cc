#include "app/redis_delivery.h"

#include <utility>

#include "net/redis/url.h"

namespace delayq {

namespace {

/// The lease is longer than connecting and writing together, so that no job is handed out again meanwhile.
constexpr Millis kLeaseMargin = std::chrono::seconds{10};

redis_delivery::PusherOptions pusher_options(const RedisDeliveryOptions& said) {
  redis_delivery::PusherOptions options;
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

void RedisDelivery::ClientTarget::call(std::string_view key, std::span<const std::string_view> words,
                                       Answer answer) {
  client_.call(key, words, [answer = std::move(answer)](const Result<resp::Value>& reply) mutable {
    answer(reply.ok() ? Result<std::string>(text_of(*reply))
                      : Result<std::string>(refusal_of(reply.error())));
  });
}

RedisDelivery::RedisDelivery(std::unique_ptr<net::redis::Client> client, Queue& queue,
                             RedisDeliveryOptions options, uint64_t seed)
    : client_(std::move(client)), target_(*client_), pusher_(queue, target_, pusher_options(options), seed) {
  pusher_.set_log(std::move(options.log));
}

Result<std::unique_ptr<RedisDelivery>> RedisDelivery::open(net::Loop& loop, Queue& queue,
                                                           RedisDeliveryOptions options, uint64_t seed) {
  Result<net::redis::ClientOptions> where = net::redis::parse_url(options.url);
  if (!where.ok()) return where.error();
  where->connect_timeout = options.timeout;
  where->reply_timeout = options.timeout;
  where->seed = seed;
  auto client = net::redis::open_client(loop, std::move(*where));
  if (!client.ok()) return client.error();
  return std::unique_ptr<RedisDelivery>(
      new RedisDelivery(std::move(*client), queue, std::move(options), seed));
}

}  // namespace delayq
