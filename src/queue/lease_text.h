#pragma once

#include <string_view>

#include "core/arena.h"
#include "core/result.h"
#include "engine/requests.h"

/// A lease as consumers know it: "<topic>/<engine's lease>". Any server finds the way from it, and a topic
/// has no '/' in it.
namespace delayq {

std::string_view lease_text(const LeaseRef& lease, Arena& storage);

/// Says so when the text is no lease.
Result<LeaseRef> parse_lease(std::string_view text);

}  // namespace delayq
