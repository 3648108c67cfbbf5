#include "net/redis/slot.h"

namespace delayq::net::redis {

namespace {

using Type = resp::Value::Type;

bool is_slot(const resp::Value& value) {
  return value.type == Type::kInteger && value.integer >= 0 && value.integer < kSlots;
}

}  // namespace

Result<std::vector<SlotRange>> slot_ranges(const resp::Value& reply, const Address& asked) {
  const Error odd{ErrorCode::kUnavailable, "redis", "CLUSTER SLOTS: not the reply of a cluster", {}};
  if (reply.type != Type::kArray) return odd;
  std::vector<SlotRange> ranges;
  for (const resp::Value& row : reply.items) {
    const bool has_master = row.items.size() >= 3 && row.items[2].items.size() >= 2;
    if (!has_master || !is_slot(row.items[0]) || !is_slot(row.items[1])) return odd;
    const resp::Value& host = row.items[2].items[0];
    const resp::Value& port = row.items[2].items[1];
    if (row.items[0].integer > row.items[1].integer || port.integer <= 0 || port.integer > 65535) return odd;
    const bool is_named = !host.text.empty() && host.text != "?";
    ranges.push_back({static_cast<uint16_t>(row.items[0].integer),
                      static_cast<uint16_t>(row.items[1].integer),
                      {is_named ? host.text : asked.host, static_cast<uint16_t>(port.integer)}});
  }
  return ranges;
}

}  // namespace delayq::net::redis
