#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "engine/journal/disk.h"
#include "engine/journal/format.h"
#include "engine/journal/segments.h"

namespace delayq::journal {

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
