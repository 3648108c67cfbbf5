#include "queue/delivery.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text.h"

namespace delayq {

Result<Delivery> parse_delivery(std::string_view word) {
  if (const auto found = find_word<Delivery>(kDeliveryNames, word)) return *found;
  const bool is_later = find_word<uint8_t>(kLaterDeliveryNames, word).has_value();
  return invalid(fmt::format("{} is {}: use one of {}", quote(word),
                             is_later ? "not yet in this version" : "not known",
                             fmt::join(kDeliveryNames, ", ")));
}

Result<RedisContent> parse_redis_content(std::string_view word) {
  if (const auto found = find_word<RedisContent>(kRedisContentNames, word)) return *found;
  return invalid(
      fmt::format("{} is not known: use one of {}", quote(word), fmt::join(kRedisContentNames, ", ")));
}

Status check_redis_key(std::string_view key) {
  if (key.size() > kRedisKeyBytes) {
    return invalid("redis_key",
                   fmt::format("redis_key has {} bytes: at most {} are allowed", key.size(), kRedisKeyBytes));
  }
  const auto is_control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  };
  if (std::any_of(key.begin(), key.end(), is_control) || !is_utf8(key))
    return invalid("redis_key", "redis_key must be UTF-8 without control characters");
  return {};
}

}  // namespace delayq
