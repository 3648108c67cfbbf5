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
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size()) {
    return invalid("lease", "lease " + quote(text) + " is not one that a pop has answered");
  }
  return LeaseRef{text.substr(0, slash), text.substr(slash + 1)};
}

}  // namespace delayq
