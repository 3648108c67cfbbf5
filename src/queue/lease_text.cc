#include "queue/lease_text.h"

#include <cstring>

#include "core/text.h"

namespace delayq {

std::string_view lease_text(const LeaseRef& lease, Arena& storage) {
  const std::span<char> room = storage.allocate(lease.topic.size() + 1 + lease.lease.size());
  std::memcpy(room.data(), lease.topic.data(), lease.topic.size());
  room[lease.topic.size()] = '/';
  std::memcpy(room.data() + lease.topic.size() + 1, lease.lease.data(), lease.lease.size());
  return {room.data(), room.size()};
}

Result<LeaseRef> parse_lease(std::string_view text) {
  const std::string_view topic = topic_of_lease(text);
  if (topic.empty() || topic.size() + 1 >= text.size()) {
    return invalid("lease", "lease " + quote(text) + " is not one that a pop has answered");
  }
  return LeaseRef{topic, text.substr(topic.size() + 1)};
}

}  // namespace delayq
