#include "engine/journal/job_table.h"

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
  // Cells that were placed after the hole because of probing move back into it, so no marker is needed.
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

Slot IdIndex::first(SlotKey key) const {
  return ids_.find(key, [&](Slot slot) {
    const Entry& entry = jobs_[slot];
    return entry.key_low == key.low && entry.key_high == key.high;
  });
}

Slot IdIndex::find(SlotKey key, uint32_t topic) const {
  const Slot slot = first(key);
  if (slot == kNoSlot || jobs_[slot].topic == topic) return slot;
  if (!jobs_[slot].shares_id) return kNoSlot;
  const auto found = shared_.find(shared_key(key, topic));
  return found == shared_.end() ? kNoSlot : found->second;
}

std::vector<Slot> IdIndex::find_all(SlotKey key) const {
  std::vector<Slot> all;
  for (Slot slot = first(key); slot != kNoSlot;) {
    all.push_back(slot);
    const Extra* extra = jobs_[slot].shares_id ? jobs_.find_extra(slot) : nullptr;
    slot = extra == nullptr ? kNoSlot : extra->same_id_next;
  }
  return all;
}

void IdIndex::insert(SlotKey key, Slot slot) {
  Entry& entry = jobs_[slot];
  entry.key_low = key.low;
  entry.key_high = key.high;
  const Slot head = first(key);
  if (head == kNoSlot) {
    ids_.insert(key, slot);
    return;
  }
  shared_.emplace(shared_key(key, entry.topic), slot);
  const Slot second = jobs_.extra(head).same_id_next;
  jobs_.extra(head).same_id_next = slot;
  jobs_.extra(slot).same_id_previous = head;
  jobs_.extra(slot).same_id_next = second;
  if (second != kNoSlot) jobs_.extra(second).same_id_previous = slot;
  jobs_[head].shares_id = 1;
  entry.shares_id = 1;
}

void IdIndex::erase(Slot slot) {
  Entry& entry = jobs_[slot];
  const SlotKey key = key_of(entry);
  if (!entry.shares_id) {
    ids_.erase(key, slot);
    return;
  }
  Extra& extra = jobs_.extra(slot);
  const Slot previous = std::exchange(extra.same_id_previous, kNoSlot);
  const Slot next = std::exchange(extra.same_id_next, kNoSlot);
  entry.shares_id = 0;
  if (previous != kNoSlot) {
    jobs_.extra(previous).same_id_next = next;
    shared_.erase(shared_key(key, entry.topic));
  } else {
    ids_.replace(key, slot, next);
    shared_.erase(shared_key(key, jobs_[next].topic));
  }
  if (next != kNoSlot) jobs_.extra(next).same_id_previous = previous;
  // The last job with a shared id is an ordinary job again.
  const Slot left = previous != kNoSlot ? previous : next;
  const Extra& other = jobs_.extra(left);
  if (other.same_id_previous == kNoSlot && other.same_id_next == kNoSlot) {
    jobs_[left].shares_id = 0;
    jobs_.trim_extra(left);
  }
  jobs_.trim_extra(slot);
}

uint64_t IdIndex::memory_bytes() const {
  return ids_.memory_bytes() + shared_.capacity() * (sizeof(SharedKey) + sizeof(uint64_t) + 1);
}

namespace {

/// Base 32 without the letters that look like digits.
constexpr std::string_view kAlphabet = "0123456789abcdefghjkmnpqrstvwxyz";
constexpr size_t kSeqDigits = 10;    // 48 bits
constexpr size_t kLeaseDigits = 13;  // 64 bits

constexpr std::array<int8_t, 256> kValues = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<int8_t>(i);
  return values;
}();

void write(uint64_t value, char* out, size_t digits) {
  for (size_t i = digits; i-- > 0; value >>= 5) out[i] = kAlphabet[value & 31];
}

struct Digits {
  uint64_t value = 0;
  int8_t signs = 0;  ///< negative when a letter is not a digit
};

Digits read(std::string_view text) {
  Digits read;
  for (const char letter : text) {
    const int8_t digit = kValues[static_cast<uint8_t>(letter)];
    read.signs = static_cast<int8_t>(read.signs | digit);
    read.value = read.value << 5 | (static_cast<uint64_t>(digit) & 31);
  }
  return read;
}

}  // namespace

LeaseText format_lease(const LeaseNumber& number) {
  LeaseText text;
  write(number.seq, text.data(), kSeqDigits);
  write(number.lease, text.data() + kSeqDigits, kLeaseDigits);
  return text;
}

std::optional<LeaseNumber> parse_lease(std::string_view text) {
  if (text.size() != std::tuple_size_v<LeaseText>) return std::nullopt;
  const Digits seq = read(text.substr(0, kSeqDigits));
  const Digits lease = read(text.substr(kSeqDigits));
  if ((seq.signs | lease.signs) < 0) return std::nullopt;
  // Each lease has exactly one text: digits that do not fit are rejected, not ignored.
  constexpr uint64_t kSeqEnd = uint64_t{1} << 48;
  constexpr int8_t kFirstLeaseDigitEnd = 1 << (64 - 5 * (kLeaseDigits - 1));
  const bool fits =
      seq.value < kSeqEnd && kValues[static_cast<uint8_t>(text[kSeqDigits])] < kFirstLeaseDigitEnd;
  return fits ? std::optional(LeaseNumber{seq.value, lease.value}) : std::nullopt;
}

}  // namespace delayq::journal
