#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
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
    kUnfinished,  ///< its header never reached the disk, so no change in it was ever replied to
    kDamaged,     ///< it had a header, which is no longer readable
    kForeign,     ///< its format version is unknown to this program
    kLeftover,    ///< its removal was not finished, so nothing in it is needed (see Manifest)
    kStranger,    ///< not a segment of this directory (see Manifest)
  } kind = Kind::kGood;
  bool has_successor = false;  ///< a later good segment of the same stream exists
};

/// Returns all segment files, sorted by number. Other files are ignored.
Result<std::vector<SegmentFile>> find_segments(Disk& disk);

/// Describes what is wrong with a kDamaged segment.
std::string header_problem(const SegmentFile& segment);

Result<std::vector<std::byte>> read_whole(const SegmentFile& segment);

/// Reads the records of a segment that is in memory, and reports how the scan ended.
///
/// A bad record means one of two things. In bytes that had been synced it is damage: a change that was
/// replied to may be lost. After these bytes it belongs to a torn commit, which was never replied to. The
/// marks show what had been synced: each commit begins with a mark that says how far the segment was durable
/// at that time. A segment with a successor in its stream was durable to its end.
class SegmentScanner {
 public:
  enum class End : uint8_t {
    kNone,     ///< there are more records
    kClean,    ///< only zeros follow
    kTorn,     ///< an unfinished commit follows; it is to be cut off
    kDamaged,  ///< a record that had been synced is bad
  };

  /// `file` is the whole file, header included. `has_successor`: a later segment of the same stream exists.
  SegmentScanner(std::span<const std::byte> file, const SegmentHeader& header, bool has_successor);

  /// Returns the next record, or nullopt if end() is not kNone.
  std::optional<RecordView> next();
  /// The offset of the record that next() returned last.
  uint64_t record_offset() const { return record_offset_; }
  /// The current position: after the last good record.
  uint64_t offset() const { return offset_; }
  End end() const { return end_; }
  /// Everything before this offset had been synced, according to the marks read so far.
  uint64_t proven_durable() const { return proven_durable_; }

  /// After kDamaged: continues at the next good record. Returns how many bytes were skipped.
  uint64_t skip_damage();

 private:
  /// A hole replaces records whose numbers are not known, so any record may follow it.
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

/// One segment file and its accounting.
struct Segment {
  SegmentHeader header;
  std::shared_ptr<File> file;  ///< null until its first commit is written
  uint64_t size = 0;           ///< end of the appended records
  uint64_t occupied = 0;       ///< its size on disk: more than `size` while it is the last segment of the log
  uint64_t durable = 0;        ///< end of the synced bytes
  uint64_t live_bytes = 0;     ///< records that a job or a topic still needs
  uint64_t gone_bytes = 0;     ///< kGone records that an existing segment still needs
  bool is_open = true;         ///< records are still appended to it
  /// A later mark says that its last records are durable. A bad one among them is then damage.
  bool is_proven = true;
  bool is_damaged = false;  ///< compaction found a bad record; the segment is kept for `check`
  bool unsets = false;      ///< has records that remove a topic's settings
  /// Its compaction was interrupted. The kGone record of a job in it may name the segment that the
  /// job was copied to, or (see Replay) may be missing. No other segment may be removed before this
  /// one: a job could reappear.
  bool is_half_cleaned = false;
  /// For each other segment: how many kGone records in this segment refer to jobs in it.
  absl::flat_hash_map<uint32_t, uint32_t> gone_by_segment;

  uint64_t needed_bytes() const { return live_bytes + gone_bytes; }
};

/// All segments, and how much of each is still needed.
class Segments {
 public:
  static constexpr uint64_t kGoneRecordSize = kRecordHeaderSize + sizeof(GonePayload);

  Segment& add(const SegmentHeader& header);
  Segment* find(uint32_t number);
  const Segment* find(uint32_t number) const { return const_cast<Segments*>(this)->find(number); }

  /// A record is needed from now on, or not any more. A Location with segment 0 is ignored.
  void keep(const Location& location);
  void release(const Location& location);
  /// Adds a kGone record at `location` for a job in `segment`.
  void keep_gone(const Location& location, uint32_t segment);

  /// The file is removed: kGone records that refer to it are no longer needed.
  void remove(uint32_t number);

  /// Returns the undamaged segment with the smallest needed share, or null. An open segment counts only if it
  /// is not in the head stream and at least `open_waste` bytes of it are not needed.
  Segment* emptiest(uint64_t open_waste);
  /// Returns a segment that must be compacted before all others, or null.
  Segment* half_cleaned();
  /// REQUIRES: the segment exists.
  void set_half_cleaned(uint32_t number);
  /// The oldest segment of the head stream.
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
  Segment* last_found_ = nullptr;  ///< most look-ups are for the same segment as the one before
};

/// The list of segments of a directory. A small file beside the segments, so that a missing or foreign
/// segment is noticed, even if it is the newest one. docs/internals/journal-format.md describes its bytes.
///
/// The file is always replaced as a whole (write, sync, rename, sync of the directory). The order of writes
/// ensures that a power loss never causes a false alarm: a segment is added to the list when it is durable
/// and before any change in it is replied to; it is taken off the list before its file is removed.
///
/// Threads: used by the write lane, which creates and removes segments.
struct Manifest {
  struct Known {
    /// from the segment's header: identifies it among segments with the same number
    uint32_t nonce = 0;
    uint64_t least_size = 0;  ///< its records had been synced up to this size

    bool operator==(const Known&) const = default;
  };
  struct Removed {
    uint32_t number = 0;  ///< 0: none
    uint32_t nonce = 0;

    bool operator==(const Removed&) const = default;
  };

  static constexpr std::string_view kName = "manifest";

  uint64_t directory = 0;  ///< random; in the header of every segment begun here
  uint32_t epoch = 0;      ///< the opening of the directory that wrote this file
  uint32_t highest = 0;    ///< the highest number that was listed in this epoch, or found by it
  std::map<uint32_t, Known> segments;
  /// Numbers below `highest` that have been assigned: their segments are being created and
  /// may or may not exist.
  std::set<uint32_t> pending;
  /// The segment that was taken off the list last: its file may still exist.
  Removed removed;

  bool operator==(const Manifest&) const = default;

  std::vector<std::byte> encode() const;
  /// nullopt: damaged.
  static std::optional<Manifest> decode(std::span<const std::byte> bytes);

  /// nullopt: the directory has no manifest. kCorrupt: the manifest is damaged.
  static Result<std::optional<Manifest>> read(Disk& disk);
  /// Replaces the file; durable on success.
  Status write(Disk& disk) const;

  /// The segment with this header is durable: adds it to the list and records the final
  /// size of its predecessor.
  Status name(Disk& disk, const SegmentHeader& header);
  /// Call before the segment's file is removed.
  Status take_off(Disk& disk, uint32_t number);

 private:
  Status write_and_reserve(Disk& disk) const;
};

/// One thing that is wrong with the files of a directory.
struct ChainProblem {
  std::string file;
  std::string what;
};

/// Compares the segments with the manifest. Segments to be ignored get another kind than kGood: kLeftover if
/// their removal had begun, kStranger if they do not belong to the directory. Returns the problems found,
/// except unreadable segment headers, which the kind already shows.
///
/// Without a manifest, segments that were written before there were manifests are accepted as they are.
/// The same holds if an older program, which does not know manifests, used the directory after the
/// manifest was written.
std::vector<ChainProblem> compare(const std::optional<Manifest>& manifest, std::vector<SegmentFile>& files);

}  // namespace delayq::journal
