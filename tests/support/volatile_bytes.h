#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"

namespace delayq::support {

/// The unit that a disk writes atomically.
inline constexpr uint64_t kSectorBytes = 512;

/// The bytes of one file, twice: as programs see them (the page cache) and as the disk holds them, with all
/// changes between the two in the order in which they happened.
class VolatileBytes {
 public:
  // ---- operations of programs
  std::span<const std::byte> cached() const { return cached_; }
  void write(uint64_t offset, std::span<const std::byte> bytes);
  /// Extends with zeros, or truncates.
  void resize(uint64_t size);
  void sync();

  // ---- faults
  /// A failed sync: any part of the dirty bytes reached the disk; the rest counts as clean from now on, and
  /// no later sync writes it. `forget` says whether the page cache drops these pages at once (programs then
  /// read the old bytes) or keeps them until the power loss.
  void fail_sync(Random& random, bool forget);
  /// Every sector that was not synced gets any of its earlier contents, independent of its neighbours.
  void power_cut(Random& random);
  /// Damage at rest: on disk and in the cache. REQUIRES: offset < durable().size().
  void flip_bit(uint64_t offset, unsigned bit);

  std::span<const std::byte> durable() const { return durable_; }
  bool dirty() const { return !unsynced_.empty(); }

 private:
  /// One write (`bytes` at `offset`), or a change of size (no bytes). `size` is the file's size after it.
  struct Change {
    uint64_t offset;
    std::vector<std::byte> bytes;
    uint64_t size;
  };

  void apply(const Change& change, std::vector<std::byte>& to) const;
  std::vector<std::byte> random_survivor(Random& random) const;
  void show_sector(uint64_t sector, size_t changes, std::vector<std::byte>& image) const;

  std::vector<std::byte> cached_;
  std::vector<std::byte> durable_;
  std::vector<Change> unsynced_;
};

}  // namespace delayq::support
