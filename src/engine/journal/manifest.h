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

/// Which segments a directory has. A small file beside them, so that a segment that is missing, or belongs
/// elsewhere, is noticed, the newest one included. docs/internals/journal-format.md has its bytes.
///
/// The file is replaced as a whole (write, sync, rename, sync of the directory), and in an order that no
/// power cut can turn into a false alarm: a segment is named when it is durable and before anything in it is
/// answered; it is taken off the list before it is removed.
///
/// Threads: belongs to the write lane, which creates and removes segments.
struct Manifest {
  struct Known {
    uint32_t nonce = 0;       ///< of the segment's header: tells it from any other of the same number
    uint64_t least_size = 0;  ///< its records had been synced up to there

    bool operator==(const Known&) const = default;
  };
  struct Removed {
    uint32_t number = 0;  ///< 0: none
    uint32_t nonce = 0;

    bool operator==(const Removed&) const = default;
  };

  static constexpr std::string_view kName = "manifest";

  uint64_t directory = 0;  ///< random; in the header of every segment that was begun here
  uint32_t epoch = 0;      ///< the opening of the directory that wrote this
  uint32_t highest = 0;    ///< the highest number that was named in this epoch, or found by it
  std::map<uint32_t, Known> segments;
  /// Numbers below `highest` that were given out: their segments are being begun, and are there or not.
  std::set<uint32_t> pending;
  /// The latest that was taken off the list: its file may still be there.
  Removed removed;

  bool operator==(const Manifest&) const = default;

  std::vector<std::byte> encode() const;
  /// nullopt: damaged.
  static std::optional<Manifest> decode(std::span<const std::byte> bytes);

  /// nullopt: the directory has none. kCorrupt: it has one that is damaged.
  static Result<std::optional<Manifest>> read(Disk& disk);
  /// Replaces the file, durably.
  Status write(Disk& disk) const;

  /// The segment of this header is durable: names it, and says how long its predecessor has become.
  Status name(Disk& disk, const SegmentHeader& header);
  /// The segment's file is about to be removed.
  Status take_off(Disk& disk, uint32_t number);

 private:
  Status write_and_reserve(Disk& disk) const;
};

/// One thing that is wrong with the files of a directory.
struct ChainProblem {
  std::string file;
  std::string what;
};

/// Compares the segments with the manifest. Those that do not count get another kind than kGood: kLeftover
/// when their removal had begun, kStranger when they do not belong to the directory. Returns what is wrong; a
/// segment whose header is not readable is not told again.
///
/// Without a manifest, segments count as they are if they were written before there were manifests. The same
/// holds when an older program, which knows nothing of it, used the directory after the manifest was written.
std::vector<ChainProblem> compare(const std::optional<Manifest>& manifest, std::vector<SegmentFile>& files);

}  // namespace delayq::journal
