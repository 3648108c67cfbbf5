#include "engine/journal/id_index.h"

namespace delayq::journal {

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
  // The last one of a shared id is an ordinary job again.
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

}  // namespace delayq::journal
