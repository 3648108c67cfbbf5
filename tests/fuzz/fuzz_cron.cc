// Any text: the first byte chooses a zone, the next four a moment, the rest is a cron rule. It is refused
// with a reason, or it has occurrences after that moment and before it that agree with each other.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "calendar/recurrence.h"

namespace {

using delayq::Millis;
using delayq::Moment;
using delayq::Zone;

constexpr std::array<std::string_view, 8> kZones{
    "UTC",          "Europe/Berlin",     "America/Sao_Paulo", "Australia/Lord_Howe",
    "Pacific/Apia", "Africa/Casablanca", "Africa/Monrovia",   "Europe/Dublin"};

void require(bool holds) {
  if (!holds) __builtin_trap();
}

void check(const delayq::Recurrence& recurrence, Moment at) {
  const std::optional<Moment> last = recurrence.last_until(at);
  if (last) require(*last <= at && recurrence.last_until(*last) == last);
  for (int i = 0; i < 8; ++i) {
    const std::optional<Moment> next = recurrence.next_after(at);
    if (!next) return;
    require(*next > at && delayq::to_unix_ms(*next) % 1'000 == 0);
    require(recurrence.last_until(*next) == next);
    require(recurrence.next_after(*next - Millis{1}) == next);
    if (i > 0) require(recurrence.last_until(*next - Millis{1}) == at);
    at = *next;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 5) return 0;
  const std::string_view text{reinterpret_cast<const char*>(data) + 5, size - 5};
  const delayq::Result<delayq::CronRule> rule = delayq::CronRule::parse(text);
  if (!rule) {
    require(!rule.error().detail.empty() && rule.error().field == "cron");
    // The same bytes as the name of a zone: refused, or a name that comes back.
    const delayq::Result<Zone> zone = Zone::find(text);
    require(zone ? zone->name() == text : zone.error().field == "zone");
    return 0;
  }
  int64_t seconds = 0;  // until 2106
  for (size_t i = 1; i < 5; ++i) seconds = seconds << 8 | data[i];
  check(delayq::Recurrence::cron(*rule, *Zone::find(kZones[data[0] % kZones.size()])),
        delayq::from_unix_ms(seconds * 1'000));
  return 0;
}
