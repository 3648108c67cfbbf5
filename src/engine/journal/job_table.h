#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <set>
#include <sys/mman.h>
#include <vector>

#include "core/job.h"
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
  uint64_t lease = 0;  ///< see StatePayload
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
    __builtin_prefetch(item, 1);
    if constexpr (sizeof(T) > 64) __builtin_prefetch(item + sizeof(T) - 1, 1);
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

}  // namespace delayq::journal
