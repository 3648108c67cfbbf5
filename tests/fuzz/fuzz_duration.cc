// Any text: refused with a reason, or a duration that is written and read back to the same value.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/duration.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using delayq::Millis;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const delayq::Result<Millis> duration = delayq::parse_duration(text);
  if (!duration) {
    if (duration.error().detail.empty()) __builtin_trap();
    return 0;
  }
  if (*duration < Millis::zero()) __builtin_trap();
  const std::string written = delayq::format_duration(*duration);
  const delayq::Result<Millis> again = delayq::parse_duration(written);
  if (!again || *again != *duration) __builtin_trap();
  if (delayq::format_duration(*again) != written) __builtin_trap();
  return 0;
}
