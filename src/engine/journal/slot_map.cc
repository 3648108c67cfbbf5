#include "engine/journal/slot_map.h"

#include <algorithm>
#include <cassert>

namespace delayq::journal {

void SlotMap::insert(SlotKey key, Slot slot) {
  Shard& shard = shards_[shard_of(key)];
  const uint32_t capacity = shard.cells ? shard.mask + 1 : 0;
  if ((shard.used + 1) * uint64_t{5} > capacity * uint64_t{4})
    resize(shard, std::max(kFirstCapacity, capacity * 2));
  uint32_t at = home(shard, fragment(key));
  while (shard.cells[at] != kEmpty) at = (at + 1) & shard.mask;
  shard.cells[at] = cell_of(fragment(key), slot);
  ++shard.used;
}

void SlotMap::erase(SlotKey key, Slot slot) {
  Shard& shard = shards_[shard_of(key)];
  uint32_t hole = position(shard, key, slot);
  // Whatever probed past the hole to its place moves back into it, so that no marker is needed.
  for (uint32_t at = (hole + 1) & shard.mask; shard.cells[at] != kEmpty; at = (at + 1) & shard.mask) {
    const uint32_t probe_length = (at - home(shard, fragment_of(shard.cells[at]))) & shard.mask;
    if (probe_length >= ((at - hole) & shard.mask)) {
      shard.cells[hole] = shard.cells[at];
      hole = at;
    }
  }
  shard.cells[hole] = kEmpty;
  --shard.used;
  const uint32_t capacity = shard.mask + 1;
  if (shard.used == 0) {
    cells_ -= shard.mask + uint64_t{1};
    shard = Shard{};
  } else if (capacity > kFirstCapacity && shard.used * uint64_t{8} < capacity) {
    resize(shard, capacity / 2);
  }
}

void SlotMap::replace(SlotKey key, Slot old_slot, Slot new_slot) {
  Shard& shard = shards_[shard_of(key)];
  shard.cells[position(shard, key, old_slot)] = cell_of(fragment(key), new_slot);
}

uint32_t SlotMap::position(const Shard& shard, SlotKey key, Slot slot) {
  const uint64_t cell = cell_of(fragment(key), slot);
  uint32_t at = home(shard, fragment(key));
  while (shard.cells[at] != cell) {
    assert(shard.cells[at] != kEmpty);
    at = (at + 1) & shard.mask;
  }
  return at;
}

void SlotMap::resize(Shard& shard, uint32_t capacity) {
  Shard larger{std::make_unique_for_overwrite<uint64_t[]>(capacity), capacity - 1, shard.used};
  std::fill_n(larger.cells.get(), capacity, kEmpty);
  cells_ += capacity - (shard.cells ? shard.mask + uint64_t{1} : 0);
  for (uint32_t i = 0; shard.cells && i <= shard.mask; ++i) {
    const uint64_t cell = shard.cells[i];
    if (cell == kEmpty) continue;
    uint32_t at = home(larger, fragment_of(cell));
    while (larger.cells[at] != kEmpty) at = (at + 1) & larger.mask;
    larger.cells[at] = cell;
  }
  shard = std::move(larger);
}

}  // namespace delayq::journal
