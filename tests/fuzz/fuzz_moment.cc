// Any text: refused with a reason, or a moment of the years 1970 to 9999 that is written and read back to the
// same value, and that the other form, Unix seconds, gives too.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/moment.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using delayq::Moment;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const delayq::Result<Moment> moment = delayq::parse_moment(text);
  if (!moment) {
    if (moment.error().detail.empty()) __builtin_trap();
    return 0;
  }
  const int64_t ms = delayq::to_unix_ms(*moment);
  if (ms < 0 || ms >= 253'402'300'800'000) __builtin_trap();
  const std::string written = delayq::format_moment(*moment);
  if (written.size() != std::string_view("2030-01-31T08:00:00.000Z").size()) __builtin_trap();
  const delayq::Result<Moment> again = delayq::parse_moment(written);
  if (!again || *again != *moment) __builtin_trap();
  std::string fraction = std::to_string(ms % 1'000);
  fraction.insert(0, 3 - fraction.size(), '0');
  const delayq::Result<Moment> seconds = delayq::parse_moment(std::to_string(ms / 1'000) + "." + fraction);
  if (!seconds || *seconds != *moment) __builtin_trap();
  return 0;
}
