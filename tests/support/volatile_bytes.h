#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"

namespace delayq::support {

/// What a disk writes in one piece: it is there or it is not, never half.
inline constexpr uint64_t kSectorBytes = 512;

/// The bytes of one file, twice: as programs see them (the page cache), and as the disk holds them, with
/// everything that lies between the two in the order in which it happened.
class VolatileBytes {
 public:
  // ---- what programs do
  std::span<const std::byte> cached() const { return cached_; }
  void write(uint64_t offset, std::span<const std::byte> bytes);
  /// Grows with zeros, or cuts.
  void resize(uint64_t size);
  void sync();

  // ---- what the world does
  /// A sync that failed: any part of what was dirty reached the disk, the rest counts as clean from now on
  /// and no later sync will write it. `forget` tells whether the page cache throws those pages away at once
  /// (then programs read the old bytes) or keeps showing them until the power goes.
  void fail_sync(Random& random, bool forget);
  /// Of what was not synced, every sector shows any moment of its own past, whatever its neighbours show.
  void power_cut(Random& random);
  /// Damage at rest: on the disk and in the cache alike. REQUIRES: offset < durable().size().
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
