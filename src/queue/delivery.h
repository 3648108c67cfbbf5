#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/result.h"

/// How the ready jobs of a topic leave: words, and which of them are right. What is said of callbacks is in
/// queue/callback.h.
namespace delayq {

enum class Delivery : uint8_t {
  kPull,         ///< consumers pop them
  kWebhook,      ///< the server calls the topic's callback
  kRedisList,    ///< the server appends them to a list in Redis
  kRedisStream,  ///< the server adds them to a stream in Redis
};
inline constexpr std::array<std::string_view, 4> kDeliveryNames{"pull", "webhook", "redis_list",
                                                                "redis_stream"};
/// Known words that this version cannot serve.
inline constexpr std::array<std::string_view, 1> kLaterDeliveryNames{"kafka_topic"};
constexpr std::string_view name_of(Delivery delivery) {
  return kDeliveryNames[static_cast<size_t>(delivery)];
}
constexpr bool goes_to_redis(Delivery delivery) {
  return delivery == Delivery::kRedisList || delivery == Delivery::kRedisStream;
}
/// The error names the words there are; the caller puts the field's name in front, here and below.
Result<Delivery> parse_delivery(std::string_view word);

/// What of a job is written to a list or a stream.
enum class RedisContent : uint8_t {
  kJob,  ///< all of it, as JSON
  kId,   ///< its id alone: whoever reads it looks the rest up
};
inline constexpr std::array<std::string_view, 2> kRedisContentNames{"job", "id"};
constexpr std::string_view name_of(RedisContent content) {
  return kRedisContentNames[static_cast<size_t>(content)];
}
Result<RedisContent> parse_redis_content(std::string_view word);

/// The name of a list or a stream; Redis itself takes any bytes, people and their terminals do not.
inline constexpr size_t kRedisKeyBytes = 512;
Status check_redis_key(std::string_view key);
inline constexpr uint64_t kMaxRedisMaxlen = 1'000'000'000'000;

/// Where `word` is among `names`, as the enumerator of that number.
template <class Word, size_t kCount>
std::optional<Word> find_word(const std::array<std::string_view, kCount>& names, std::string_view word) {
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) return std::nullopt;
  return static_cast<Word>(found - names.begin());
}

}  // namespace delayq
