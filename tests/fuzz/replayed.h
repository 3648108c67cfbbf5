#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace delayq::fuzz {

/// A fuzzer of this folder, as fuzz_replay calls it.
struct Replayed {
  std::string_view subject;  ///< the corpus folder: x for fuzz_x.cc
  int (*run)(const uint8_t* data, size_t size);
};

/// All of them. CMake writes the definition: delayq_fuzzers in cmake/Targets.cmake.
std::span<const Replayed> replayed();

}  // namespace delayq::fuzz
