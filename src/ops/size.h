#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace delayq {

/// Reads a number of bytes: "4096", "64KB" (thousands), "32MiB" (1024s); the units are B, KB, MB, GB, TB and
/// KiB, MiB, GiB, TiB. Whole numbers only. The error's detail says what was wrong and what would be right;
/// the caller puts the field's name in front and fills in `op`.
Result<uint64_t> parse_size(std::string_view text);

/// The text that parse_size() reads back to the same value, in the largest unit that divides it: "32MiB",
/// "1000B".
std::string format_size(uint64_t bytes);

}  // namespace delayq
