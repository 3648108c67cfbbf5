#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "core/siphash.h"
#include "engine/journal/slot_map.h"

namespace delayq::journal {

/// Finds jobs by id, within a topic or in all of them, with one table.
///
/// The table has one slot per distinct id. Where several topics use the same id (rare), the first job stands
/// in the table, the others in a map of their own keyed by (id, topic), and all of them are linked through
/// their extras.
class IdIndex {
 public:
  IdIndex(JobTable& jobs, SipKey secret) : jobs_(jobs), secret_(secret) {}

  SlotKey key_of(std::string_view id) const {
    const Hash128 hash = siphash128(secret_, id);
    return {hash.low, static_cast<uint32_t>(hash.high)};
  }

  void prefetch(SlotKey key) const { ids_.prefetch(key); }
  /// After prefetch(): brings the entry that find() will look at into the cache.
  void prefetch_entry(SlotKey key) const {
    const Slot slot = ids_.peek(key);
    if (slot != kNoSlot) jobs_.prefetch(slot);
  }

  Slot find(SlotKey key, uint32_t topic) const;
  /// Every job with that id, in any state.
  std::vector<Slot> find_all(SlotKey key) const;

  /// REQUIRES: find(key, topic) == kNoSlot. Sets the entry's key and uses its topic.
  void insert(SlotKey key, Slot slot);
  /// REQUIRES: `slot` was inserted and its key and topic are unchanged.
  void erase(Slot slot);

  uint64_t memory_bytes() const;

 private:
  using SharedKey = std::pair<uint64_t, uint64_t>;

  static SlotKey key_of(const Entry& entry) { return {entry.key_low, entry.key_high}; }
  static SharedKey shared_key(SlotKey key, uint32_t topic) {
    return {key.low, uint64_t{key.high} << 32 | topic};
  }
  Slot first(SlotKey key) const;

  JobTable& jobs_;
  SipKey secret_;
  SlotMap ids_;
  absl::flat_hash_map<SharedKey, Slot> shared_;  ///< all but the first job of an id
};

}  // namespace delayq::journal
