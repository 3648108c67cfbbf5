#pragma once

#include <string>
#include <string_view>

#include "core/served.h"
#include "ops/config.h"

namespace delayq {

/// Appends the line of an access log, with its end. `time` is served.at as text: whoever writes many lines
/// has it ready.
///
///   2026-11-14T10:00:00.000Z http 127.0.0.1:40312 shop POST /v1/topics/order/jobs 201 - 96 81 412us
///   {"time":"2026-11-14T10:00:00.000Z","protocol":"http","peer":...,"bytes_in":96,"bytes_out":81,"took_us":412}
///
/// The text has time, protocol, peer, token, verb, target, status, error code, bytes in, bytes out and time
/// taken, with
/// "-" for what there is none of. No client can break out of its line.
void append_served(std::string& out, const Served& served, std::string_view time, Config::LogFormat format);

/// " http 127.0.0.1:40312 shop POST /v1/topics/order/jobs": the words of that line for any other one.
void append_who_and_what(std::string& out, const Served& served);

/// What to say in the log of a request that took longer than `slow`; empty when it is not slow. Zero: nothing
/// is.
std::string slow_warning(const Served& served, Millis slow);

}  // namespace delayq
