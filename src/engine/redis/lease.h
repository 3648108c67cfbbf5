#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace delayq::redis {

/// A lease: the shard and its number there. As text "3.1234", and nothing else is one.
struct Lease {
  uint32_t shard = 0;
  uint64_t number = 0;
};

inline std::string lease_text(uint32_t shard, uint64_t number) { return fmt::format("{}.{}", shard, number); }

/// nullopt: nobody was ever given that as a lease.
inline std::optional<Lease> read_lease(std::string_view text, uint32_t shards) {
  Lease lease;
  const char* const end = text.data() + text.size();
  const auto shard = std::from_chars(text.data(), end, lease.shard);
  if (shard.ec != std::errc{} || shard.ptr == end || *shard.ptr != '.' || lease.shard >= shards)
    return std::nullopt;
  const auto number = std::from_chars(shard.ptr + 1, end, lease.number);
  if (number.ec != std::errc{} || number.ptr != end) return std::nullopt;
  // Only as it was written: no leading zeros.
  return lease_text(lease.shard, lease.number) == text ? std::optional(lease) : std::nullopt;
}

}  // namespace delayq::redis
