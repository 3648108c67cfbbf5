#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/job_state.h"

namespace delayq::redis {

/// A lease: the shard, the number of the lease in it, and a nonce. The nonce distinguishes it from a lease to
/// which another master gave the same number. The text is exactly "3.1234.56". Leases of earlier versions
/// have no nonce: "3.1234".
struct Lease {
  uint32_t shard = 0;
  uint64_t number = 0;
  uint64_t nonce = 0;
};
/// Scripts calculate in doubles and store the nonce together with a flag.
inline constexpr uint64_t kMostNonce = (uint64_t{1} << 48) - 1;

inline std::string lease_text(const Lease& lease) {
  return lease.nonce == 0 ? fmt::format("{}.{}", lease.shard, lease.number)
                          : fmt::format("{}.{}.{}", lease.shard, lease.number, lease.nonce);
}

/// nullopt: this text never was a lease.
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
  // Only the exact text is accepted: no leading zeros.
  return lease_text(lease) == text ? std::optional(lease) : std::nullopt;
}

/// Where a listing continues: the shard, and the place in it that the script returned (scripts/list.lua, from
/// ARGV 12 on). The text is "<state>.<shard>" and ".<hex>" for each word.
struct ListCursor {
  uint32_t shard = 0;
  std::vector<std::string> place;  ///< empty: at the shard's start
};

std::string write_cursor(JobState state, const ListCursor& cursor);
/// nullopt: not a cursor of a listing of this state.
std::optional<ListCursor> read_cursor(std::string_view text, JobState state, uint32_t shards);

/// Where cancel_group continues in each shard that may have more jobs of the group. The text is
/// "<shard>:<place>,...", for example "3:1024,7:0"; it is empty when there is no such shard.
using GroupCursor = std::map<uint32_t, std::string>;

/// Shards without a place are visited from their start.
std::string write_group_cursor(std::span<const uint32_t> shards, const GroupCursor& places);
/// nullopt: not such a cursor.
std::optional<GroupCursor> read_group_cursor(std::string_view text, uint32_t shards);

}  // namespace delayq::redis
