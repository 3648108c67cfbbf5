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

/// How ready jobs leave: the words that topics and jobs use for it, and the checks of these words.
namespace delayq {

/// Words in the order of an enumeration, and how an error calls a word that is not among them.
struct Words {
  std::span<const std::string_view> names;
  std::span<const std::string_view> later{};  ///< known words that this version does not serve
  std::string_view unknown = "not known";

  /// The place of `word` in `names`. The error lists the names; the caller puts the field's name in front.
  Result<size_t> find(std::string_view word) const;
};

enum class Delivery : uint8_t {
  kPull,         ///< consumers pop them
  kWebhook,      ///< the server calls the topic's callback
  kRedisList,    ///< the server appends them to a list in Redis
  kRedisStream,  ///< the server adds them to a stream in Redis
};
inline constexpr std::array<std::string_view, 4> kDeliveryNames{"pull", "webhook", "redis_list",
                                                                "redis_stream"};
inline constexpr std::array<std::string_view, 1> kLaterDeliveryNames{"kafka_topic"};
inline constexpr Words kDeliveryWords{kDeliveryNames, kLaterDeliveryNames};
constexpr std::string_view name_of(Delivery delivery) {
  return kDeliveryNames[static_cast<size_t>(delivery)];
}
constexpr bool goes_to_redis(Delivery delivery) {
  return delivery == Delivery::kRedisList || delivery == Delivery::kRedisStream;
}

/// The part of a job that is written to a list or a stream.
enum class RedisContent : uint8_t {
  kJob,  ///< all of it, as JSON
  kId,   ///< only its id: the reader looks the rest up
};
inline constexpr std::array<std::string_view, 2> kRedisContentNames{"job", "id"};
inline constexpr Words kRedisContentWords{kRedisContentNames};
constexpr std::string_view name_of(RedisContent content) {
  return kRedisContentNames[static_cast<size_t>(content)];
}

/// The name of a list or a stream. Redis accepts any bytes; people and their terminals do not.
inline constexpr size_t kRedisKeyBytes = 512;
Status check_redis_key(std::string_view key);
inline constexpr uint64_t kMaxRedisMaxlen = 1'000'000'000'000;

/// The format of a callback's request, and which answer to it is a success.
enum class CallbackFormat : uint8_t {
  kWebhook,      ///< Standard Webhooks headers, the job's body as it is; any 2xx
  kCloudEvents,  ///< the same with the headers of a CloudEvent in binary mode
  kCallbackApi,  ///< the job as JSON; a 2xx whose body is `ok`
};
inline constexpr std::array<std::string_view, 3> kCallbackFormatNames{"webhook", "cloudevents",
                                                                      "callback-api"};
inline constexpr Words kCallbackFormatWords{kCallbackFormatNames, {}, "not a format"};
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

/// "host:port" of a URL that check_callback() accepts, in lower case and always with the port.
std::string host_of(std::string_view url);

/// The secrets that sign calls, as Standard Webhooks writes them: "whsec_" and base64. The error never shows
/// one.
inline constexpr size_t kMostCallbackSecrets = 4;
Status check_callback_secrets(const std::vector<std::string>& secrets);

}  // namespace delayq
