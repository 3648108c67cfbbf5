// Any text: refused with a reason, or a backoff that is in range, is written and read back to the same value,
// and gives delays from zero to the longest it names after any number of attempts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "core/retry_policy.h"

namespace {

using delayq::Backoff;
using delayq::Millis;

Millis longest_of(const Backoff& backoff) {
  if (const auto* exponential = std::get_if<delayq::ExponentialBackoff>(&backoff)) return exponential->cap;
  const auto& steps = std::get<delayq::StepBackoff>(backoff).steps;
  return *std::max_element(steps.begin(), steps.end());
}

void check_delays(const Backoff& backoff) {
  const Millis longest = longest_of(backoff);
  const delayq::RetryPolicy policy{.attempts = 0, .backoff = backoff};
  for (uint32_t made : {0U, 1U, 2U, 31U, 32U, 33U, 1'000U, std::numeric_limits<uint32_t>::max()}) {
    for (uint64_t random : {uint64_t{0}, uint64_t{1} << 63, std::numeric_limits<uint64_t>::max()}) {
      const auto delay = delayq::next_delay(policy, made, random);
      if (!delay || *delay < Millis::zero() || *delay > longest) __builtin_trap();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const delayq::Result<Backoff> backoff = delayq::parse_backoff(text);
  if (!backoff) {
    if (backoff.error().detail.empty()) __builtin_trap();
    return 0;
  }
  if (!delayq::check_backoff(*backoff)) __builtin_trap();
  const delayq::Result<Backoff> again = delayq::parse_backoff(delayq::format_backoff(*backoff));
  if (!again || !(*again == *backoff)) __builtin_trap();
  check_delays(*backoff);
  return 0;
}
