#pragma once

#include <cstdint>

namespace sdk_bench {

/// Durable pushes per second of the engine alone, as bench/micro/push_bench.cc measures them: 128 bytes,
/// batches of 2,048, each one commit.
double engine_alone(std::uint64_t jobs);

}  // namespace sdk_bench
