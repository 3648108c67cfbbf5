#include "engine/journal/segments.h"

#include <algorithm>
#include <array>
#include <cassert>

#include <fmt/format.h>

namespace delayq::journal {

namespace {

Result<SegmentFile> look_at(Disk& disk, const std::string& name, uint32_t number) {
  SegmentFile segment;
  segment.name = name;
  segment.number = number;
  Result<std::shared_ptr<File>> file = disk.open(name);
  if (!file.ok()) return file.error();
  segment.file = *file;
  const Result<uint64_t> size = segment.file->size();
  if (!size.ok()) return size.error();
  segment.size = *size;

  std::array<std::byte, kSegmentHeaderSize> bytes{};
  const Result<size_t> got = segment.file->read(0, bytes);
  if (!got.ok()) return got.error();
  const bool is_blank =
      std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
  const auto header = SegmentHeader::decode(bytes);
  if (*got < kSegmentHeaderSize || is_blank) {
    segment.kind = SegmentFile::Kind::kUnfinished;
  } else if (!header || header->number != number || header->stream >= kStreamCount) {
    segment.kind = SegmentFile::Kind::kDamaged;
  } else if (header->version != kFormatVersion) {
    segment.kind = SegmentFile::Kind::kForeign;
  }
  if (header) segment.header = *header;
  return segment;
}

}  // namespace

Result<std::vector<SegmentFile>> find_segments(Disk& disk) {
  const Result<std::vector<std::string>> names = disk.list();
  if (!names.ok()) return names.error();
  std::vector<SegmentFile> segments;
  for (const std::string& name : *names) {
    const auto number = parse_segment_name(name);
    if (!number) continue;
    Result<SegmentFile> segment = look_at(disk, name, *number);
    if (!segment.ok()) return segment.error();
    segments.push_back(std::move(*segment));
  }
  std::sort(segments.begin(), segments.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  std::array<bool, kStreamCount> seen{};
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
    if (segment->kind != SegmentFile::Kind::kGood) continue;
    segment->has_successor = seen[segment->header.stream];
    seen[segment->header.stream] = true;
  }
  return segments;
}

std::string header_problem(const SegmentFile& segment) {
  if (segment.header.number == 0 || segment.header.number == segment.number)
    return "its header is not readable";
  return fmt::format("its header says that it is {}", segment_name(segment.header.number));
}

Result<std::vector<std::byte>> read_whole(const SegmentFile& segment) {
  std::vector<std::byte> bytes(segment.size);
  const Result<size_t> got = segment.file->read(0, bytes);
  if (!got.ok()) return got.error();
  bytes.resize(*got);
  return bytes;
}

SegmentScanner::SegmentScanner(std::span<const std::byte> file, const SegmentHeader& header,
                               bool has_successor)
    : file_(file), nonce_(header.nonce), has_successor_(has_successor), last_lsn_(header.first_lsn - 1) {}

std::optional<RecordView> SegmentScanner::next() {
  if (end_ != End::kNone) return std::nullopt;
  const auto record = read_record(file_.subspan(offset_), nonce_);
  // Numbers always increase within a segment: a record that breaks this is a leftover, even
  // with a valid checksum.
  if (!record || !follows(*record)) {
    stop();
    return std::nullopt;
  }
  if (record->type != RecordType::kHole) last_lsn_ = record->lsn;
  record_offset_ = offset_;
  offset_ += record->size();
  if (record->type == RecordType::kMark) {
    if (const auto mark = parse_plain<MarkPayload>(record->payload)) {
      proven_durable_ = std::max(proven_durable_, mark->durable);
    }
  }
  return record;
}

void SegmentScanner::stop() {
  if (has_successor_) {
    end_ = offset_ == file_.size() ? End::kClean : End::kDamaged;
  } else if (only_zeros_follow()) {
    end_ = End::kClean;
  } else {
    end_ = was_durable(offset_) ? End::kDamaged : End::kTorn;
  }
}

uint64_t SegmentScanner::skip_damage() {
  const uint64_t from = offset_;
  for (uint64_t at = from + 1; at + kRecordHeaderSize <= file_.size(); ++at) {
    const auto record = read_record(file_.subspan(at), nonce_);
    if (!record || !follows(*record)) continue;
    offset_ = at;
    end_ = End::kNone;
    return at - from;
  }
  offset_ = file_.size();
  end_ = End::kClean;
  return offset_ - from;
}

bool SegmentScanner::only_zeros_follow() const {
  return std::all_of(file_.begin() + static_cast<ptrdiff_t>(offset_), file_.end(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

/// Looks for a later mark that covers the offset. A mark contains its own offset, so a body that looks like a
/// mark does not count.
bool SegmentScanner::was_durable(uint64_t offset) const {
  constexpr size_t kMarkSize = kRecordHeaderSize + sizeof(MarkPayload);
  for (uint64_t at = offset; at + kMarkSize <= file_.size(); ++at) {
    RecordHeader header;
    std::memcpy(&header, file_.data() + at, sizeof header);
    if (header.size != sizeof(MarkPayload) || header.type() != RecordType::kMark) continue;
    const auto record = read_record(file_.subspan(at, kMarkSize), nonce_);
    if (!record) continue;
    const auto mark = parse_plain<MarkPayload>(record->payload);
    if (mark && mark->offset == at && mark->durable > offset) return true;
  }
  return false;
}

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
    // Compares needed/size without division.
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
