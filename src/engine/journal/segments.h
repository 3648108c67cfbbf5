#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include "core/result.h"
#include "engine/journal/disk.h"
#include "engine/journal/format.h"
#include "engine/journal/job_table.h"

namespace delayq::journal {

/// A segment file found in a directory.
struct SegmentFile {
  std::string name;
  uint32_t number = 0;
  std::shared_ptr<File> file;
  uint64_t size = 0;
  SegmentHeader header;
  enum class Kind : uint8_t {
    kGood,
    kUnfinished,  ///< its header never reached the disk, so nothing in it was ever acknowledged
    kDamaged,     ///< it had a header, which is not readable any more
    kForeign,     ///< of a format version this program does not know
    kLeftover,    ///< its removal was not finished, so nothing in it is needed (segment_chain.h)
    kStranger,    ///< not one of this directory's segments (segment_chain.h)
  } kind = Kind::kGood;
  bool has_successor = false;  ///< a later good segment of the same stream exists
};

/// All segment files, by number. Other files are left alone.
Result<std::vector<SegmentFile>> find_segments(Disk& disk);

/// Why a kDamaged one is that.
std::string header_problem(const SegmentFile& segment);

Result<std::vector<std::byte>> read_whole(const SegmentFile& segment);

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

/// One segment file, as the engine knows it.
struct Segment {
  SegmentHeader header;
  std::shared_ptr<File> file;  ///< null until its first commit is written
  uint64_t size = 0;           ///< how far it has been appended to
  uint64_t occupied = 0;       ///< what it takes on disk: more than `size` while it is the log's last
  uint64_t durable = 0;        ///< how far it has been synced
  uint64_t live_bytes = 0;     ///< records that a job or a topic still needs
  uint64_t gone_bytes = 0;     ///< kGone records that an existing segment still needs
  bool is_open = true;         ///< still appended to
  bool is_proven =
      true;  ///< a later mark says that its last records are durable: if one is bad, it is damage
  bool is_damaged = false;  ///< cleaning found a bad record: left alone for `check` to look at
  bool unsets = false;      ///< has records that take back a topic's settings
  /// Its cleaning was interrupted: jobs in it may have gone since under the name of the segment they were
  /// copied to, or (see Replay) without a kGone record. No other segment may be removed before it, lest one
  /// come back.
  bool is_half_cleaned = false;
  /// For each other segment, how many kGone records in this one speak of jobs in it.
  absl::flat_hash_map<uint32_t, uint32_t> gone_by_segment;

  uint64_t needed_bytes() const { return live_bytes + gone_bytes; }
};

/// All segments and what of them is still needed.
class Segments {
 public:
  static constexpr uint64_t kGoneRecordSize = kRecordHeaderSize + sizeof(GonePayload);

  Segment& add(const SegmentHeader& header);
  Segment* find(uint32_t number);
  const Segment* find(uint32_t number) const { return const_cast<Segments*>(this)->find(number); }

  /// A record became needed, or is not any more. A Location with segment 0 is ignored.
  void keep(const Location& location);
  void release(const Location& location);
  /// A kGone record at `location` that speaks of a job in `segment`.
  void keep_gone(const Location& location, uint32_t segment);

  /// The file is gone for good: kGone records that spoke of it are not needed any more.
  void remove(uint32_t number);

  /// The undamaged segment with the smallest needed share, or null. An open one counts only when it is not
  /// the log's own and at least `open_waste` of it is not needed.
  Segment* emptiest(uint64_t open_waste);
  /// The one that must be cleaned before any other, or null.
  Segment* half_cleaned();
  /// REQUIRES: the segment exists.
  void set_half_cleaned(uint32_t number);
  /// The log's oldest segment.
  const Segment* oldest_head() const;
  void set_occupied(Segment& segment, uint64_t bytes);

  uint64_t occupied_bytes() const { return occupied_bytes_; }
  uint64_t live_bytes() const { return live_bytes_; }
  uint64_t needed_bytes() const { return live_bytes_ + gone_bytes_; }
  uint64_t count() const { return all_.size(); }
  uint32_t highest_number() const { return all_.empty() ? 0 : all_.rbegin()->first; }

  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }

 private:
  absl::btree_map<uint32_t, std::unique_ptr<Segment>> all_;
  uint64_t occupied_bytes_ = 0;
  uint64_t live_bytes_ = 0;
  uint64_t gone_bytes_ = 0;
  uint32_t half_cleaned_ = 0;
  Segment* last_found_ = nullptr;  ///< most look-ups are of the same segment as the one before
};

}  // namespace delayq::journal
