#pragma once

#include <cstring>
#include <span>
#include <string_view>

#include "core/arena.h"
#include "core/result.h"
#include "core/text.h"
#include "engine/requests.h"

/// The lease that consumers get and send back: "<topic>/<engine's lease>". The topic is a part of it so that
/// any server can find the job. A topic's name has no '/', so the first one ends it.
namespace delayq {

inline std::string_view lease_text(const LeaseRef& lease, Arena& storage) {
  const std::span<char> room = storage.allocate(lease.topic.size() + 1 + lease.lease.size());
  std::memcpy(room.data(), lease.topic.data(), lease.topic.size());
  room[lease.topic.size()] = '/';
  std::memcpy(room.data() + lease.topic.size() + 1, lease.lease.data(), lease.lease.size());
  return {room.data(), room.size()};
}

/// The topic in the text of a lease; the whole text if it has no '/'.
inline std::string_view topic_of_lease(std::string_view text) { return text.substr(0, text.find('/')); }

/// kInvalid when the text is not a lease.
inline Result<LeaseRef> parse_lease(std::string_view text) {
  const std::string_view topic = topic_of_lease(text);
  if (topic.empty() || topic.size() + 1 >= text.size()) {
    return invalid("lease", "lease " + quote(text) + " is not one that a pop has answered");
  }
  return LeaseRef{topic, text.substr(topic.size() + 1)};
}

}  // namespace delayq
