#pragma once

#include <string_view>

#include "core/arena.h"
#include "core/result.h"
#include "engine/requests.h"

/// A lease as consumers know it: "<topic>/<engine's lease>". Any server finds the way from it, and a topic
/// has no '/' in it.
namespace delayq {

std::string_view lease_text(const LeaseRef& lease, Arena& storage);

/// kInvalid when the text is not a lease.
Result<LeaseRef> parse_lease(std::string_view text);

/// The part that names the topic; all of it when there is no other part.
inline std::string_view topic_of_lease(std::string_view text) { return text.substr(0, text.find('/')); }

}  // namespace delayq
