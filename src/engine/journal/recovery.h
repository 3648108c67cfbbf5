#pragma once

#include "core/result.h"
#include "engine/journal/disk.h"
#include "engine/journal/manifest.h"
#include "engine/journal/store.h"

namespace delayq::journal {

struct Recovered {
  Lsn next_lsn = 1;
  uint32_t epoch = 1;    ///< of this opening
  uint64_t records = 0;  ///< replayed
  uint64_t cut_bytes =
      0;  ///< of commits that were under way when the power went, and that nobody was answered for
  Manifest manifest;  ///< as it is on the disk now, for this opening
};

/// Reads all segments of the directory into `store` and makes the directory ready to be appended to: a torn
/// end is cut off, a segment whose creation was not finished is removed.
///
/// Damage in what had been synced is an error (kCorrupt) that names segment and offset, and changes nothing.
/// So is a segment that is missing or does not belong to the directory. `directory` is what the directory is
/// called in its manifest, unless it has one: a random number.
Result<Recovered> recover(Disk& disk, Store& store, uint64_t directory);

}  // namespace delayq::journal
