#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "core/siphash.h"
#include "engine/journal/job_table.h"

namespace delayq::journal {

/// 96 bits of a keyed hash. Two different ids with the same key are not expected in the lifetime of
/// any server, and cannot be found on purpose without the hash key. So ids need not be read from
/// disk to compare them.
struct SlotKey {
  uint64_t low = 0;
  uint32_t high = 0;
};

/// A hash table from keys to slots that uses only 8 bytes per slot: 32 bits of the key, and the slot. The
/// rest of the key is in the job table, and the caller's `same` compares it.
///
/// The table is split into shards that grow and shrink one by one, so a single insert never moves more than a
/// fraction of a percent of the whole, and growing does not access the job table. Open addressing with linear
/// probing and backward shift: a removal leaves no marker behind.
class SlotMap {
 public:
  /// Prefetches the cell where `key` would be. Useful when a batch of look-ups follows.
  void prefetch(SlotKey key) const {
    const Shard& shard = shards_[shard_of(key)];
    if (shard.cells) __builtin_prefetch(&shard.cells[home(shard, fragment(key))]);
  }

  /// Returns the first slot under `key` for which same(slot) is true, or kNoSlot.
  template <class Same>
  Slot find(SlotKey key, Same&& same) const {
    const Shard& shard = shards_[shard_of(key)];
    if (!shard.cells) return kNoSlot;
    const uint32_t wanted = fragment(key);
    for (uint32_t at = home(shard, wanted);; at = (at + 1) & shard.mask) {
      const uint64_t cell = shard.cells[at];
      if (cell == kEmpty) return kNoSlot;
      if (fragment_of(cell) == wanted && same(slot_of(cell))) return slot_of(cell);
    }
  }

  /// Returns the slot that find() would check first. It may be wrong, but is good enough to
  /// prefetch the job table.
  Slot peek(SlotKey key) const {
    return find(key, [](Slot) { return true; });
  }

  /// REQUIRES: `slot` is not in the map.
  void insert(SlotKey key, Slot slot);
  /// REQUIRES: `slot` is in the map under `key`.
  void erase(SlotKey key, Slot slot);
  /// `key` refers to `new_slot` from now on.
  void replace(SlotKey key, Slot old_slot, Slot new_slot);

  uint64_t memory_bytes() const { return sizeof *this + cells_ * sizeof(uint64_t); }

 private:
  static constexpr uint32_t kShards = 256;
  static constexpr uint32_t kFirstCapacity = 8;
  static constexpr uint64_t kEmpty = UINT64_MAX;

  struct Shard {
    std::unique_ptr<uint64_t[]> cells;  ///< fragment << 32 | slot
    uint32_t mask = 0;
    uint32_t used = 0;
  };

  static uint32_t shard_of(SlotKey key) { return key.high & (kShards - 1); }
  static uint32_t fragment(SlotKey key) { return static_cast<uint32_t>(key.low); }
  static uint32_t fragment_of(uint64_t cell) { return static_cast<uint32_t>(cell >> 32); }
  static Slot slot_of(uint64_t cell) { return static_cast<Slot>(cell); }
  static uint64_t cell_of(uint32_t fragment, Slot slot) { return uint64_t{fragment} << 32 | slot; }
  static uint32_t home(const Shard& shard, uint32_t fragment) { return fragment & shard.mask; }
  static uint32_t position(const Shard& shard, SlotKey key, Slot slot);
  void resize(Shard& shard, uint32_t capacity);

  std::array<Shard, kShards> shards_;
  uint64_t cells_ = 0;  ///< of all shards
};

/// Finds jobs by id, in one topic or in all topics, with one table.
///
/// The table has one slot per distinct id. Where several topics use the same id (rare), the first job is
/// in the table, the others are in a separate map with the key (id, topic), and all of them are linked
/// through their extras.
class IdIndex {
 public:
  IdIndex(JobTable& jobs, SipKey secret) : jobs_(jobs), secret_(secret) {}

  SlotKey key_of(std::string_view id) const {
    const Hash128 hash = siphash128(secret_, id);
    return {hash.low, static_cast<uint32_t>(hash.high)};
  }

  void prefetch(SlotKey key) const { ids_.prefetch(key); }
  /// After prefetch(): prefetches the entry that find() will check.
  void prefetch_entry(SlotKey key) const {
    const Slot slot = ids_.peek(key);
    if (slot != kNoSlot) jobs_.prefetch(slot);
  }

  Slot find(SlotKey key, uint32_t topic) const;
  /// Returns all jobs with this id, in any state.
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
  absl::flat_hash_map<SharedKey, Slot> shared_;  ///< all except the first job of an id
};

}  // namespace delayq::journal
