#include "engine/journal/segment_scanner.h"

#include <algorithm>

namespace delayq::journal {

SegmentScanner::SegmentScanner(std::span<const std::byte> file, const SegmentHeader& header,
                               bool has_successor)
    : file_(file), nonce_(header.nonce), has_successor_(has_successor), last_lsn_(header.first_lsn - 1) {}

std::optional<RecordView> SegmentScanner::next() {
  if (end_ != End::kNone) return std::nullopt;
  const auto record = read_record(file_.subspan(offset_), nonce_);
  // Numbers only grow within a segment: one that does not is a leftover, however good its checksum.
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

/// Looks for a later mark that says so. Marks carry their own offset, so a body that looks like one does not
/// count.
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

}  // namespace delayq::journal
