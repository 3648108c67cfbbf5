#pragma once

#include <chrono>
#include <cstdint>

namespace delayq {

/// The resolution of everything: a due time is never rounded to anything coarser.
using Millis = std::chrono::milliseconds;

/// A point on the server's wall clock. Nothing below `app` reads that clock: a Moment is always an argument.
using Moment = std::chrono::sys_time<Millis>;

/// tick() returns this when there is nothing to wait for: no job will ever fall due.
inline constexpr Moment kNever = Moment::max();

constexpr int64_t to_unix_ms(Moment moment) { return moment.time_since_epoch().count(); }
constexpr Moment from_unix_ms(int64_t ms) { return Moment{Millis{ms}}; }

/// `base + delay` without overflow: a far future stays a far future.
constexpr Moment saturating_add(Moment base, Millis delay) {
  if (delay > Millis::zero() && base > kNever - delay) return kNever;
  return base + delay;
}

}  // namespace delayq
