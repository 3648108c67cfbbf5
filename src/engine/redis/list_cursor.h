#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job_state.h"

namespace delayq::redis {

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
