#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string_view>
#include <sys/mman.h>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "core/job.h"
#include "core/random.h"
#include "core/siphash.h"
#include "core/time.h"

namespace delayq::journal {

/// The number of a job's place in the table. Stable while the job exists.
using Slot = uint32_t;
inline constexpr Slot kNoSlot = UINT32_MAX;
inline constexpr uint32_t kNoExtra = UINT32_MAX;

/// Where a record is.
struct Location {
  uint32_t segment = 0;
  uint32_t offset = 0;
  uint32_t size = 0;  ///< of the whole record

  bool operator==(const Location&) const = default;
};

/// All data about a job in RAM: 80 bytes, whatever the size of its id and body, which stay on disk.
struct Entry {
  uint64_t key_low;  ///< 96 bits of the hash of the id (see IdIndex)
  uint32_t key_high;
  uint32_t topic;
  uint64_t due_ms : 48;
  uint64_t state_bits : 3;
  uint64_t wheel_level : 3;
  uint64_t in_wheel : 1;
  uint64_t in_past : 1;  ///< waits outside the wheel because the clock went back
  uint64_t has_options : 1;
  uint64_t cancel_requested : 1;
  uint64_t shares_id : 1;   ///< another topic has a job with the same id
  uint64_t has_cursor : 1;  ///< a listing stopped at this job
  uint64_t is_tracked : 1;  ///< can be found by its number (see Store::find_number)
  uint64_t has_callback : 1;
  uint64_t : 2;
  uint64_t until_ms : 48;
  uint64_t own_lease_low : 16;  ///< see own_lease()
  uint64_t seq : 48;
  uint64_t own_lease_high : 16;
  Location location;  ///< of the job's record
  uint32_t priority;
  uint32_t attempts;
  Slot wheel_previous;
  Slot wheel_next;
  Slot chain_previous;  ///< the topic's jobs in the same state, in the order in which they entered it
  Slot chain_next;
  uint32_t extra;  ///< index of data that only some jobs have (see Extra)

  JobState state() const { return static_cast<JobState>(state_bits); }
  void set_state(JobState state) { state_bits = static_cast<uint64_t>(state) & 7; }
  Outlet outlet() const { return has_callback ? Outlet::kCallback : Outlet::kTopic; }
  Moment due() const { return from_unix_ms(static_cast<int64_t>(due_ms)); }
  /// The job's own lease length; zero: none.
  Millis own_lease() const {
    return Millis{static_cast<int64_t>(uint64_t{own_lease_high} << 16 | uint64_t{own_lease_low})};
  }
  void set_own_lease(uint32_t ms) {
    own_lease_low = static_cast<uint16_t>(ms);
    own_lease_high = static_cast<uint16_t>(ms >> 16U);
  }
  Moment until() const { return from_unix_ms(static_cast<int64_t>(until_ms)); }
};
static_assert(sizeof(Entry) == 80);

/// Times are stored in 48 bits: from 1970 to the year 10889.
inline constexpr int64_t kLatestMs = (int64_t{1} << 48) - 1;
constexpr uint64_t to_stored_ms(Moment moment) {
  const int64_t ms = to_unix_ms(moment);
  return static_cast<uint64_t>(ms < 0 ? 0 : ms > kLatestMs ? kLatestMs : ms);
}

/// A lease length in the 32 bits that records and entries have for it. (Limits::kMaxLease is far below that.)
constexpr uint32_t to_lease_ms(Millis lease) {
  return static_cast<uint32_t>(std::clamp<int64_t>(lease.count(), 0, UINT32_MAX));
}

/// Data that most jobs do not have: group, lease, and records later than the job record.
struct Extra {
  uint64_t lease = 0;          ///< see StatePayload
  uint32_t handed_over_s = 0;  ///< with a lease: since when, in Unix seconds; 0: before the engine started
  uint32_t group = UINT32_MAX;
  Slot group_previous = kNoSlot;
  Slot group_next = kNoSlot;
  Slot same_id_previous = kNoSlot;
  Slot same_id_next = kNoSlot;
  Location state;    ///< the latest kState or kOutcome record; segment 0: none since the job record
  Location outcome;  ///< the latest kOutcome record, which may be the same one; segment 0: none

  bool is_default() const { return *this == Extra{}; }
  bool operator==(const Extra&) const = default;
};
static_assert(sizeof(Extra) == 56);

/// Begins to load memory that is needed soon. The empty statement makes it an effect: GCC takes a function
/// that does nothing but prefetch for one without effects, and leaves its calls out.
inline void prefetch_line(const void* where) {
  __builtin_prefetch(where);
  asm volatile("" : : "r"(where));
}

/// A growing array of T in large chunks that never move. Indexes are stable, the lowest chunk with a
/// free place is used first, and empty chunks are returned to the system. T must be trivial; a new
/// element is all zeros.
template <class T>
class Slab {
 public:
  Slab() = default;
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() {
    for (Chunk& chunk : chunks_) release(chunk);
  }

  T& operator[](uint32_t number) { return chunks_[number >> kChunkBits].items[number & kChunkMask]; }
  const T& operator[](uint32_t number) const {
    return chunks_[number >> kChunkBits].items[number & kChunkMask];
  }

  uint32_t allocate() {
    if (with_room_.empty()) with_room_.insert(add_chunk());
    const uint32_t index = *with_room_.begin();
    Chunk& chunk = chunks_[index];
    if (chunk.items == nullptr) map(chunk);
    uint32_t place = chunk.first_free;
    if (place != kEnd) {
      std::memcpy(&chunk.first_free, &chunk.items[place], sizeof chunk.first_free);
      chunk.items[place] = T{};
    } else {
      place = chunk.touched++;
    }
    ++chunk.live;
    if (is_full(chunk)) with_room_.erase(index);
    ++live_;
    return index << kChunkBits | place;
  }

