#include "engine/journal/segments.h"

#include <cassert>

namespace delayq::journal {

Segment& Segments::add(const SegmentHeader& header) {
  auto segment = std::make_unique<Segment>();
  segment->header = header;
  return *all_.emplace(header.number, std::move(segment)).first->second;
}

Segment* Segments::find(uint32_t number) {
  if (last_found_ != nullptr && last_found_->header.number == number) return last_found_;
  const auto found = all_.find(number);
  if (found == all_.end()) return nullptr;
  return last_found_ = found->second.get();
}

void Segments::keep(const Location& location) {
  if (location.segment == 0) return;
  Segment* segment = find(location.segment);
  assert(segment != nullptr);
  segment->live_bytes += location.size;
  live_bytes_ += location.size;
}

void Segments::release(const Location& location) {
  if (location.segment == 0) return;
  Segment* segment = find(location.segment);
  assert(segment != nullptr && segment->live_bytes >= location.size);
  segment->live_bytes -= location.size;
  live_bytes_ -= location.size;
}

void Segments::keep_gone(const Location& location, uint32_t segment) {
  if (segment == location.segment || find(segment) == nullptr) return;
  Segment& holder = *find(location.segment);
  ++holder.gone_by_segment[segment];
  holder.gone_bytes += kGoneRecordSize;
  gone_bytes_ += kGoneRecordSize;
}

void Segments::remove(uint32_t number) {
  const auto found = all_.find(number);
  if (found == all_.end()) return;
  assert(found->second->live_bytes == 0);
  occupied_bytes_ -= found->second->occupied;
  half_cleaned_ -= found->second->is_half_cleaned ? 1 : 0;
  gone_bytes_ -= found->second->gone_bytes;
  all_.erase(found);
  last_found_ = nullptr;
  for (auto& [other_number, other] : all_) {
    const auto gone = other->gone_by_segment.find(number);
    if (gone == other->gone_by_segment.end()) continue;
    const uint64_t bytes = gone->second * kGoneRecordSize;
    other->gone_bytes -= bytes;
    gone_bytes_ -= bytes;
    other->gone_by_segment.erase(gone);
  }
}

Segment* Segments::emptiest(uint64_t open_waste) {
  Segment* best = nullptr;
  for (auto& [number, segment] : all_) {
    if (segment->is_damaged || segment->size == 0) continue;
    if (segment->is_open &&
        (segment->header.stream == kHeadStream || segment->size < segment->needed_bytes() + open_waste)) {
      continue;
    }
    // needed/size compared without dividing.
    if (best == nullptr || segment->needed_bytes() * best->size < best->needed_bytes() * segment->size) {
      best = segment.get();
    }
  }
  return best;
}

Segment* Segments::half_cleaned() {
  if (half_cleaned_ == 0) return nullptr;
  for (auto& [number, segment] : all_) {
    if (segment->is_half_cleaned) return segment.get();
  }
  return nullptr;
}

void Segments::set_half_cleaned(uint32_t number) {
  Segment& segment = *find(number);
  if (!segment.is_half_cleaned) ++half_cleaned_;
  segment.is_half_cleaned = true;
}

const Segment* Segments::oldest_head() const {
  for (const auto& [number, segment] : all_) {
    if (segment->header.stream == kHeadStream) return segment.get();
  }
  return nullptr;
}

void Segments::set_occupied(Segment& segment, uint64_t bytes) {
  occupied_bytes_ += bytes - segment.occupied;
  segment.occupied = bytes;
}

}  // namespace delayq::journal
