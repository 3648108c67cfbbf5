// Any bytes from a server: whole replies whose measured size is what is taken, a beginning that stays one
// until the reply is whole, or a refusal with a reason.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "resp/value.h"

namespace {

using delayq::resp::Value;

constexpr delayq::resp::ValueLimits kLimits{.depth = 8, .bulk_bytes = 512, .items = 64, .line_bytes = 512};

size_t values_in(const Value& value) {
  size_t count = 1;
  for (const Value& item : value.items) count += values_in(item);
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest{reinterpret_cast<const char*>(data), size};
  while (!rest.empty()) {
    const std::string_view before = rest;
    const auto measured = delayq::resp::reply_size(before, kLimits);
    const auto reply = delayq::resp::take_reply(rest, kLimits);
    if (!reply) {
      if (reply.error().detail.empty()) __builtin_trap();
      return 0;
    }
    if (!measured || measured->has_value() != reply->has_value()) __builtin_trap();
    if (!*reply) return 0;
    if (**measured == 0 || rest.size() + **measured != before.size()) __builtin_trap();
    // A value has at least a sign and a line end.
    if (values_in(**reply) > **measured / 3) __builtin_trap();
    for (size_t part = 0; part < **measured; ++part) {
      const auto partial = delayq::resp::reply_size(before.substr(0, part), kLimits);
      if (!partial || *partial) __builtin_trap();
    }
  }
  return 0;
}
