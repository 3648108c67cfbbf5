#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/journal/format.h"

namespace delayq::journal {

/// Walks the records of a segment that is in memory, and tells how the walk ended.
///
/// A bad record is one of two things. In bytes that had been synced it is damage: something acknowledged may
/// be lost. Behind them it is a torn commit that nobody was answered for. What had been synced is known from
/// the marks: each commit begins with one that says how far the segment was durable by then; and a segment
/// that has a successor in its stream was durable to its end.
class SegmentScanner {
 public:
  enum class End : uint8_t {
    kNone,     ///< there are more records
    kClean,    ///< nothing but zeros follows
    kTorn,     ///< an unfinished commit follows: to be cut off
    kDamaged,  ///< a record that had been synced is bad
  };

  /// `file` is the whole file, header included. `has_successor`: a later segment of the same stream exists.
  SegmentScanner(std::span<const std::byte> file, const SegmentHeader& header, bool has_successor);

  /// The next record, or nullopt when end() is not kNone any more.
  std::optional<RecordView> next();
  /// Where the record that next() answered last begins.
  uint64_t record_offset() const { return record_offset_; }
  /// Where the walk stands: behind the last good record.
  uint64_t offset() const { return offset_; }
  End end() const { return end_; }
  /// Everything before this had been synced, going by the marks met so far.
  uint64_t proven_durable() const { return proven_durable_; }

  /// After kDamaged: goes on at the next good record. Answers how many bytes were skipped.
  uint64_t skip_damage();

 private:
  /// A hole stands for records whose numbers are not known any more.
  bool follows(const RecordView& record) const {
    return record.type == RecordType::kHole || record.lsn > last_lsn_;
  }
  bool only_zeros_follow() const;
  bool was_durable(uint64_t offset) const;
  void stop();

  std::span<const std::byte> file_;
  uint32_t nonce_;
  bool has_successor_;
  Lsn last_lsn_;
  uint64_t record_offset_ = 0;
  uint64_t offset_ = kSegmentHeaderSize;
  uint64_t proven_durable_ = 0;
  End end_ = End::kNone;
};

}  // namespace delayq::journal
