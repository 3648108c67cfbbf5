#include "tests/support/volatile_bytes.h"

#include <algorithm>
#include <cstring>

namespace delayq::support {

void VolatileBytes::apply(const Change& change, std::vector<std::byte>& to) const {
  to.resize(change.size);
  if (!change.bytes.empty()) std::memcpy(to.data() + change.offset, change.bytes.data(), change.bytes.size());
}

void VolatileBytes::write(uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const uint64_t size = std::max<uint64_t>(cached_.size(), offset + bytes.size());
  unsynced_.push_back({offset, {bytes.begin(), bytes.end()}, size});
  apply(unsynced_.back(), cached_);
}

void VolatileBytes::resize(uint64_t size) {
  if (size == cached_.size()) return;
  unsynced_.push_back({size, {}, size});
  apply(unsynced_.back(), cached_);
}

void VolatileBytes::sync() {
  for (const Change& change : unsynced_) apply(change, durable_);
  unsynced_.clear();
}

void VolatileBytes::fail_sync(Random& random, bool forget) {
  durable_ = random_survivor(random);
  unsynced_.clear();
  if (forget) cached_ = durable_;
}

void VolatileBytes::power_cut(Random& random) {
  durable_ = random_survivor(random);
  unsynced_.clear();
  cached_ = durable_;
}

void VolatileBytes::flip_bit(uint64_t offset, unsigned bit) {
  const std::byte mask = std::byte{1} << bit;
  durable_[offset] ^= mask;
  if (offset < cached_.size()) cached_[offset] = durable_[offset];
}

std::vector<std::byte> VolatileBytes::random_survivor(Random& random) const {
  if (unsynced_.empty()) return durable_;
  // All, nothing, and everything up to a moment are likely in reality, but rare among random mixtures.
  const uint64_t mood = random.below(4);
  const size_t moment = mood == 0 ? 0 : mood == 1 ? unsynced_.size() : random.below(unsynced_.size() + 1);
  std::vector<std::byte> image = durable_;
  for (size_t i = 0; i < moment; ++i) apply(unsynced_[i], image);
  if (mood != 3) return image;

  // A mixture: the size at some moment, and each sector as it was at a moment of its own.
  const uint64_t size = image.size();
  uint64_t longest = size;
  for (const Change& change : unsynced_) longest = std::max(longest, change.size);
  image.resize(longest);
  for (uint64_t sector = 0; sector * kSectorBytes < longest; ++sector) {
    show_sector(sector, random.below(unsynced_.size() + 1), image);
  }
  image.resize(size);
  return image;
}

void VolatileBytes::show_sector(uint64_t sector, size_t changes, std::vector<std::byte>& image) const {
  const uint64_t begin = sector * kSectorBytes;
  const uint64_t end = std::min<uint64_t>(begin + kSectorBytes, image.size());
  std::fill(image.begin() + static_cast<ptrdiff_t>(begin), image.begin() + static_cast<ptrdiff_t>(end),
            std::byte{0});
  const auto put = [&](uint64_t offset, std::span<const std::byte> bytes) {
    const uint64_t from = std::max(begin, offset);
    const uint64_t to = std::min<uint64_t>(end, offset + bytes.size());
    if (from < to) std::memcpy(image.data() + from, bytes.data() + (from - offset), to - from);
  };
  put(0, durable_);
  for (size_t i = 0; i < changes; ++i) {
    const Change& change = unsynced_[i];
    if (change.size < end) {  // a truncation leaves zeros after it
      const auto cut = static_cast<ptrdiff_t>(std::max(begin, change.size));
      std::fill(image.begin() + cut, image.begin() + static_cast<ptrdiff_t>(end), std::byte{0});
    }
    put(change.offset, change.bytes);
  }
}

}  // namespace delayq::support
