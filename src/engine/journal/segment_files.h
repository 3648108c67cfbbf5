#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "engine/journal/disk.h"
#include "engine/journal/format.h"

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

}  // namespace delayq::journal
