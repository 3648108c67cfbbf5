#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/job_state.h"

namespace delayq::redis {

/// A lease: the shard, its number there, and a nonce, which tells it from one that another master gave the
/// same number. As text "3.1234.56", and nothing else is one. Those of earlier versions have no nonce:
/// "3.1234".
struct Lease {
  uint32_t shard = 0;
  uint64_t number = 0;
  uint64_t nonce = 0;
};
/// Scripts count in doubles, and keep it together with a flag.
inline constexpr uint64_t kMostNonce = (uint64_t{1} << 48) - 1;

inline std::string lease_text(const Lease& lease) {
  return lease.nonce == 0 ? fmt::format("{}.{}", lease.shard, lease.number)
                          : fmt::format("{}.{}.{}", lease.shard, lease.number, lease.nonce);
}

/// nullopt: nobody was ever given that as a lease.
inline std::optional<Lease> read_lease(std::string_view text, uint32_t shards) {
  Lease lease;
  const char* const end = text.data() + text.size();
  const auto shard = std::from_chars(text.data(), end, lease.shard);
  if (shard.ec != std::errc{} || shard.ptr == end || *shard.ptr != '.' || lease.shard >= shards)
    return std::nullopt;
  auto last = std::from_chars(shard.ptr + 1, end, lease.number);
  if (last.ec != std::errc{}) return std::nullopt;
  if (last.ptr != end && *last.ptr == '.') last = std::from_chars(last.ptr + 1, end, lease.nonce);
  if (last.ec != std::errc{} || last.ptr != end) return std::nullopt;
  // Only as it was written: no leading zeros.
  return lease_text(lease) == text ? std::optional(lease) : std::nullopt;
}

/// Where a listing goes on: in which shard, and there after what its script said (scripts/list.lua, ARGV 12
/// and on). As text "<state>.<shard>" and ".<hex>" for each of the words.
struct ListCursor {
  uint32_t shard = 0;
  std::vector<std::string> place;  ///< empty: at the shard's start
};

std::string write_cursor(JobState state, const ListCursor& cursor);
/// nullopt: no listing of that state has answered that.
std::optional<ListCursor> read_cursor(std::string_view text, JobState state, uint32_t shards);

}  // namespace delayq::redis