  void free(uint32_t number) {
    const uint32_t index = number >> kChunkBits;
    Chunk& chunk = chunks_[index];
    if (is_full(chunk)) with_room_.insert(index);
    std::memcpy(static_cast<void*>(&chunk.items[number & kChunkMask]), &chunk.first_free,
                sizeof chunk.first_free);
    chunk.first_free = number & kChunkMask;
    --live_;
    // The first chunk stays, so that a queue that alternates between no job and one job does not
    // map memory each time.
    if (--chunk.live == 0 && index != 0) release(chunk);
  }

  uint64_t size() const { return live_; }
  uint64_t memory_bytes() const { return mapped_ * kChunkSize * sizeof(T); }
  void prefetch(uint32_t number) const {
    const char* item = reinterpret_cast<const char*>(&(*this)[number]);
    prefetch_line(item);
    if constexpr (sizeof(T) > 64) prefetch_line(item + sizeof(T) - 1);
  }

 private:
  static constexpr uint32_t kChunkBits = 17;
  static constexpr uint32_t kChunkSize = 1u << kChunkBits;
  static constexpr uint32_t kChunkMask = kChunkSize - 1;
  static constexpr uint32_t kEnd = UINT32_MAX;

  struct Chunk {
    T* items = nullptr;
    uint32_t live = 0;
    uint32_t touched = 0;        ///< places from here on were never used and are still zero
    uint32_t first_free = kEnd;  ///< used places that are free, linked through their first bytes
  };

  static bool is_full(const Chunk& chunk) { return chunk.first_free == kEnd && chunk.touched == kChunkSize; }

  uint32_t add_chunk() {
    chunks_.emplace_back();
    return static_cast<uint32_t>(chunks_.size() - 1);
  }

  /// Memory comes directly from the system: unused pages cost nothing, and an empty chunk
  /// is returned at once.
  void map(Chunk& chunk) {
    void* memory =
        ::mmap(nullptr, kChunkSize * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    // Jobs are accessed at random: with small pages, address translation would take most of the time.
    ::madvise(memory, kChunkSize * sizeof(T), MADV_HUGEPAGE);
    chunk = Chunk{static_cast<T*>(memory)};
    ++mapped_;
  }

  void release(Chunk& chunk) {
    if (chunk.items == nullptr) return;
    ::munmap(chunk.items, kChunkSize * sizeof(T));
    chunk = Chunk{};
    --mapped_;
  }

  std::vector<Chunk> chunks_;
  std::set<uint32_t> with_room_;
  uint64_t live_ = 0;
  uint64_t mapped_ = 0;
};

/// The jobs, and the extras of the jobs that have one.
class JobTable {
 public:
  Slot add() {
    const Slot slot = entries_.allocate();
    Entry& entry = entries_[slot];
    entry.wheel_previous = entry.wheel_next = entry.chain_previous = entry.chain_next = kNoSlot;
    entry.extra = kNoExtra;
    return slot;
  }

  void remove(Slot slot) {
    drop_extra(slot);
    entries_.free(slot);
  }

  Entry& operator[](Slot slot) { return entries_[slot]; }
  const Entry& operator[](Slot slot) const { return entries_[slot]; }
  void prefetch(Slot slot) const { entries_.prefetch(slot); }

  /// Returns the job's extra; creates it if there is none.
  Extra& extra(Slot slot) {
    uint32_t& number = entries_[slot].extra;
    if (number == kNoExtra) {
      number = extras_.allocate();
      extras_[number] = Extra{};
    }
    return extras_[number];
  }

  Extra* find_extra(Slot slot) {
    const uint32_t number = entries_[slot].extra;
    return number == kNoExtra ? nullptr : &extras_[number];
  }
  const Extra* find_extra(Slot slot) const { return const_cast<JobTable*>(this)->find_extra(slot); }

  /// Frees an extra that has no data left.
  void trim_extra(Slot slot) {
    const Extra* extra = find_extra(slot);
    if (extra != nullptr && extra->is_default()) drop_extra(slot);
  }

  uint64_t size() const { return entries_.size(); }
  uint64_t memory_bytes() const { return entries_.memory_bytes() + extras_.memory_bytes(); }

 private:
  void drop_extra(Slot slot) {
    uint32_t& number = entries_[slot].extra;
    if (number != kNoExtra) extras_.free(number);
    number = kNoExtra;
  }

  Slab<Entry> entries_;
  Slab<Extra> extras_;
};

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
    if (shard.cells) prefetch_line(&shard.cells[home(shard, fragment(key))]);
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

/// For tables by the number of a job or of a schedule.
inline SlotKey number_key(uint64_t number) {
  const uint64_t mixed = mix64(number);
  return {mixed, static_cast<uint32_t>(mixed >> 32)};
}

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
  /// Prefetches what erase() will access besides the entry.
  void prefetch_erase(Slot slot) const { ids_.prefetch(key_of(jobs_[slot])); }
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

/// A lease as consumers get it: the job's number and the number of the lease, which is unique in
/// the directory forever.
struct LeaseNumber {
  uint64_t seq = 0;
  uint64_t lease = 0;

  bool operator==(const LeaseNumber&) const = default;
};

/// 23 letters and digits.
using LeaseText = std::array<char, 23>;
LeaseText format_lease(const LeaseNumber& number);
std::optional<LeaseNumber> parse_lease(std::string_view text);

}  // namespace delayq::journal
