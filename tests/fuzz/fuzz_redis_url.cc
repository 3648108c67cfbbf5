// Any text as a Redis URL: read, with every part in its range, or refused by a message that names the part.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/redis/options.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto options = delayq::net::redis::parse_url(text);
  if (!options.ok()) {
    if (options.error().detail.find(": ") == std::string_view::npos) __builtin_trap();
    return 0;
  }
  using delayq::net::redis::Mode;
  if (options->addresses.empty()) __builtin_trap();
  for (const auto& address : options->addresses) {
    if (address.host.empty() || address.port == 0) __builtin_trap();
  }
  if ((options->mode == Mode::kSentinel) == options->master_name.empty()) __builtin_trap();
  if (options->mode == Mode::kCluster && options->database != 0) __builtin_trap();
  if (!options->user.empty() && options->password.empty()) __builtin_trap();
  return 0;
}
