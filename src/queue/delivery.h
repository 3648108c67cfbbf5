#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

/// How ready jobs are delivered: the words for it in settings and requests, and the checks of these words.
namespace delayq {

/// The names of an enumeration's values, in their order, and how an error describes an unknown word.
struct Words {
  std::span<const std::string_view> names;
  std::string_view unknown = "not known";

  /// Returns the index of `word` in `names`. The error lists the names; the caller prepends the field's name.
  Result<size_t> find(std::string_view word) const;
};

enum class Delivery : uint8_t {
  kPull,         ///< consumers pop jobs
  kWebhook,      ///< the server calls the topic's callback
  kRedisList,    ///< the server appends jobs to a list in Redis
  kRedisStream,  ///< the server adds jobs to a stream in Redis
  kKafkaTopic,   ///< the server writes jobs to a topic in Kafka
};
inline constexpr std::array<std::string_view, 5> kDeliveryNames{"pull", "webhook", "redis_list",
                                                                "redis_stream", "kafka_topic"};
inline constexpr Words kDeliveryWords{kDeliveryNames};
constexpr std::string_view name_of(Delivery delivery) {
  return kDeliveryNames[static_cast<size_t>(delivery)];
}
constexpr bool goes_to_redis(Delivery delivery) {
  return delivery == Delivery::kRedisList || delivery == Delivery::kRedisStream;
}

/// The part of a job that is written to a list or a stream.
enum class RedisContent : uint8_t {
  kJob,  ///< the whole job, as JSON
  kId,   ///< only its id: the reader looks up the rest
};
inline constexpr std::array<std::string_view, 2> kRedisContentNames{"job", "id"};
inline constexpr Words kRedisContentWords{kRedisContentNames};
constexpr std::string_view name_of(RedisContent content) {
  return kRedisContentNames[static_cast<size_t>(content)];
}

/// The name of a list or a stream. Redis accepts any bytes; the check requires text that a terminal can show.
inline constexpr size_t kRedisKeyBytes = 512;
Status check_redis_key(std::string_view key);
inline constexpr uint64_t kMaxRedisMaxlen = 1'000'000'000'000;

/// The key of a record in Kafka: records with the same key are in the same partition, in order.
enum class KafkaKey : uint8_t {
  kId,     ///< the job's id
  kGroup,  ///< the job's group; jobs without one have no key
  kNone,   ///< no key: records are spread evenly
};
inline constexpr std::array<std::string_view, 3> kKafkaKeyNames{"id", "group", "none"};
inline constexpr Words kKafkaKeyWords{kKafkaKeyNames};
constexpr std::string_view name_of(KafkaKey key) { return kKafkaKeyNames[static_cast<size_t>(key)]; }

/// The part of a job that is the value of a record in Kafka.
enum class KafkaContent : uint8_t {
  kBody,  ///< the body as it is
  kJob,   ///< the whole job, as JSON
  kId,    ///< only its id: the reader looks up the rest
};
inline constexpr std::array<std::string_view, 3> kKafkaContentNames{"body", "job", "id"};
inline constexpr Words kKafkaContentWords{kKafkaContentNames};
constexpr std::string_view name_of(KafkaContent content) {
  return kKafkaContentNames[static_cast<size_t>(content)];
}

/// Which headers of delayq a record in Kafka has. Those of the job itself are written in any case.
enum class KafkaHeaders : uint8_t {
  kAll,   ///< id, topic, due time and attempt
  kId,    ///< the job's id
  kNone,  ///< none: records are smaller and cheaper for everyone that handles them
};
inline constexpr std::array<std::string_view, 3> kKafkaHeadersNames{"all", "id", "none"};
inline constexpr Words kKafkaHeadersWords{kKafkaHeadersNames};
constexpr std::string_view name_of(KafkaHeaders headers) {
  return kKafkaHeadersNames[static_cast<size_t>(headers)];
}

/// The name of a topic in Kafka: letters, digits and . _ -, but not "." or "..".
inline constexpr size_t kKafkaTopicBytes = 249;
Status check_kafka_topic(std::string_view name);
/// The end of the name of a dead-letter topic, behind that of the topic whose records cannot be jobs.
inline constexpr std::string_view kDeadLetterSuffix = ".delayq-dead";

/// The format of a callback's request, and which responses mean success.
enum class CallbackFormat : uint8_t {
  kWebhook,      ///< Standard Webhooks headers and the job's body; success: any 2xx
  kCloudEvents,  ///< the same, plus the headers of a CloudEvent in binary mode
  kCallbackApi,  ///< the job as JSON; success: a 2xx whose body is `ok`
};
inline constexpr std::array<std::string_view, 3> kCallbackFormatNames{"webhook", "cloudevents",
                                                                      "callback-api"};
inline constexpr Words kCallbackFormatWords{kCallbackFormatNames, "not a format"};
constexpr std::string_view name_of(CallbackFormat format) {
  return kCallbackFormatNames[static_cast<size_t>(format)];
}
/// The error is that of Words::find().
Result<CallbackFormat> parse_callback_format(std::string_view word);

/// The methods of requests that have a body.
inline constexpr std::array<std::string_view, 4> kCallbackMethods{"POST", "PUT", "PATCH", "DELETE"};
Status check_callback_method(std::string_view method);

/// OK for an absolute http or https URL without user name and password, of at most Limits::kCallbackBytes.
Status check_callback(std::string_view url);

/// Where notices of dead jobs go: a URL like a callback, or the name of a topic.
Status check_on_dead(std::string_view where);
constexpr bool is_url(std::string_view text) { return text.find("://") != std::string_view::npos; }

/// "host:port" of a URL that check_callback() accepts, in lower case and always with the port.
std::string host_of(std::string_view url);

/// The secrets that sign calls, in the format of Standard Webhooks: "whsec_" and base64. The error never
/// contains a secret.
inline constexpr size_t kMostCallbackSecrets = 4;
Status check_callback_secrets(const std::vector<std::string>& secrets);

}  // namespace delayq
